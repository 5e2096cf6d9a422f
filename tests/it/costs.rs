//! `raymond costs`: the cost by state and by agent, and the part of it that is unknown.

use serde_json::{Value, json};

use crate::support::{Test, pair, when};

fn costs(test: &Test) -> Value {
    test.raymond(&["costs", "t", "--json"]).ok().json()
}

/// Returns the turns and the cost in a line of the ledger.
fn line(lines: &Value, what: &str, name: &str) -> (u64, f64) {
    let lines = lines.as_array().expect("lines");
    let line = lines.iter().find(|line| line[what] == name).cloned().unwrap_or_default();
    (line["turns"].as_u64().unwrap_or(0), line["cost_usd"].as_f64().unwrap_or(0.0))
}

#[test]
fn costs_by_state_and_agent_add_up_to_total() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let costs = costs(&test);
    assert_eq!(costs["total_cost_usd"], test.status()["total_cost_usd"]);
    assert_eq!(costs["total"]["cost_usd"], costs["total_cost_usd"]);
    assert_eq!((&costs["total"]["turns"], &costs["total"]["share"]), (&json!(3), &json!(1.0)));
    assert_eq!(line(&costs["states"], "state", "START.md"), (1, 0.02));
    assert_eq!(line(&costs["agents"], "agent", "main"), (2, 0.03));
    assert_eq!(line(&costs["agents"], "agent", "main.1"), (1, 0.01));
    assert_eq!(costs["agents"][0]["share"], json!(0.75));
    assert_eq!((&costs["scripted"], &costs["unbilled_agents"]), (&json!(false), &json!(0)));
    test.raymond(&["costs", "t"])
        .ok()
        .stdout_has("START.md")
        .stdout_has("main.1")
        .stdout_has("75%")
        .stdout_lacks("not included");
}

#[test]
fn turn_without_reported_cost_is_listed_as_unreported() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").once().exit(3))
        .rule(when("start").reply("<result>ok</result>").cost(0.25));
    test.run(&["START.md"]).ok();
    let total = &costs(&test)["total"];
    assert_eq!(
        (&total["turns"], &total["failed"], &total["unreported_turns"]),
        (&json!(2), &json!(1), &json!(1))
    );
    test.raymond(&["costs", "t"])
        .ok()
        .stdout_has("1 failed turns ended before they reported a cost")
        .stdout_has("not included");
}

#[test]
fn costs_of_scripted_run_are_marked_simulated() {
    let test = Test::new()
        .prompt("START.md", "start")
        .file("replies.yaml", b"START.md: [{ reply: '<result>ok</result>', cost: 0.5 }]\n");
    test.run(&["START.md", "--agent", "scripted"]).ok();
    assert_eq!(costs(&test)["scripted"], true);
    test.raymond(&["costs", "t"]).ok().stdout_has("simulated").stdout_has("$0.50");
}

#[test]
fn only_costliest_agents_are_listed_unless_all_is_given() {
    let fork = r#"<fork next="START.md">WORKER.md</fork>"#;
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work")
        .rule(when("start").times(14).reply(fork).cost(0.01))
        .rule(when("start").reply("<result>ok</result>"))
        .rule(when("work").agent("main.9").reply("<result>dear</result>").cost(0.5))
        .rule(when("work").reply("<result>ok</result>").cost(0.01));
    test.run(&["START.md"]).ok();
    let short = test.raymond(&["costs", "t"]);
    short.ok().stdout_has("5 others (--all)").stdout_has("main.9 ");
    let all = test.raymond(&["costs", "t", "--all"]);
    let named = all.ok().stdout.lines().filter(|line| line.starts_with("main")).count();
    assert_eq!(named, 15);
}

#[test]
fn costs_of_live_run_include_only_finished_turns() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>").cost(0.5))
        .rule(when("next").hold_before("go").reply("<result>ok</result>").cost(0.5));
    let mut live = test.spawn(&["START.md"]);
    live.wait_event("step_finished", 1);
    let total = &costs(&test)["total"];
    assert_eq!((&total["turns"], &total["cost_usd"]), (&json!(1), &json!(0.5)));
    test.release("go");
    live.wait().ok();
    assert_eq!(costs(&test)["total"]["cost_usd"], json!(1.0));
}
