//! An API that throttles: it gets fewer requests, and no restart is counted.

use serde_json::Value;

use crate::support::{FakeRule, Test, when};

/// Returns a workflow with workers whose first turns follow this rule; the later turns are held at `on`.
fn crowd(workers: u32, rule: FakeRule) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "work")
        .rule(when("start").times(workers).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
        .rule(rule)
        .rule(when("work").hold_before("on").reply("<result>worked</result>"))
}

fn refused(workers: u32) -> FakeRule {
    when("work").times(workers).hold_before("go").error(429, "API Error: 429 rate_limit_error")
}

fn is_work(line: &Value) -> bool {
    line["prompt"].as_str().is_some_and(|prompt| prompt.contains("work"))
}

/// Returns the number of the workers' turns that had begun when so many turns in all were over.
fn started_when_over(log: &[Value], over: usize) -> usize {
    let done = log.iter().enumerate().filter(|(_, line)| line.get("done").is_some());
    let end = done.map(|(place, _)| place).nth(over - 1).expect("so many turns are over");
    log[..end].iter().filter(|line| is_work(line)).count()
}

#[test]
fn rate_limit_refusals_halve_concurrency() {
    let test = crowd(8, refused(8));
    let mut live = test.spawn(&["START.md", "--max-procs", "16", "--max-restarts", "0"]);
    live.wait_for("8 workers, and the end of main", |test| {
        test.calls_with("work").len() == 8 && test.events("step_finished").len() == 9
    });
    test.release("go");
    live.wait_stderr("asks for fewer requests: 4 at a time");
    live.wait_for("all refusals and 4 workers", |test| {
        test.events("turn_failed").len() == 8 && test.calls_with("work").len() >= 12
    });
    test.release("on");
    live.wait().ok().ended("main.1", "worked").ended("main.8", "worked");
    // Nine turns of main are over, and the eight that were refused. The next one to end is one of the four.
    assert_eq!(started_when_over(&test.call_log(), 18), 12);
    let failed = test.events("turn_failed");
    assert!(failed.iter().all(|turn| turn["cause"] == "throttle" && turn["counts"] == false));
    assert_eq!(test.calls_with("work").len(), 16);
}

#[test]
fn rate_limit_refusals_never_count_as_failures() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").times(6).error(529, "API Error: 529 overloaded_error"))
        .rule(when("start").reply("<result>well</result>"));
    test.run(&["START.md", "--max-restarts", "0"]).ok().ended("main", "well");
    assert_eq!(test.calls().len(), 7);
}

#[test]
fn retries_within_claude_code_lower_concurrency() {
    let rule = when("work").times(6).retries(2).hold_before("go");
    let test = crowd(6, rule.reply("<result>worked</result>"));
    let mut live = test.spawn(&["START.md", "--max-procs", "8", "--max-restarts", "0"]);
    live.wait_stderr("asks for fewer requests");
    test.release("go");
    live.wait().ok().ended("main.6", "worked");
    assert!(test.events("turn_failed").is_empty());
    assert_eq!(test.calls_with("work").len(), 6);
}

#[test]
fn rate_limit_refusals_do_not_lower_concurrency_below_one() {
    let test = crowd(3, when("work").times(3).error(429, "API Error: 429"));
    test.release("on");
    let outcome = test.run(&["START.md", "--max-procs", "1", "--max-restarts", "0"]);
    outcome.ok().stderr_lacks("asks for fewer requests");
    assert_eq!(test.calls_with("work").len(), 6);
}
