//! Kills raymond at each boundary of forks and joins, resumes the run, and compares: the same children, steps
//! and results, each turn asked once, each join decided once, and no agent left that was to be stopped.

use std::collections::BTreeMap;

use raymond::fault::POINTS;
use serde_json::{Value, json};

use super::{births, joins};
use crate::support::{RaymondOutcome, Test, wait_until, when};

/// The agent that works until it is stopped. Its progress and its cost differ between runs.
const HELD: &str = "main.3";

/// Returns a workflow with three workers of a list, of which two are needed: one forks two agents and waits
/// for them, and one never ends. Then one reply has several forks, and a join waits for all of them.
fn place() -> Test {
    let state = |join: &str, body: &str| format!("---\n{join}\n---\n{body}");
    Test::new()
        .file("items.json", br#"["one", "two", "three"]"#)
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("LEAF.md", "leaf {{n}}")
        .prompt("DEEP.md", "deep")
        .prompt("INNER.md", &state("join: all", "inner {{results}}"))
        .prompt("HELD.md", "held")
        .prompt("FIRST.md", &state("forks: many\njoin: 2\nrest: stop", "first {{results}}"))
        .prompt("LAST.md", &state("join: all", "last {{results}}"))
        .rule(when("inner").reply("<result>ok</result>").cost(0.01))
        .rule(when("first").reply(r#"<fork next="LAST.md" n="5">LEAF.md</fork> <fork next="LAST.md" n="6">LEAF.md</fork>"#).cost(0.01))
        .rule(when("last").reply("<result>over</result>").cost(0.01))
        .rule(when("start").reply(r#"<fork next="FIRST.md" each="items.json">WORKER.md</fork>"#).cost(0.01))
        .rule(when("work on one").reply("<goto n=\"1\">LEAF.md</goto>").cost(0.01))
        .rule(when("work on two").reply("<goto>DEEP.md</goto>").cost(0.01))
        .rule(when("work on three").hold_before("never").reply("<goto>HELD.md</goto>"))
        .rule(when("deep").reply(r#"<fork next="INNER.md" each="[3, 4]" as="n">LEAF.md</fork>"#).cost(0.01))
        .rule(when("leaf").reply("<result>ok</result>").cost(0.01))
}

const OPTIONS: [&str; 5] = ["START.md", "--stagger", "0s", "--max-procs", "4"];

/// Returns everything that must be the same after a kill.
fn comparable_outcome(test: &Test) -> Value {
    let mut steps: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for step in test.events("step_finished") {
        let agent = step["agent"].as_str().unwrap_or_default().to_owned();
        let seen = json!([step["step"], step["state"], step["transition"], step["cost_usd"]]);
        steps.entry(agent).or_default().push(seen);
    }
    let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for call in test.calls().into_iter().filter(|call| call.agent() != HELD) {
        asked.entry(call.agent().to_owned()).or_default().push(call.prompt);
    }
    let tree = test.raymond(&["tree", "t", "--json"]).ok().json();
    let mut ends: Vec<Value> = tree["agents"].as_array().cloned().unwrap_or_default();
    ends.sort_by_key(|agent| agent["id"].to_string());
    let ends: Vec<Value> =
        ends.iter().map(|agent| json!([agent["id"], agent["result"], agent["error"]])).collect();
    let mut joins = joins(test);
    joins.sort();
    let mut started: Vec<String> = test
        .events("join_begun")
        .iter()
        .map(|started| format!("{} {}", started["agent"], started["step"]))
        .collect();
    started.sort();
    let stopped: Vec<Value> = test
        .events("joined")
        .iter()
        .filter_map(|joined| joined["stopped"][0].get("agent").cloned())
        .collect();
    json!({
        "steps": steps, "asked": asked, "ends": ends, "joins": joins, "begun": started, "births": births(test),
        "stopped": stopped,
    })
}

/// Resumes a run that was killed, or begins it if it never began.
fn resume(test: &Test) -> RaymondOutcome {
    if test.run_dir().exists() { test.resume(&[]) } else { test.run(&OPTIONS) }
}

/// Resumes a run to its end, and compares it with one that was not killed.
fn resume_and_compare(test: &Test, context: &str, whole: &Value) {
    let last = resume(test);
    last.assert(last.status.code() == Some(0), &format!("{context}: exit code 0"));
    let result = "Agent main terminated with result: over";
    last.assert(last.stdout.contains(result), &format!("{context}: {result}"));
    assert_eq!(comparable_outcome(test), *whole, "{context}");
    let held = test.calls().iter().filter(|call| call.agent() == HELD).count();
    assert!(held <= 1, "{context}: {HELD} was asked {held} times");
    let seqs: Vec<u64> =
        test.journal().iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{context}: the numbers");
    wait_until(&format!("{context}: no process is left behind"), || test.survivors().is_empty());
}

/// Kills raymond the `count`-th time a failpoint is reached, and compares the resumed run; returns whether
/// the failpoint was reached that often.
fn is_killed_at(point: &str, count: u32, whole: &Value) -> bool {
    let context = format!("killed at {point}, time {count}");
    let test = place().env("RAYMOND_FAILPOINT", format!("{point}:{count}"));
    let first = test.run(&OPTIONS);
    let died = first.killed();
    first.assert(died || first.status.code() == Some(0), &context);
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    resume_and_compare(&test, &context, whole);
    died
}

fn whole() -> Value {
    let whole = place();
    whole.run(&OPTIONS).ok().ended("main", "over");
    let expected = comparable_outcome(&whole);
    assert_eq!(expected["births"], json!([3, 2, 2]));
    assert_eq!(expected["joins"], json!(["main met 2 2 0", "main met 3 2 0", "main.2 met 2 2 0"]));
    assert_eq!(expected["stopped"], json!([HELD]));
    expected
}

#[test]
fn run_killed_at_any_point_forks_and_joins_once() {
    let whole = whole();
    let dies = |point: &str| {
        let deaths = [1, 3, 8].iter().take_while(|&&count| is_killed_at(point, count, &whole));
        deaths.count()
    };
    let deaths: Vec<(&str, usize)> = POINTS.into_iter().map(|point| (point, dies(point))).collect();
    for often in ["append.before", "sync.after", "fork.before", "fork.after", "effect.after"] {
        let count = if often.starts_with("fork") { 2 } else { 3 };
        assert!(deaths.contains(&(often, count)), "{often}: {deaths:?}");
    }
    let lived = deaths.iter().filter(|(_, count)| *count == 0).map(|(point, _)| *point);
    let others = [
        "operation.",
        "activity.",
        "dataspace.",
        "migrate.",
        "snapshot.",
        "worktree.",
        "inbox.",
        "approval.",
        "message.",
    ];
    let lived: Vec<_> =
        lived.filter(|point| !others.iter().any(|other| point.starts_with(other))).collect();
    assert!(lived.is_empty(), "{lived:?}");
}

#[test]
fn run_killed_twice_forks_and_joins_once() {
    let whole = whole();
    let pairs = [
        ("fork.after:1", "fork.before:1"),
        ("fork.before:2", "append.after:2"),
        ("sync.after:2", "effect.before:3"),
        ("append.before:12", "sync.after:1"),
        ("effect.before:20", "effect.before:4"),
        ("sync.after:14", "rest.before:1"),
    ];
    for (first, second) in pairs {
        let context = format!("killed at {first}, then at {second}");
        let test = place().env("RAYMOND_FAILPOINT", first);
        test.run(&OPTIONS);
        let test = test.env("RAYMOND_FAILPOINT", second);
        resume(&test);
        let test = test.env("RAYMOND_FAILPOINT", "none:1");
        resume_and_compare(&test, &context, &whole);
    }
}
