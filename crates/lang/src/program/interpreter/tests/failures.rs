//! Failures, and their consequences.

use super::{AWAIT, Play, SEND, program, state};

fn fails_with(play: &Play, why: &str) {
    let error = play.ended();
    assert!(error.starts_with("p.lisp:2:") && error.contains(why), "{error}");
}

#[test]
fn failed_request_fails_program_that_awaits_it() {
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
fn failed_request_continues_in_on_error_state() {
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
fn unawaited_failed_request_is_reported_at_end() {
    let mut play = Play::of(&state(&format!("{SEND} (wait (signal x))")));
    play.fails("a", "no disk").fact("x", "", "");
    assert_eq!(play.shown, ["warning: the request r failed: in p.lisp#a: no disk"]);
    assert_eq!(play.completed_in(), "s");
}

#[test]
fn failed_role_can_be_asked_again() {
    let retry = format!(
        "(state s {SEND} (await (transcript-response :request-id r :on-error s)) (terminal :result (response r)))"
    );
    let mut play = Play::of(&program(&[&retry]));
    play.fails("a", "no disk");
    assert_eq!(play.asked, ["a: go", "a: go"]);
    assert_eq!(play.answers("a", "now").ended(), "now");
}

#[test]
fn await_of_request_never_sent_fails_program() {
    let send = format!("(branch (on (signal x) {SEND}))");
    fails_with(&Play::of(&state(&format!("{send} {AWAIT}"))), "the request r was never sent");
    let value = format!("{send} (action (log \"~a\" (response r)))");
    fails_with(&Play::of(&state(&value)), "the request r was never sent");
}

#[test]
fn missing_branch_or_context_fails_with_option_hint() {
    let table = [("@branch", "--base-branch NAME"), ("@context/who", "--context who=TEXT")];
    for (value, hint) in table {
        fails_with(&Play::of(&state(&format!("(action (log \"~a\" {value}))"))), hint);
    }
    let early =
        "(branch (on (signal x) (wait (signal y :consume true :as it)))) (action (log \"~a\" @it))";
    fails_with(&Play::of(&state(early)), "nothing has been taken as it yet");
}

#[test]
fn terminal_with_status_failed_fails_program() {
    let plain = Play::of(&state("(terminal :status failed)"));
    fails_with(&plain, "it ended as failed in the state s");
    let why = Play::of(&state("(terminal :status failed :result \"the tests are red\")"));
    fails_with(&why, "the tests are red");
}

#[test]
fn failed_activity_fails_program() {
    let mut play = Play::before(&state("(action (assert l))"));
    play.fails_outside = Some("no space left".to_owned());
    fails_with(play.go(), "no space left");
}
