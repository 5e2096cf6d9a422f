//! Failures, and their consequences.

use super::{AWAIT, Play, SEND, program, state};

fn fails_with(play: &Play, why: &str) {
    let error = play.ended();
    assert!(error.starts_with("p.lisp:2:") && error.contains(why), "{error}");
}

#[test]
fn a_request_that_failed_fails_who_awaits_it() {
    let mut play = Play::of(&state(&format!("{SEND} {AWAIT}")));
    play.fails("a", "no disk");
    fails_with(
        &play,
        "the request r failed: in p.lisp#a: no disk; say where to continue: :on-error STATE",
    );
    let mut value = Play::of(&state(&format!("{SEND} (action (log \"~a\" (response r)))")));
    value.fails("a", "no disk");
    fails_with(&value, "the request r failed: in p.lisp#a: no disk");
}

#[test]
fn a_request_that_failed_leads_elsewhere_if_the_program_says_so() {
    let other = "(state other (terminal :result saved))";
    let failing = [
        "(await (transcript-response :request-id r :on-error other))",
        "(await (or (signal x) (transcript-response :request-id r :on-error other)))",
        "(await (not (transcript-response :request-id r :on-error other)) :timeout \"1s\")",
    ];
    for wait in failing {
        let mut play = Play::of(&program(&[&format!("(state s {SEND} {wait})"), other]));
        if !play.is_over() {
            assert_eq!(play.fails("a", "no disk").ended(), "saved", "{wait}");
        }
    }
    let arm =
        "(branch (on (transcript-response :request-id r :on-error other) (terminal :result arm)))";
    let held = format!("(state s {SEND} (wait (signal x)) {arm})");
    let mut play = Play::of(&program(&[&held, other]));
    play.fails("a", "no disk");
    assert_eq!(play.fact("x", "", "").ended(), "saved");
}

#[test]
fn a_failure_that_nobody_awaits_is_told_at_the_end() {
    let mut play = Play::of(&state(&format!("{SEND} (wait (signal x))")));
    play.fails("a", "no disk").fact("x", "", "");
    assert_eq!(play.said, ["warning: the request r failed: in p.lisp#a: no disk"]);
    assert_eq!(play.completed_in(), "s");
}

#[test]
fn a_role_that_failed_can_be_asked_again() {
    let retry = format!(
        "(state s {SEND} (await (transcript-response :request-id r :on-error s)) (terminal :result (response r)))"
    );
    let mut play = Play::of(&program(&[&retry]));
    play.fails("a", "no disk");
    assert_eq!(play.asked, ["a: go", "a: go"]);
    assert_eq!(play.answers("a", "now").ended(), "now");
}

#[test]
fn what_is_awaited_has_to_have_been_sent() {
    let send = format!("(branch (on (signal x) {SEND}))");
    fails_with(&Play::of(&state(&format!("{send} {AWAIT}"))), "the request r was never sent");
    let value = format!("{send} (action (log \"~a\" (response r)))");
    fails_with(&Play::of(&state(&value)), "the request r was never sent");
}

#[test]
fn what_is_not_given_is_asked_for() {
    let table = [("@branch", "--branch NAME"), ("@context/who", "--context who=TEXT")];
    for (value, hint) in table {
        fails_with(&Play::of(&state(&format!("(action (log \"~a\" {value}))"))), hint);
    }
    let early =
        "(branch (on (signal x) (wait (signal y :consume true :as it)))) (action (log \"~a\" @it))";
    fails_with(&Play::of(&state(early)), "nothing has been taken as it yet");
}

#[test]
fn a_program_can_fail_by_itself() {
    let plain = Play::of(&state("(terminal :status failed)"));
    fails_with(&plain, "it ended as failed in the state s");
    let why = Play::of(&state("(terminal :status failed :result \"the tests are red\")"));
    fails_with(&why, "the tests are red");
}

#[test]
fn what_cannot_be_done_outside_fails_it() {
    let mut play = Play::before(&state("(action (assert l))"));
    play.fails_outside = Some("no space left".to_owned());
    fails_with(play.go(), "no space left");
}
