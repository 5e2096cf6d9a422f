//! Budgets of calls: they end an agent whose call has spent its own, nest, and survive a kill.

use crate::support::{Test, when};

/// Returns a workflow whose agent calls CALLED.md, which goes on to MORE.md; each turn costs two cents.
fn caller(budget: &str) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("CALLED.md", &format!("---\nbudget: {budget}\n---\ncalled"))
        .prompt("MORE.md", "more")
        .prompt("BACK.md", "back")
        .rule(when("start").reply(r#"<call return="BACK.md">CALLED.md</call>"#).cost(0.02))
        .rule(when("called").reply("<goto>MORE.md</goto>").cost(0.02))
        .rule(when("back").reply("<result>over</result>").cost(0.02))
}

fn spent(test: &Test) -> f64 {
    test.status()["total_cost_usd"].as_f64().expect("a number")
}

#[test]
fn call_within_its_budget_returns() {
    let test = caller("0.05").rule(when("more").reply("<result>found</result>").cost(0.02));
    test.run(&["START.md", "--no-warm"]).code(0).ended("main", "over");
    let calls = test.calls();
    let most: Vec<_> = calls.iter().map(|call| call.flag("--max-budget-usd")).collect();
    assert_eq!(most, [None, Some("0.1"), Some("0.06"), None], "twice what is left of the call");
    let budgets: Vec<_> =
        test.events("step_finished").iter().map(|step| step["call_budget_usd"].clone()).collect();
    assert_eq!(budgets, [0.05.into(), ().into(), ().into(), serde_json::Value::Null]);
}

#[test]
fn agent_whose_call_has_spent_its_budget_fails() {
    let test = caller("0.03").rule(when("more").reply("<goto>MORE.md</goto>").cost(0.02));
    let outcome = test.run(&["START.md"]);
    outcome.code(1);
    assert_eq!(
        outcome.failed("main").lines().next(),
        Some(
            "in MORE.md: the budget of its call of $0.03 is used up: $0.04 spent (`budget` in CALLED.md)"
        )
    );
    let failed = test.events("agent_failed");
    assert_eq!((failed.len(), &failed[0]["cause"]), (1, &serde_json::json!("budget")));
    assert!((spent(&test) - 0.06).abs() < 1e-9, "spent {}", spent(&test));
}

#[test]
fn inner_call_counts_to_the_budget_of_the_outer_call() {
    let test = caller("0.07")
        .prompt("INNER.md", "---\nbudget: 10\n---\ninner")
        .rule(when("more").reply(r#"<function return="MORE.md">INNER.md</function>"#).cost(0.02))
        .rule(when("inner").reply("<result>deep</result>").cost(0.02));
    let outcome = test.run(&["START.md"]);
    outcome.code(1);
    let why = "in INNER.md: the budget of its call of $0.07 is used up: $0.08 spent (`budget` in CALLED.md)";
    assert!(outcome.failed("main").contains(why), "{}", outcome.failed("main"));
}

#[test]
fn agents_forked_in_a_call_spend_from_its_budget() {
    let test = caller("0.05")
        .prompt("WORK.md", "work")
        .rule(when("more").times(20).reply(r#"<fork next="MORE.md">WORK.md</fork>"#))
        .rule(when("more").reply("<result>led</result>"))
        .rule(when("work").reply("<goto>WORK.md</goto>").cost(0.02));
    let outcome = test.run(&["START.md", "--max-procs", "8"]);
    outcome.code(1);
    outcome.stdout_has("the budget of a call by main of $0.05 is used up");
    assert!(spent(&test) < 0.02 + 0.05 + 0.02, "spent {}", spent(&test));
}

#[test]
fn spent_amount_of_a_call_survives_a_kill() {
    let test = caller("0.07").rule(when("more").reply("<goto>MORE.md</goto>").cost(0.02));
    let test = test.env("RAYMOND_FAILPOINT", "effect.after:4");
    assert!(test.run(&["START.md"]).killed());
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    let outcome = test.resume(&[]);
    outcome.code(1);
    assert!((spent(&test) - 0.10).abs() < 1e-9, "spent {}", spent(&test));
    assert!(outcome.failed("main").contains("its call of $0.07 is used up: $0.08 spent"));
}
