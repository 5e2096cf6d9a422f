//! Good programs, and the results of reading them.

use super::super::checked_program::{
    InstructionKind, MAX_ITERATIONS, Program, ProgramCondition, TextExpression,
};
use super::{SEED, program, reading, state};
use crate::source::SourcePlace;
use raymond_model::id::Folder;
use raymond_model::model::ModelName;
use raymond_model::money::Usd;
use raymond_model::time::Timestamp;

fn kind(body: &str) -> InstructionKind {
    program(&state(body)).states[0].body[0].kind.clone()
}

fn condition(text: &str) -> ProgramCondition {
    let InstructionKind::Wait(wait) = kind(&format!("(wait {text})")) else { panic!("{text}") };
    wait.condition
}

fn action(text: &str) -> InstructionKind {
    let InstructionKind::Action(actions) = kind(&format!("(action {text})")) else {
        panic!("{text}")
    };
    actions[0].kind.clone()
}

#[test]
fn example_program_is_valid_and_fully_parsed() {
    let read = reading(SEED);
    assert_eq!(read.diagnostics, []);
    let program: Program = read.program.expect("sound");
    assert_eq!(&*program.name, "planner-worker-review");
    assert_eq!(program.metadata.label.as_deref(), Some("Planner/Worker review loop"));
    assert_eq!(program.metadata.max_iterations, MAX_ITERATIONS);
    let handles: Vec<_> = program.roles.iter().map(|role| &*role.handle).collect();
    assert_eq!(handles, ["agent-a", "agent-b"]);
    let states: Vec<_> = program.states.iter().map(|state| &*state.name).collect();
    assert_eq!(states, ["start", "handoff", "review", "complete"]);
    let labels: Vec<_> = program.labels.iter().map(String::as_str).collect();
    assert_eq!(labels, ["plan/ready", "plan/summary", "review/satisfied"]);
    assert!(program.context.is_empty());
    assert!(program.hash.starts_with("sha256:") && program.hash.len() == 71);
    let InstructionKind::Loop(review) = &program.states[2].body[0].kind else { panic!("no loop") };
    let InstructionKind::Branch { arms, otherwise } = &review.body[1].kind else {
        panic!("no branch")
    };
    assert!(matches!(arms[0].body[0].kind, InstructionKind::Goto(3)));
    assert_eq!(otherwise.as_ref().map(Vec::len), Some(2));
    assert_eq!(program.states[3].at, SourcePlace { line: 40, column: 3 });
}

#[test]
fn metadata_and_role_options_are_parsed() {
    let read = program(
        "(workflow w
          (metadata (description d) (max-iterations 5) (max-budget-usd 2.50) (model haiku))
          (roles (a :model opus :cwd \"./one/two\") (b :cwd \".\" :handle-ref \"x y\"))
          (state s (action (send-prompt :agent a :template t) (send-prompt :agent b :template t))))",
    );
    assert_eq!(read.metadata.max_iterations, 5);
    assert_eq!(read.metadata.max_budget_usd, Some(Usd::from_dollars(2.5)));
    assert_eq!(
        (read.metadata.model, read.roles[0].model.clone()),
        (Some(ModelName::HAIKU), ModelName::parse("opus").ok())
    );
    assert_eq!(read.roles[0].cwd.as_ref().map(Folder::as_str), Some("one/two"));
    assert_eq!((&*read.roles[0].handle, &*read.roles[1].handle), ("a", "x y"));
    assert!(read.roles[1].cwd.is_none());
}

#[test]
fn conditions_are_parsed_with_their_parameters() {
    let ProgramCondition::Signal { label, key, equals, consume, bind } =
        condition("(signal a/b :key @label :equals yes :consume true :as it)")
    else {
        panic!()
    };
    assert_eq!((&*label, consume, bind.as_deref()), ("a/b", true, Some("it")));
    assert!(matches!(key, Some(TextExpression::Label)));
    assert!(matches!(equals, Some(TextExpression::Text(text)) if text == "yes"));
    let ProgramCondition::And(all) = condition(
        "(and (or (after \"30m\") (at \"2026-01-15T14:30:00Z\")) (not (matches @branch \"^v[0-9]\")))",
    ) else {
        panic!()
    };
    let ProgramCondition::Or(either) = &all[0] else { panic!() };
    assert!(matches!(either[0], ProgramCondition::After(1_800_000)));
    assert!(matches!(either[1], ProgramCondition::At(Timestamp(1_768_487_400_000))));
    let ProgramCondition::Not(inner) = &all[1] else { panic!() };
    assert!(
        matches!(&**inner, ProgramCondition::Matches { pattern, .. } if pattern.is_match("v1"))
    );
    let InstructionKind::Wait(wait) = kind("(wait (signal l) :timeout \"8h\" :on-timeout s)")
    else {
        panic!()
    };
    assert_eq!((wait.timeout.after_ms, wait.timeout.state), (Some(28_800_000), Some(0)));
}

#[test]
fn actions_are_parsed_with_their_parameters() {
    let InstructionKind::Assert { label, key, value } = action("(assert l :key 5 :value true)")
    else {
        panic!()
    };
    assert_eq!(label, "l");
    assert!(matches!(key, Some(TextExpression::Text(text)) if text == "5"));
    assert!(matches!(value, Some(TextExpression::Text(text)) if text == "true"));
    assert!(matches!(action("(retract \"l/l\")"), InstructionKind::Retract { key: None, .. }));
    let InstructionKind::Log(text) = action("(log \"a ~a~~~a!\" @context/x (artifact b))") else {
        panic!()
    };
    assert_eq!(text.pieces, ["a ", "~", "!"]);
    assert!(matches!(
        text.arguments[..],
        [TextExpression::Context(_), TextExpression::Artifact(1)]
    ));
    let InstructionKind::RunFolder(run) =
        action("(run-folder :agent b :start \"review/START.md\" :input x)")
    else {
        panic!()
    };
    assert_eq!(run.folder.as_ref().map(Folder::as_str), Some("review"));
    assert_eq!((run.start.as_str(), run.role, &*run.request), ("START.md", 1, "s-1"));
    assert!(
        matches!(action("(run-folder :agent b :start own.yaml)"), InstructionKind::RunFolder(run) if run.folder.is_none())
    );
    let end = kind("(terminal :status failed :result (signal why))");
    assert!(matches!(
        end,
        InstructionKind::Terminal {
            failed: true,
            result: Some(TextExpression::Signal { key: None, .. })
        }
    ));
}

#[test]
fn signal_labels_and_context_names_are_collected() {
    let read = program(&state(
        "(wait (signal one :consume true :as it)) (action (log \"~a~a~a\" @it @context/k (signal two)) (assert three))",
    ));
    assert_eq!(read.labels.iter().map(String::as_str).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(read.context.iter().map(String::as_str).collect::<Vec<_>>(), ["k"]);
}
