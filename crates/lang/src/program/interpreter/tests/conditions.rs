//! The conditions of waits, and the choice of arms.

use super::{AWAIT, Play, SEND, program, state};

#[test]
fn signal_condition_is_level_triggered() {
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
fn each_condition_evaluates_as_expected() {
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
fn branch_takes_first_true_arm_or_continues() {
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
    for (facts, last, shown) in table {
        let mut play = Play::before(&arms(last));
        for label in facts {
            play.assert(label, "", "");
        }
        assert_eq!(play.go().shown, shown, "{facts:?} {last}");
        assert_eq!(play.completed_in(), "s");
    }
}

#[test]
fn chosen_branch_arm_survives_retraction() {
    let text = state(&format!(
        "(branch (on (signal x) {SEND} {AWAIT} (action (log \"x\"))) (otherwise (action (log \"none\"))))"
    ));
    let mut play = Play::before(&text);
    play.assert("x", "", "");
    play.go();
    assert_eq!(play.retract("x", "").answers("a", "done").shown, ["x"]);
}

#[test]
fn consumed_fact_is_bound_to_name_and_removed() {
    let text = state(
        "(wait (signal job :consume true :as job)) (action (log \"~a\" @job))
         (wait (signal job :consume true :as job)) (terminal :result @job)",
    );
    let mut play = Play::of(&text);
    assert_eq!(play.fact("job", "1", "one").shown, ["one"]);
    assert_eq!(play.awaiting(), "(signal job)");
    assert_eq!(play.fact("job", "2", "two").ended(), "two");
    assert_eq!(play.done, ["take job 1", "take job 2"]);
}

#[test]
fn wait_continues_when_fact_was_consumed_by_another() {
    let mut play = Play::before(&state("(wait (signal job :consume true))"));
    play.too_late = true;
    play.assert("job", "1", "one");
    assert_eq!(play.go().awaiting(), "(signal job)");
    play.too_late = false;
    assert_eq!(play.fact("job", "2", "").done, ["take job 2"]);
    assert_eq!(play.completed_in(), "s");
}

#[test]
fn await_of_answer_is_not_external_wait() {
    let mut play = Play::of(&state(&format!("{SEND} {AWAIT} (terminal :result (response r))")));
    assert_eq!(play.awaiting(), "(transcript-response :request-id r)");
    assert!(!play.waits_for_outside());
    assert_eq!(play.asked, ["a: go"]);
    assert_eq!(play.answers("a", "gone").ended(), "gone");
}

#[test]
fn branch_on_pending_request_takes_otherwise_arm() {
    let first = format!(
        "(state s {SEND} (branch (on (transcript-response :request-id r) (goto t)) (otherwise (action (log \"not yet\")))) {AWAIT})"
    );
    let text = program(&[&first, "(state t (terminal))"]);
    let mut play = Play::of(&text);
    assert_eq!(play.shown, ["not yet"]);
    assert_eq!(play.answers("a", "").completed_in(), "t");
}

#[test]
fn oldest_matching_fact_is_consumed_first() {
    let mut play = Play::before(&state(
        "(wait (signal job :consume true :as one)) (wait (signal job :consume true :as two))
         (action (log \"~a ~a\" @one @two))",
    ));
    play.assert("job", "z", "first");
    play.assert("job", "a", "second");
    play.assert("job", "m", "third");
    assert_eq!(play.go().shown, ["first second"]);
}

#[test]
fn wait_that_nothing_can_end_fails_at_once() {
    let after_answer = |condition: &str| {
        let mut play = Play::of(&state(&format!("{SEND} {AWAIT}\n(wait {condition})")));
        play.answers("a", "no").ended().to_owned()
    };
    for (condition, shown) in [
        ("(matches (response r) \"^yes$\")", "(matches (response r) \"^yes$\") can never hold"),
        ("(matches (feedback a) \"^yes$\")", "can never hold"),
        (
            "(not (transcript-response :request-id r))",
            "(not (transcript-response :request-id r)) can",
        ),
        ("(and (signal x) (matches (response r) \"yes\"))", "can never hold"),
        ("(and (signal x) (not (signal x :key k)) (signal x :key k))", "can never hold"),
    ] {
        let error = after_answer(condition);
        assert!(error.starts_with("p.lisp:3:1: "), "{error}");
        assert!(error.contains(shown), "{error}");
    }
}

#[test]
fn wait_that_something_can_end_does_not_fail() {
    // `x` holds with the value `yes` from the beginning where that is needed to wait at all.
    for (condition, x) in [
        ("(or (signal x) (matches (response r) \"yes\"))", false),
        ("(not (matches (signal x) \"yes\"))", true),
        ("(and (signal x) (signal y))", false),
        ("(or (after \"1h\") (matches (response r) \"yes\"))", false),
    ] {
        let mut play = Play::before(&state(&format!("{SEND} {AWAIT}\n(wait {condition})")));
        if x {
            play.assert("x", "", "yes");
        }
        play.go().answers("a", "no");
        assert!(!play.is_over(), "{condition}");
        play.assert("x", "", "no");
        play.assert("y", "", "");
        assert_eq!(play.after(3_600_000).completed_in(), "s", "{condition}");
    }
    let mut timed = Play::of(&state(&format!(
        "{SEND} {AWAIT}\n(wait (matches (response r) \"yes\") :timeout \"1s\" :on-timeout s)"
    )));
    timed.answers("a", "no");
    assert_eq!(timed.due_in(), Some(1000));
    let two = "(action (send-prompt :agent b :template x :request-id q)) (wait (matches (response q) \"yes\"))";
    let mut pending = Play::of(&state(two));
    assert!(!pending.is_over());
    assert!(pending.answers("b", "no").ended().contains("can never hold"));
}

#[test]
fn first_part_of_or_that_holds_takes_its_fact() {
    let text = state(
        "(wait (or (signal stop :consume true :as stop) (signal job :consume true :as job) (after \"1h\")))
         (terminal :result @job/key)",
    );
    let mut play = Play::of(&text);
    assert_eq!(play.fact("job", "7", "work").ended(), "7");
    assert_eq!(play.done, ["take job 7"]);
    let mut both = Play::before(&text);
    both.assert("job", "7", "work");
    both.assert("stop", "", "now");
    assert_eq!(both.go().ended(), "", "the name of the other part is empty");
    assert_eq!(both.done, ["take stop "]);
    let mut late = Play::of(&text);
    assert_eq!(late.after(3_600_000).ended(), "");
    assert!(late.done.is_empty());
}

#[test]
fn verdict_chooses_an_arm() {
    let send = "(action (send-prompt :agent a :template t :expect (APPROVE REVISE) :request-id r))";
    let text = state(&format!(
        "{send} {AWAIT} (branch (on (verdict r) APPROVE (terminal :result (verdict r))) (on (verdict r REVISE) (terminal :result again)))"
    ));
    assert_eq!(Play::of(&text).answers("a", "Well, APPROVE.").ended(), "APPROVE");
    assert_eq!(Play::of(&text).answers("a", "REVISE it").ended(), "again");
    let error = Play::of(&text).answers("a", "both: APPROVE, REVISE").ended().to_owned();
    assert!(error.contains("the answer to r has no verdict: it has APPROVE and REVISE"), "{error}");
    let waits = state(&format!("{send} (wait (verdict r APPROVE)) (terminal :result good)"));
    assert_eq!(Play::of(&waits).awaiting(), "(verdict r APPROVE)");
    assert_eq!(Play::of(&waits).answers("a", "APPROVE").ended(), "good");
    assert!(Play::of(&waits).answers("a", "REVISE").ended().contains("can never hold"));
}
