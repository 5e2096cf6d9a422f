//! Budgets of agents: they cover all descendants, survive a kill, and end or park an agent that has used its
//! budget up.

use crate::support::{Test, when};

/// Returns a workflow whose parent forks two workers, each with a budget of five cents and a cost of two
/// cents a turn.
fn workers() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", "---\nbudget: 0.05\n---\nwork")
        .prompt("MORE.md", "more")
        .rule(when("start").times(2).reply(r#"<fork next="START.md">WORK.md</fork>"#))
        .rule(when("start").reply("<result>led</result>"))
        .rule(when("work").reply("<goto>MORE.md</goto>").cost(0.02))
}

fn spent(test: &Test) -> f64 {
    test.status()["total_cost_usd"].as_f64().expect("a number")
}

#[test]
fn agent_with_spent_share_fails_and_others_continue() {
    let test = workers()
        .rule(when("more").agent("main.1").reply("<goto>MORE.md</goto>").cost(0.02))
        .rule(when("more").reply("<result>done</result>").cost(0.02));
    let outcome = test.run(&["START.md", "--max-procs", "1"]);
    outcome.code(1).ended("main", "led").ended("main.2", "done");
    assert_eq!(
        outcome.failed("main.1").lines().next(),
        Some("in MORE.md: its budget of $0.05 is used up: $0.06 spent (`budget` in WORK.md)")
    );
    let failed = test.events("agent_failed");
    assert_eq!((failed.len(), &failed[0]["cause"]), (1, &serde_json::json!("budget")));
    assert!((spent(&test) - 0.10).abs() < 1e-9);
}

#[test]
fn forked_agents_spend_from_share_of_parent() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("LEAD.md", "---\nbudget: 0.05\n---\nlead")
        .prompt("WORK.md", "work")
        .rule(when("start").once().reply(r#"<fork next="START.md">LEAD.md</fork>"#))
        .rule(when("start").reply("<result>began</result>"))
        .rule(when("lead").times(20).reply(r#"<fork next="LEAD.md">WORK.md</fork>"#))
        .rule(when("lead").reply("<result>led</result>"))
        .rule(when("work").reply("<result>w</result>").cost(0.02));
    let outcome = test.run(&["START.md", "--max-procs", "8"]);
    outcome.code(1).ended("main", "began");
    assert!(spent(&test) < 0.05 + 0.02, "spent {}", spent(&test));
    outcome.stdout_has("the budget of main.1, for it and all it forks, of $0.05 is used up");
}

#[test]
fn spent_share_survives_a_kill() {
    let test = workers().rule(when("more").reply("<goto>MORE.md</goto>").cost(0.02));
    let test = test.env("RAYMOND_FAILPOINT", "effect.after:9");
    assert!(test.run(&["START.md", "--max-procs", "1"]).killed());
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    let outcome = test.resume(&[]);
    outcome.code(1);
    assert!((spent(&test) - 0.12).abs() < 1e-9, "spent {}", spent(&test));
    for agent in ["main.1", "main.2"] {
        assert!(outcome.failed(agent).contains("its budget of $0.05 is used up: $0.06 spent"));
    }
}

#[test]
fn on_budget_end_fails_agents_instead_of_pausing_the_run() {
    let test = workers().rule(when("more").reply("<goto>MORE.md</goto>").cost(0.02));
    let arguments = ["START.md", "--budget", "0.03", "--on-budget", "end", "--max-procs", "1"];
    let outcome = test.run(&arguments);
    outcome.code(1);
    assert!(outcome.stdout.contains("the run's budget of $0.03 is used up: $0.04 spent"));
    assert_eq!(test.events("run_paused").len(), 0);
}

#[test]
fn process_limit_is_twice_the_remaining_budget() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").times(2).reply("<goto>START.md</goto>").cost(0.02))
        .rule(when("start").reply("<result>ok</result>").cost(0.02));
    test.run(&["START.md", "--budget", "1", "--no-warm"]).ok();
    let calls = test.calls();
    let most: Vec<_> = calls.iter().map(|call| call.flag("--max-budget-usd")).collect();
    assert_eq!(most, [Some("2"), Some("1.96"), Some("1.92")]);
}

#[test]
fn timed_out_turn_is_estimated_at_the_highest_cost_of_its_kind() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").once().reply("<goto>START.md</goto>").cost(0.03))
        .rule(when("start").once().tool("Bash").hold_tool("never").reply("x"))
        .rule(when("start").reply("<result>ok</result>").cost(0.01));
    test.run(&["START.md", "--budget", "1", "--timeout", "1s"]).ok();
    let failed = test.events("turn_failed");
    assert_eq!(failed.len(), 1);
    assert_eq!((&failed[0]["cost_usd"], &failed[0]["estimated"]), (&0.03.into(), &true.into()));
    assert!((spent(&test) - 0.07).abs() < 1e-9);
}
