//! Timeouts and points in time.

use super::{Play, SEND, program, state};

#[test]
fn expired_wait_continues_in_on_timeout_state() {
    let late = "(state late (terminal :result late))";
    let wait =
        "(state s (wait (signal x) :timeout \"2s\" :on-timeout late) (terminal :result soon))";
    let mut play = Play::of(&program(&[wait, late]));
    assert_eq!(play.due_in(), Some(2000));
    assert!(play.waits_for_outside());
    play.after(1500).fact("y", "", "");
    assert_eq!(play.due_in(), Some(500), "it counts from when the wait began");
    assert_eq!(play.after(500).ended(), "late");
    assert_eq!(Play::of(&program(&[wait, late])).fact("x", "", "").ended(), "soon");
    let mut both = Play::of(&program(&[wait, late]));
    both.assert("x", "", "");
    assert_eq!(
        both.after(5000).ended(),
        "soon",
        "what came in time counts, however late it is looked at"
    );
    let mut down = Play::of(&program(&[wait, late]));
    assert_eq!(down.sleeps(5000).fact("x", "", "").ended(), "late", "it came too late");
}

#[test]
fn branch_after_timely_wait_sees_facts_asserted_after_deadline() {
    let text = program(&[
        "(state s (wait (signal x) :timeout \"2s\" :on-timeout late)
            (branch (on (signal y) (terminal :result both))) (terminal :result one))",
        "(state late (terminal :result late))",
    ]);
    let mut play = Play::of(&text);
    play.assert("x", "", "");
    play.sleeps(5000).assert("y", "", "");
    assert_eq!(play.go().ended(), "both", "what follows sees all that holds by then");
}

#[test]
fn expired_wait_without_on_timeout_fails_program() {
    let wait = "(await (transcript-response :request-id r) :timeout \"1m\")";
    let mut play = Play::of(&state(&format!("{SEND} {wait}")));
    assert!(play.waits_for_outside(), "time comes from outside");
    let error = play.after(60_000).ended().to_owned();
    assert!(error.starts_with("p.lisp:2:"), "{error}");
    assert!(
        error.ends_with(
            "(transcript-response :request-id r) did not come in time; say where to continue: :on-timeout STATE"
        ),
        "{error}"
    );
}

#[test]
fn wait_for_after_or_at_ends_at_its_time() {
    let mut play = Play::of(&state("(wait (or (signal x) (after \"10s\")))"));
    assert_eq!(play.awaiting(), "(or (signal x) (after \"10s\"))");
    assert_eq!(play.due_in(), Some(10_000));
    assert_eq!(play.after(9_999).due_in(), Some(1));
    assert_eq!(play.after(1).completed_in(), "s");
    let at = "(wait (at \"1970-01-01T00:16:41Z\") :timeout \"1h\")";
    let mut play = Play::of(&state(at));
    assert_eq!(play.due_in(), Some(1000), "the earlier of the two");
    assert_eq!(play.after(1000).completed_in(), "s");
}

#[test]
fn each_wait_counts_from_its_own_start() {
    let mut play = Play::of(&state("(wait (after \"1s\")) (wait (after \"1s\"))"));
    assert_eq!(play.after(1700).due_in(), Some(1000));
    assert_eq!(play.after(1000).completed_in(), "s");
}

#[test]
fn negated_after_is_reevaluated_at_its_due_time() {
    let text = state("(wait (and (not (after \"1s\")) (signal x)) :timeout \"5s\")");
    let mut play = Play::of(&text);
    assert_eq!(play.due_in(), Some(1000));
    assert_eq!(play.after(1000).due_in(), Some(4000));
}
