//! A stall is the absence of progress. A working tool and an announced wait are not stalls.
//!
//! The time without progress is measured with another turn: one that really stalls, begun later and under the
//! same limit.

use crate::support::{FakeRule, RunningRaymond, Test, always, when};

const IDLE: [&str; 3] = ["START.md", "--idle-timeout", "1s"];

fn hung(rule: FakeRule) -> Test {
    Test::new().prompt("START.md", "start").rule(rule).rule(always().reply("<result>well</result>"))
}

#[test]
fn turn_without_progress_is_ended_and_retried() {
    let test = hung(always().once().hang());
    test.run(&IDLE).ok().ended("main", "well").stderr_has("stall");
    let failed = test.events("turn_failed");
    assert_eq!((&failed[0]["cause"], &failed[0]["counts"]), (&"stall".into(), &true.into()));
    let message = failed[0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("no progress for 1s") && message.contains("--idle-timeout"));
    let calls = test.calls();
    assert_ne!(calls[0].session, calls[1].session, "the half turn is in no history");
    assert!(calls[1].history.is_empty());
    test.assert_no_survivors();
}

#[test]
fn stalls_count_toward_max_restarts() {
    let test = hung(always().hang().ignore_term().helper());
    let outcome = test.run(&[&IDLE[..], &["--max-restarts", "1", "--shutdown", "50ms"]].concat());
    outcome.code(1).says("no progress for 1s").failed("main");
    assert_eq!(test.calls().len(), 2);
    assert_eq!(test.events("agent_failed")[0]["cause"], "stall");
    test.assert_no_survivors();
}

#[test]
fn turn_hanging_after_its_tool_stalls() {
    let test = hung(always().once().tool("Bash").hang());
    test.run(&IDLE).ok();
    assert_eq!(test.events("turn_failed")[0]["cause"], "stall");
}

/// Returns a workflow whose worker does this until `done` is there, while main stalls once.
fn working(work: fn(FakeRule) -> FakeRule) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .prompt("W.md", "work")
        .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
        .rule(work(when("work").reply("<result>worked</result>")))
        .rule(when("next").once().tool("Bash").hold_tool("begun").hang())
        .rule(always().reply("<result>led</result>"))
}

fn both_work(test: &Test) -> bool {
    test.calls_with("work").len() == 1 && test.calls_with("next").len() == 1
}

/// Checks that main stalls and the worker does not.
#[track_caller]
fn assert_only_main_stalls(test: &Test, mut live: RunningRaymond<'_>) {
    test.release("begun");
    live.wait_event("turn_failed", 1);
    test.release("done");
    live.wait().ok().ended("main", "led").ended("main.1", "worked");
    let failed = test.events("turn_failed");
    assert_eq!((failed.len(), &failed[0]["agent"]), (1, &"main".into()), "{failed:?}");
    assert_eq!(failed[0]["cause"], "stall");
    assert_eq!(test.calls_with("work").len(), 1);
}

fn beside_a_stall(work: fn(FakeRule) -> FakeRule) {
    let test = working(work);
    let mut live = test.spawn(&[&IDLE[..], &["--max-procs", "4"]].concat());
    live.wait_for("both at work", both_work);
    assert_only_main_stalls(&test, live);
}

#[test]
fn running_tool_counts_as_progress() {
    beside_a_stall(|rule| rule.tool("Bash").hold_tool("done"));
}

#[test]
fn announced_api_retry_counts_as_progress() {
    beside_a_stall(|rule| rule.retries(1).retry_delay_ms(600_000).hold_before("done"));
}

#[test]
fn tool_running_at_kill_counts_as_progress_after_resume() {
    let test = working(|rule| rule.tool("Bash").hold_tool("done"));
    let mut live = test.spawn(&[&IDLE[..], &["--max-procs", "4"]].concat());
    live.wait_for("both at work", both_work);
    live.kill9();
    let live = test.spawn_resumed(&[]);
    assert_only_main_stalls(&test, live);
}
