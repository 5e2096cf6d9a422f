//! Joins that are not decided in time.

use super::{each, error, joins, place, spawn, wait_end};
use crate::support::{RunningRaymond, Test, when};

/// Returns a workflow in which one worker ends at once and another is held at `go`.
fn slow(join: &str) -> Test {
    place(join)
        .prompt("LATE.md", "late {{results}}")
        .rule(when("start").reply(&each("[\"quick\", \"slow\"]")))
        .rule(when("work on quick").reply("<result>quick</result>"))
        .rule(when("work on slow").hold_before("go").reply("<result>slow</result>"))
        .rule(when("merge").reply("<result>merged</result>"))
        .rule(when("late").reply("<result>late</result>"))
}

/// Starts the workflow, and waits until the join is over; the other worker is still held.
fn joined(test: &Test) -> RunningRaymond<'_> {
    let mut live = spawn(test, &[]);
    live.wait_event("joined", 1);
    assert_eq!(test.events("joined")[0]["outcome"], "late");
    live
}

#[test]
fn join_timeout_fails_agent() {
    let test = slow("join: all\ntimeout: 1s");
    let mut live = joined(&test);
    wait_end(&mut live, "main");
    test.release("go");
    live.wait().code(1).ended("main.2", "slow");
    let why = error(&test, "main");
    assert!(why.contains("of the 2 agents it waited for had finished after 1s (join: all); on_timeout: keep continues with those"), "{why}");
    assert!(test.calls_with("merge").is_empty());
}

#[test]
fn on_timeout_keep_continues_with_partial_results() {
    let test = slow("join: all\ntimeout: 1s\non_timeout: keep");
    let mut live = joined(&test);
    wait_end(&mut live, "main");
    test.release("go");
    live.wait().ok().ended("main.2", "slow");
    let prompt = &test.calls_with("merge")[0].prompt;
    assert!(prompt.contains(r#""id":"main.2","state":"WORKER.md","status":"running""#), "{prompt}");
}

#[test]
fn on_timeout_state_is_entered_and_rest_is_stopped() {
    let test = slow("join: all\ntimeout: 1s\non_timeout: LATE.md\nrest: stop");
    let live = joined(&test);
    live.wait().ok().ended("main", "late");
    let prompt = &test.calls_with("late")[0].prompt;
    assert!(prompt.contains(r#""id":"main.2","state":"WORKER.md","status":"stopped""#), "{prompt}");
    assert!(test.calls_with("merge").is_empty());
    test.assert_no_survivors();
}

#[test]
fn join_waits_for_permanent_worker_until_timeout() {
    let test = place("join: all\ntimeout: 2s\non_timeout: keep\nrest: stop")
        .prompt(
            "WORKER.md",
            "---\nsupervision: { restart: permanent, max_restarts: 1000000 }\n---\nwork",
        )
        .rule(when("start").reply(&each("[1]")))
        .rule(when("work").times(3).reply("<result>again</result>"))
        .rule(when("work").hold_before("never").reply("<result>again</result>"))
        .rule(when("merge").reply("<result>merged</result>"));
    spawn(&test, &[]).wait().ok().ended("main", "merged");
    assert_eq!(joins(&test), ["main late 1 0 0"]);
    assert_eq!(test.events("joined")[0]["stopped"][0]["agent"], "main.1");
    test.assert_no_survivors();
}

#[test]
fn join_timeout_elapses_while_raymond_is_down() {
    let test = slow("join: all\ntimeout: 2s\non_timeout: LATE.md\nrest: stop");
    let mut live = spawn(&test, &[]);
    live.wait_event("join_begun", 1);
    wait_end(&mut live, "main.1");
    live.kill9();
    test.resume(&[]).ok().ended("main", "late");
    assert_eq!(joins(&test), ["main late 2 1 0"]);
}
