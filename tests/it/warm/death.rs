//! A warm process that dies or does not read is replaced without a failure; one that dies in a turn is a
//! crash like any other.

use rustix::process::Signal;
use serde_json::Value;

use super::{CALL, called, three};
use crate::support::{Test, alive, kill, wait_until, when};

/// Checks that no failure was recorded, and that the last turn had the whole history in a process of its own.
#[track_caller]
fn assert_unnoticed(test: &Test, history: &[&str]) {
    assert_eq!(test.events("turn_failed"), Vec::<Value>::new());
    let calls = test.calls();
    let last = calls.last().expect("there were turns");
    let before = calls.iter().rfind(|call| call.session == last.session && call.pid != last.pid);
    last.assert_resumes(before.expect("the session is an older one"));
    assert_eq!(last.turn_in_process, 0);
    assert_eq!(last.history, history);
    test.assert_no_survivors();
}

#[test]
fn idle_process_that_exits_is_replaced_without_a_failure() {
    let test = three().rule(when("next").die_idle().reply("<goto>LAST.md</goto>"));
    test.run(&["START.md", "--max-restarts", "0"]).ok().ended("main", "ok").stderr_lacks("again");
    assert_unnoticed(&test, &["start", "next"]);
}

#[test]
fn killed_idle_process_is_replaced_without_a_failure() {
    let test = called().rule(when("start").reply(CALL));
    let mut live = test.spawn(&["START.md", "--max-restarts", "0"]);
    live.wait_calls(2);
    let pid = test.calls()[0].pid;
    kill(pid, Signal::KILL);
    wait_until("its death", || !alive(pid));
    test.release("go");
    live.wait().ok().ended("main", "ok");
    assert_unnoticed(&test, &["start"]);
    assert_eq!(test.prompts(), ["start", "sub", "back with found"]);
}

#[test]
fn process_that_dies_before_reading_a_turn_is_replaced() {
    // The process is still busy after its result. So it is sent the next turn, and has not begun it when it
    // dies.
    let test = three().rule(when("next").hold_after("never").reply("<goto>LAST.md</goto>"));
    let mut live = test.spawn(&["START.md", "--max-restarts", "0"]);
    live.wait_file(&test.run_dir().join("steps/main-3-0.turn"));
    kill(test.calls()[1].pid, Signal::KILL);
    live.wait().ok().ended("main", "ok");
    assert_unnoticed(&test, &["start", "next"]);
    assert_eq!(test.prompts(), ["start", "next", "last"]);
}

#[test]
fn lingering_process_that_takes_no_turn_is_replaced() {
    let test = three().rule(when("next").linger().ignore_term().reply("<goto>LAST.md</goto>"));
    let arguments = ["START.md", "--max-restarts", "0", "--idle-timeout", "2s"];
    test.run(&arguments).ok().ended("main", "ok");
    assert_unnoticed(&test, &["start", "next"]);
}

#[test]
fn stopped_process_that_reads_no_prompt_is_replaced() {
    // A stopped process reads nothing, so even the prompt cannot be written if it is large.
    let test = called()
        .prompt("BACK.md", &format!("back with {{{{result}}}} {}", "x".repeat(300_000)))
        .rule(when("start").reply(CALL));
    let mut live = test.spawn(&["START.md", "--max-restarts", "0", "--idle-timeout", "2s"]);
    live.wait_calls(2);
    kill(test.calls()[0].pid, Signal::STOP);
    test.release("go");
    live.wait().ok().ended("main", "ok");
    assert_unnoticed(&test, &["start"]);
}

#[test]
fn crash_in_a_further_turn_restarts_it_from_clean_history() {
    let test =
        three().rule(when("next").once().exit(3)).rule(when("next").reply("<goto>LAST.md</goto>"));
    test.run(&["START.md"]).ok().ended("main", "ok");
    let failed = test.events("turn_failed");
    assert_eq!((failed.len(), failed[0]["cause"].as_str()), (1, Some("crash")));
    let [start, crashed, again, last] = test.calls().try_into().expect("four turns");
    crashed.assert_continues(&start);
    again.assert_branches(&start);
    assert!(again.has("--resume-session-at"));
    assert_eq!(again.history, ["start"], "no half turn stays");
    assert_ne!(again.pid, start.pid);
    last.assert_continues(&again);
}

#[test]
fn process_that_answered_with_an_error_takes_no_further_turn() {
    let test = three()
        .rule(when("next").once().error(500, "API Error: 500").cost(0.03))
        .rule(when("next").reply("<goto>LAST.md</goto>").cost(0.02));
    test.run(&["START.md"]).ok().ended("main", "ok");
    let [start, refused, again, _] = test.calls().try_into().expect("four turns");
    refused.assert_continues(&start);
    again.assert_branches(&start);
    assert_eq!(again.history, ["start"]);
    let total = test.status()["total_cost_usd"].as_f64().expect("a number");
    assert!((total - 0.11).abs() < 1e-9, "what failed is paid for, once: {total}");
}

#[test]
fn unsolicited_answer_is_ignored() {
    for _ in 0..5 {
        let test = three()
            .rule(when("next").unsolicited("<goto>START.md</goto>").reply("<goto>LAST.md</goto>"));
        test.run(&["START.md"]).ok().ended("main", "ok");
        assert_eq!(test.prompts(), ["start", "next", "last"]);
        let calls = test.calls();
        calls[2].assert_continues(&calls[1]);
    }
}
