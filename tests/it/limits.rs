//! Limits of money, processes and time, and runs of many agents.

use std::fs;

use crate::support::{Test, always, most_at_once, when};

/// Returns a workflow whose parent forks workers without cost one after another, and then ends.
fn crowd(workers: u32) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "worker")
        .prompt("THEN.md", "onward")
        .rule(when("start").times(workers).reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
}

fn total_cost(test: &Test) -> f64 {
    test.status()["total_cost_usd"].as_f64().expect("a number")
}

#[test]
fn spent_budget_pauses_run_and_larger_budget_resumes_it() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>").cost(0.06))
        .rule(when("next").reply("<result>ok</result>").cost(0.01));
    let outcome = test.run(&["START.md", "--budget", "0.05"]);
    outcome.code(75).stderr_has("budget").stderr_has("0.05").stderr_has("--budget");
    assert_eq!(test.prompts(), ["start"]);
    assert_eq!(test.events("run_paused").len(), 1);

    test.resume(&[]).code(75);
    assert_eq!(test.prompts(), ["start"], "the budget is still used up");

    for budget in ["0.05", "0.06"] {
        let refused = test.resume(&["--budget", budget]);
        refused.code(64).stderr_has("is not above the $0.06").stderr_has("give more than $0.06");
    }

    test.resume(&["--budget", "1"]).ok().ended("main", "ok");
    let calls = test.calls();
    assert_eq!(test.prompts(), ["start", "next"]);
    calls[1].assert_resumes(&calls[0]);
    assert!((total_cost(&test) - 0.07).abs() < 1e-9);
}

#[test]
fn sequential_workers_overshoot_budget_by_at_most_one_turn() {
    let test = crowd(100).rule(when("worker").reply("<result>w</result>").cost(0.02));
    test.run(&["START.md", "--budget", "0.05", "--max-procs", "1"]).code(75);
    let spent = total_cost(&test);
    assert!(spent < 0.05 + 0.02, "spent {spent}");
}

#[test]
fn parallel_workers_overshoot_budget_by_at_most_one_turn() {
    let test = crowd(100).rule(when("worker").reply("<result>w</result>").cost(0.02));
    test.run(&["START.md", "--budget", "0.05", "--max-procs", "8"]).code(75);
    let spent = total_cost(&test);
    assert!(spent < 0.05 + 0.02, "spent {spent}");
}

#[test]
fn cheap_turns_do_not_admit_many_expensive_turns_at_once() {
    let test = crowd(16).rule(when("worker").reply("<result>w</result>").cost(2.0));
    test.run(&["START.md", "--budget", "1", "--max-procs", "32"]).code(75);
    let spent = total_cost(&test);
    assert!(spent < 1.0 + 2.0, "spent {spent}");
}

#[test]
fn running_processes_never_exceed_max_procs() {
    let test = crowd(12)
        .rule(when("worker").hold_before("go").reply("<goto>THEN.md</goto>"))
        .rule(when("onward").reply("<result>ok</result>"));
    let mut live = test.spawn(&["START.md", "--max-procs", "3"]);
    live.wait_for("three at once", |test| most_at_once(&test.call_log()) == 3);
    test.release("go");
    live.wait().ok();
    assert_eq!(test.calls_with("onward").len(), 12);
    assert_eq!(most_at_once(&test.call_log()), 3);
}

#[test]
fn forty_forked_workers_all_finish() {
    let test = crowd(40).rule(when("worker").reply("<result>w</result>"));
    let outcome = test.run(&["START.md", "--max-procs", "8", "-v"]);
    outcome.ok();
    for worker in 1..=40 {
        outcome.ended(&format!("main.{worker}"), "w");
    }
    test.assert_no_survivors();
}

#[test]
fn claude_removed_under_64_workers_pauses_run() {
    let test = crowd(64)
        .rule(when("worker").hold_before("go").reply("<goto>THEN.md</goto>"))
        .rule(when("onward").reply("<result>ok</result>"));
    let claude = test.own_claude();
    let test = test.env("RAYMOND_CLAUDE", &claude);
    let mut live = test.spawn(&["START.md", "--max-procs", "100", "--no-warm"]);
    live.wait_for("64 workers", |test| test.calls_with("worker").len() == 64);
    live.wait_for("the end of main", |test| {
        test.events("step_finished").iter().any(|step| step["transition"]["tag"] == "result")
    });
    fs::remove_file(&claude).expect("it was there");
    test.release("go");
    live.wait().code(69).stderr_has(claude.to_str().unwrap_or_default());
    test.assert_no_survivors();

    test.own_claude();
    test.resume(&["--max-procs", "8"]).ok();
    assert_eq!(test.calls_with("worker").len(), 64, "what was paid for is not paid for again");
    assert_eq!(test.calls_with("onward").len(), 64);
}

#[test]
fn timed_out_turn_is_ended_and_retried() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(always().once().hang())
        .rule(always().reply("<result>ok</result>"));
    test.run(&["START.md", "--timeout", "1s"]).ok();
    assert_eq!(test.calls().len(), 2);
    assert_eq!(test.events("turn_failed").len(), 1);
    test.assert_no_survivors();
}

#[test]
fn repeated_turn_timeouts_fail_agent() {
    let test = Test::new().prompt("START.md", "start").rule(always().hang().ignore_term().helper());
    let outcome =
        test.run(&["START.md", "--timeout", "1s", "--shutdown", "50ms", "--max-restarts", "1"]);
    outcome.code(1).says("1s").failed("main");
    assert_eq!(test.calls().len(), 2);
    test.assert_no_survivors();
}
