//! Waits for the states of other runs: those of a run that has ended otherwise end at once.

use super::{Play, program, state};

const COMPLETED: &str = "(signal workflow/state :key f :equals completed)";

#[test]
fn wait_for_a_run_that_has_ended_otherwise_fails_at_once_and_names_it() {
    let mut play = Play::of(&state(&format!("(wait {COMPLETED})")));
    play.fact("workflow/state", "f", "running s").fact("workflow/state", "g", "failed");
    assert!(!play.is_over(), "it has not ended");
    play.fact("workflow/state", "f", "failed");
    assert_eq!(
        play.ended(),
        "p.lisp:2:10: (signal workflow/state :key f :equals completed) can never hold: the run f has ended as failed; wait for that too, and choose by it in a branch: (or … (signal workflow/state :key f :equals failed))"
    );
    let text = state("(wait (matches (signal workflow/state :key f) \"^running review$\"))");
    let mut play = Play::of(&text);
    assert_eq!(play.awaiting(), "(matches (signal workflow/state :key f) \"^running review$\")");
    play.fact("workflow/state", "f", "completed");
    assert!(play.ended().contains("the run f has ended as completed"), "{}", play.ended());
}

#[test]
fn program_that_waits_for_either_end_or_for_more_continues() {
    let either = format!("(wait (or {COMPLETED} (signal workflow/state :key f :equals failed)))");
    let text = program(&[&format!(
        "(state s {either} (branch (on {COMPLETED} (terminal :result good)) (otherwise (terminal :result bad))))"
    )]);
    assert_eq!(Play::of(&text).fact("workflow/state", "f", "failed").ended(), "bad");
    assert_eq!(Play::of(&text).fact("workflow/state", "f", "completed").ended(), "good");

    let more = state(&format!("(wait (or {COMPLETED} (signal go)))"));
    let mut play = Play::of(&more);
    play.fact("workflow/state", "f", "failed");
    assert!(!play.is_over(), "the signal may come");
    assert_eq!(play.fact("go", "", "").completed_in(), "s");

    let late = state(&format!("(wait {COMPLETED} :timeout \"1s\" :on-timeout s)"));
    let mut play = Play::of(&late);
    play.fact("workflow/state", "f", "failed");
    assert_eq!(play.due_in(), Some(1000), "it ends by its timeout");

    let any = state("(wait (signal workflow/state :equals completed))");
    let mut play = Play::of(&any);
    play.fact("workflow/state", "f", "failed");
    assert!(!play.is_over(), "another run may complete");
}

#[test]
fn other_facts_with_another_value_may_still_change() {
    let mut play = Play::of(&state("(wait (signal plan :key f :equals completed))"));
    play.fact("plan", "f", "failed");
    assert!(!play.is_over());
}
