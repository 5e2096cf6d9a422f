//! Tests of the seam: each language by what it yields for an agent that enters its state.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Map, json};

use super::*;
use crate::graph::profile::GraphProfile;
use crate::graph::read::read as read_graph;
use crate::graph::vocabulary::GraphVocabulary;
use crate::program::read::read as read_program;
use raymond_model::advance::AdvanceNext;
use raymond_model::decide::TurnJudgement;
use raymond_model::event::NextAction;
use raymond_model::operation::Operation;
use raymond_model::supervision::SupervisionPolicy;
use raymond_model::tests::scene::{Scene, goto, state};
use raymond_model::transition::Transition;

/// Returns a run whose agent is in the state of a file.
fn in_state(file: &str) -> Scene {
    let mut scene = Scene::begin();
    scene.take("main", goto(file));
    scene
}

fn resumed(workflow: &LoadedWorkflow, scene: &Scene, input: ResumeInput) -> ResumeOutcome {
    resumed_with(workflow, scene, input, &files(&[]))
}

fn resumed_with(
    workflow: &LoadedWorkflow,
    scene: &Scene,
    input: ResumeInput,
    source: &BTreeMap<String, String>,
) -> ResumeOutcome {
    let (builtins, settings) = (Map::new(), &scene.run.settings);
    let environment = ResumeEnvironment {
        budget_left: None,
        agent: scene.agent("main"),
        run: &scene.run.workflow_id,
        facts: &scene.run.facts,
        settings,
        granted_rules: &scene.run.approval_rules,
        ceiling: &PermissionCeiling::of(settings),
        source,
        workflows: &WorkflowCache::default(),
        builtins: &builtins,
        working_dir: None,
        limits: TurnTimeouts { timeout_ms: 1000, ..SupervisionPolicy::default().limits() },
        results_file: "results/main-1.json".to_owned(),
        now: Timestamp(0),
    };
    resume(workflow, SuspendedExecution::Entered, input, &environment)
}

fn files(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// Returns the turn that is prepared for the agent's state, with a permit.
fn prepared(scene: &Scene, source: &BTreeMap<String, String>) -> PreparedTurn {
    let input = ResumeInput::Permitted(TurnPermit::default());
    let outcome = resumed_with(&LoadedWorkflow::Prompts, scene, input, source);
    let ResumeOutcome::Turn(prepared) = outcome else { panic!("{outcome:?}") };
    *prepared
}

/// Returns the judgement on a reply to a prepared turn.
fn judged(scene: &Scene, source: &BTreeMap<String, String>, text: &str) -> TurnJudgement {
    let reply = TurnReply { text: text.to_owned(), ..TurnReply::default() };
    let outcome = prepared(scene, source).rules.outcome(&reply, source);
    let ReplyOutcome::Judged(judged) = outcome else { panic!("{outcome:?}") };
    judged.judgement
}

/// Returns a graph whose first node has these actions.
fn graph(actions: &serde_json::Value) -> LoadedWorkflow {
    let text = json!({
        "name": "flow", "version": "1.0.0", "description": "a flow", "entry_preconditions": [],
        "initial_state": {}, "start_node": "start",
        "nodes": {"start": {"type": "action", "actions": actions, "on_success": "done", "on_failure": "done"}},
        "endings": {"done": {"type": "success", "message": "done"}},
    });
    let files: BTreeMap<String, String> = BTreeMap::new();
    let vocabulary = GraphVocabulary::default();
    let reading = read_graph(
        "flow.yaml",
        None,
        &text.to_string(),
        &vocabulary,
        &files,
        GraphProfile::Lenient,
    );
    LoadedWorkflow::Graph(Rc::new(reading.graph.expect("a graph")))
}

#[test]
fn prompt_needs_turn() {
    let scene = Scene::begin();
    let next = resumed(&LoadedWorkflow::Prompts, &scene, ResumeInput::Entered);
    assert!(matches!(next, ResumeOutcome::AwaitsPermit));
}

#[test]
fn prompt_is_prepared_with_permit_and_its_reply_judged_by_its_rules() {
    let scene = in_state("ASK.md");
    let policy = "---\nallowed_transitions:\n  - { tag: goto, target: NEXT.md }\n---\n";
    let text = format!("{policy}Say {{{{gone}}}} in {{{{state}}}}");
    let source = files(&[("ASK.md", text.as_str()), ("NEXT.md", "x")]);
    let turn = prepared(&scene, &source);
    assert_eq!((turn.input.prompt.as_str(), turn.unfilled.len()), ("Say {{gone}} in ASK.md", 1));
    assert_eq!(turn.input.turn, scene.agent("main").turn_id());
    let accepted = judged(&scene, &source, "<goto>NEXT.md</goto>");
    assert!(matches!(accepted, TurnJudgement::Accepted(_)), "{accepted:?}");
    let violated = judged(&scene, &source, "<result>x</result>");
    assert!(matches!(&violated, TurnJudgement::Violated { reminder: Some(_), .. }), "{violated:?}");
}

#[test]
fn unreadable_prompt_fails_once_it_has_permit() {
    let scene = in_state("GONE.md");
    let next = resumed(&LoadedWorkflow::Prompts, &scene, ResumeInput::Entered);
    assert!(matches!(next, ResumeOutcome::AwaitsPermit));
    let input = ResumeInput::Permitted(TurnPermit::default());
    let next = resumed(&LoadedWorkflow::Prompts, &scene, input);
    let ResumeOutcome::Failed(failure) = next else { panic!("{next:?}") };
    assert_eq!(failure.cause, FailureCause::Workflow);
    assert!(failure.message.contains("GONE.md"), "{}", failure.message);
}

#[test]
fn state_with_join_waits_before_its_prompt_is_asked() {
    let scene = in_state("SUM.md");
    let source = files(&[("SUM.md", "---\njoin: all\n---\nSum up {{results}}")]);
    for input in [ResumeInput::Entered, ResumeInput::Permitted(TurnPermit::default())] {
        let next = resumed_with(&LoadedWorkflow::Prompts, &scene, input, &source);
        assert!(matches!(next, ResumeOutcome::JoinDue(_)), "{next:?}");
    }
}

#[test]
fn state_that_widens_permissions_fails_before_its_turn() {
    let scene = in_state("WIDE.md");
    let source = files(&[("WIDE.md", "---\npermission_mode: bypassPermissions\n---\nx")]);
    let input = ResumeInput::Permitted(TurnPermit::default());
    let next = resumed_with(&LoadedWorkflow::Prompts, &scene, input, &source);
    let ResumeOutcome::Failed(failure) = next else { panic!("{next:?}") };
    assert!(failure.message.contains("permission_mode"), "{}", failure.message);
}

#[test]
fn graph_reads_before_it_is_recorded_and_records_before_it_writes() {
    let scene = in_state("flow.yaml");
    let reads = graph(&json!([{"type": "read_file", "path": "a", "store_as": "computed.a"}]));
    let next = resumed(&reads, &scene, ResumeInput::Entered);
    let ResumeOutcome::Needs { activity: Activity::Operation(operation), suspended } = next else {
        panic!("{next:?}")
    };
    assert_eq!(operation, Operation::ReadFile { path: "a".to_owned() });
    assert!(matches!(suspended, SuspendedExecution::Walk(_)));
    let writes = graph(&json!([{"type": "write_file", "path": "a", "content": "x"}]));
    let next = resumed(&writes, &scene, ResumeInput::Entered);
    let ResumeOutcome::Advanced(advance) = next else { panic!("{next:?}") };
    assert_eq!(advance.next, AdvanceNext::Action(NextAction::Operation("write_file".to_owned())));
}

#[test]
fn program_begins_before_it_advances() {
    let files: BTreeMap<String, String> = BTreeMap::new();
    let reading = read_program("p.lisp", "(workflow w (state s (terminal)))", &files);
    let program = reading.program.expect("a program");
    let workflow = LoadedWorkflow::Program(Rc::new(program), "p.lisp".to_owned());
    let next = resumed(&workflow, &in_state("p.lisp"), ResumeInput::Entered);
    let ResumeOutcome::Begins { definition, started } = next else { panic!("{next:?}") };
    assert_eq!((&*started.start, definition.file.as_str()), ("s", "p.lisp"));
}

#[test]
fn script_runs_and_its_last_line_is_the_reply() {
    let files: BTreeMap<String, String> = [("b.sh".to_owned(), "echo".to_owned())].into();
    let script = Rc::new(PreparedScript::read(&state("b.sh"), None, &files).expect("a script"));
    let (workflow, scene) = (LoadedWorkflow::Script(script), in_state("b.sh"));
    let next = resumed(&workflow, &scene, ResumeInput::Entered);
    let ResumeOutcome::Needs { activity: Activity::Operation(operation), .. } = next else {
        panic!("{next:?}")
    };
    let Operation::RunScript { file, interpreter, timeout_ms, .. } = operation else {
        panic!("{operation:?}")
    };
    assert_eq!((file.as_str(), interpreter, timeout_ms), ("b.sh", vec!["sh".to_owned()], 1000));
    let output = ActivityResult::Value(json!({"stdout": "x\n<result>y</result>\n"}));
    let next = resumed(&workflow, &scene, ResumeInput::Activity(Ok(output)));
    let ResumeOutcome::Judged { reply, .. } = next else { panic!("{next:?}") };
    let TurnJudgement::Accepted(accepted) = reply.judgement else { panic!("{reply:?}") };
    let Transition::Result { payload, .. } = accepted.transition else { panic!("{accepted:?}") };
    assert_eq!(payload, "y");
    let silent = ActivityResult::Value(json!({"stdout": "no tag\n"}));
    let next = resumed(&workflow, &scene, ResumeInput::Activity(Ok(silent)));
    let ResumeOutcome::Failed(failure) = next else { panic!("{next:?}") };
    assert_eq!(failure.cause, FailureCause::Protocol);
    assert!(failure.message.contains("its last line is `no tag`"), "{}", failure.message);
    let unquoted = ActivityResult::Value(json!({"stdout": "<call return=B.md>A.md</call>\n"}));
    let next = resumed(&workflow, &scene, ResumeInput::Activity(Ok(unquoted)));
    let ResumeOutcome::Failed(failure) = next else { panic!("{next:?}") };
    assert!(failure.message.contains("; a shell takes quotes within "), "{}", failure.message);
    let failed = resumed(&workflow, &scene, ResumeInput::Activity(Err("it broke".to_owned())));
    assert!(
        matches!(failed, ResumeOutcome::Failed(failure) if failure.cause == FailureCause::Crash)
    );
    let refused = resumed(&workflow, &scene, ResumeInput::Refused("no trust".to_owned()));
    assert!(
        matches!(refused, ResumeOutcome::Failed(failure) if failure.cause == FailureCause::Workflow)
    );
}
