//! The conditions of waits, and the choice of arms.

use super::{AWAIT, Play, SEND, program, state};

#[test]
fn a_signal_is_a_level_and_not_an_edge() {
    let text = state("(wait (signal go :key @workflow-id))");
    let mut play = Play::of(&text);
    assert_eq!(play.awaiting(), "(signal go :key r)");
    assert!(play.waits_for_outside() && play.due_in().is_none());
    play.fact("go", "other", "").fact("else", "r", "");
    assert_eq!(play.awaiting(), "(signal go :key r)");
    assert_eq!(play.fact("go", "r", "").completed_in(), "s");
    let mut early = Play::before(&text);
    early.assert("go", "r", "");
    assert_eq!(early.go().completed_in(), "s");
    let mut gone = Play::before(&text);
    gone.assert("go", "r", "");
    assert_eq!(gone.retract("go", "r").awaiting(), "(signal go :key r)");
}

#[test]
fn conditions_hold_as_they_say() {
    let facts = [("l", "k", "yes"), ("l", "k2", "no"), ("n", "", "")];
    let table = [
        ("(signal l)", true),
        ("(signal n)", true),
        ("(signal n :key k)", false),
        ("(signal n :key \"\")", true),
        ("(signal l :equals yes)", true),
        ("(signal l :equals no)", true),
        ("(signal l :key k :equals no)", false),
        ("(signal l :key @context/k)", false),
        ("(signal l :key k :equals (signal l :key k))", true),
        ("(signal l :equals (signal m))", false),
        ("(not (signal m))", true),
        ("(and (signal l) (not (signal m)))", true),
        ("(and (signal l) (signal m))", false),
        ("(or (signal m) (signal n))", true),
        ("(or (signal m) (not (signal n)))", false),
        ("(at \"1970-01-01T00:00:00Z\")", true),
        ("(at \"2999-01-01T00:00:00Z\")", false),
        ("(matches (signal l :key k) \"^y\")", true),
        ("(matches (signal m) \"\")", false),
        ("(matches @label \"^l$\")", true),
    ];
    for (condition, holds) in table {
        let arm = state(&format!("(branch (on {condition} (terminal :result yes)))"));
        let mut branch = Play::before(&arm);
        let mut wait = Play::before(&state(&format!("(wait {condition})")));
        for (label, key, value) in facts {
            branch.assert(label, key, value);
            wait.assert(label, key, value);
        }
        assert_eq!(branch.go().ended() == "yes", holds, "{condition}");
        assert_eq!(wait.go().is_over(), holds, "{condition}");
    }
}

#[test]
fn the_first_arm_that_holds_is_taken_and_without_one_it_goes_on() {
    let arms = |otherwise: &str| {
        state(&format!(
            "(branch (on (signal x) (action (log \"x\"))) (on (signal y) (action (log \"y\"))) {otherwise})
             (action (log \"after\"))"
        ))
    };
    let otherwise = "(otherwise (action (log \"none\")))";
    let table: [(&[&str], &str, &[&str]); 4] = [
        (&["x", "y"], otherwise, &["x", "after"]),
        (&["y"], otherwise, &["y", "after"]),
        (&[], otherwise, &["none", "after"]),
        (&[], "", &["after"]),
    ];
    for (facts, last, said) in table {
        let mut play = Play::before(&arms(last));
        for label in facts {
            play.assert(label, "", "");
        }
        assert_eq!(play.go().said, said, "{facts:?} {last}");
        assert_eq!(play.completed_in(), "s");
    }
}

#[test]
fn an_arm_that_was_chosen_stays_chosen() {
    let text = state(&format!(
        "(branch (on (signal x) {SEND} {AWAIT} (action (log \"x\"))) (otherwise (action (log \"none\"))))"
    ));
    let mut play = Play::before(&text);
    play.assert("x", "", "");
    play.go();
    assert_eq!(play.retract("x", "").answers("a", "done").said, ["x"]);
}

#[test]
fn what_is_taken_has_a_name_and_is_gone() {
    let text = state(
        "(wait (signal job :consume true :as job)) (action (log \"~a\" @job))
         (wait (signal job :consume true :as job)) (terminal :result @job)",
    );
    let mut play = Play::of(&text);
    assert_eq!(play.fact("job", "1", "one").said, ["one"]);
    assert_eq!(play.awaiting(), "(signal job)");
    assert_eq!(play.fact("job", "2", "two").ended(), "two");
    assert_eq!(play.done, ["take job 1", "take job 2"]);
}

#[test]
fn who_is_too_late_waits_on() {
    let mut play = Play::before(&state("(wait (signal job :consume true))"));
    play.too_late = true;
    play.assert("job", "1", "one");
    assert_eq!(play.go().awaiting(), "(signal job)");
    play.too_late = false;
    assert_eq!(play.fact("job", "2", "").done, ["take job 2"]);
    assert_eq!(play.completed_in(), "s");
}

#[test]
fn an_answer_is_awaited_inside_the_run() {
    let mut play = Play::of(&state(&format!("{SEND} {AWAIT} (terminal :result (response r))")));
    assert_eq!(play.awaiting(), "(transcript-response :request-id r)");
    assert!(!play.waits_for_outside());
    assert_eq!(play.asked, ["a: go"]);
    assert_eq!(play.answers("a", "gone").ended(), "gone");
}

#[test]
fn a_branch_sees_what_is_still_pending() {
    let first = format!(
        "(state s {SEND} (branch (on (transcript-response :request-id r) (goto t)) (otherwise (action (log \"not yet\")))) {AWAIT})"
    );
    let text = program(&[&first, "(state t (terminal))"]);
    let mut play = Play::of(&text);
    assert_eq!(play.said, ["not yet"]);
    assert_eq!(play.answers("a", "").completed_in(), "t");
}

#[test]
fn of_several_facts_the_oldest_is_taken() {
    let mut play = Play::before(&state(
        "(wait (signal job :consume true :as one)) (wait (signal job :consume true :as two))
         (action (log \"~a ~a\" @one @two))",
    ));
    play.assert("job", "z", "first");
    play.assert("job", "a", "second");
    play.assert("job", "m", "third");
    assert_eq!(play.go().said, ["first second"]);
}
