//! Starts of programs as runs of their own: their values, the id that they give, and their failures.

use serde_json::Value;

use super::{Play, program, state};
use crate::domain::activity::ActivityResult;
use crate::domain::id::RunId;
use crate::domain::run_origin::WorkflowStart;

/// Starts a program as the run `r`, or fails as the play says.
pub(super) fn started(play: &mut Play, start: &WorkflowStart) -> Result<ActivityResult, String> {
    play.done.push(serde_json::to_string(start).expect("JSON"));
    let outcome = play.outputs.pop_front().unwrap_or(Ok(Value::Null));
    outcome.map(|_| ActivityResult::Started(RunId::parse("r").expect("an id")))
}

#[test]
fn start_is_given_label_branch_and_context_and_gives_the_run() {
    let text = state(
        "(action (start-workflow other :label \"~a-~a\" :args (@context/k x) :branch @label :context (input \"text\" item @context/k) :as run)
          (log \"~a~a\" @run @run/error))",
    );
    let mut play = Play::of(&text);
    let expected =
        r#"{"program":"other","label":"v-x","branch":"l","context":{"input":"text","item":"v"}}"#;
    assert_eq!(play.done, [expected]);
    assert_eq!(play.said, ["has started other as the run r", "r"]);
    assert_eq!(play.completed_in(), "s");
    play = Play::of(&state("(action (start-workflow other :label @context/k))"));
    assert_eq!(play.done, [r#"{"program":"other","label":"v"}"#]);
}

#[test]
fn start_waits_for_its_values_and_loop_may_wait_for_it_alone() {
    let mut play = Play::of(&state("(action (start-workflow other :label (signal job)))"));
    assert!(play.done.is_empty());
    play.fact("job", "", "one");
    assert_eq!(play.done, [r#"{"program":"other","label":"one"}"#]);
    let text = program(&[
        "(state s (loop :max 3 :on-max t (action (start-workflow other))))",
        "(state t (terminal))",
    ]);
    let play = Play::of(&text);
    assert_eq!(play.done, [r#"{"program":"other"}"#; 3]);
}

#[test]
fn failed_start_fails_program_or_leads_to_its_state() {
    let fails = |start: &str| {
        let bad = "(state bad (terminal :result @x/error))";
        let text = program(&[&format!("(state s (action {start}))"), "(state t (terminal))", bad]);
        let mut play = Play::before(&text);
        play.outputs.push_back(Err("it is not trusted".to_owned()));
        play.go();
        play.ended().to_owned()
    };
    assert_eq!(fails("(start-workflow other :as x :on-error bad)"), "it is not trusted");
    assert_eq!(
        fails("(start-workflow other :as x)"),
        "p.lisp:2:18: other is not started: it is not trusted"
    );
}
