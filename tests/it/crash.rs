//! Kills raymond at each boundary of a step, resumes the run, and compares it with a run that was never
//! killed: the same transitions, each once, the same results, each turn asked once.

use std::collections::BTreeMap;

use raymond::fault::POINTS;
use serde_json::Value;

use crate::support::{Test, wait_until, when};

/// Returns a workflow that uses each tag, with variables that must survive.
fn workflow() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("LEAD.md", "lead")
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("SUB.md", "sub of {{agent_id}} with {{depth}}")
        .prompt("inner/START.md", "sub of {{agent_id}} with {{depth}}")
        .prompt("BACK.md", "back with {{result}}")
        .prompt("lib/rate/EVAL.md", "eval")
        .prompt("DONE.md", "done with {{result}}")
        .prompt("LAST.md", "last of {{agent_id}} after {{word}}")
        .rule(
            when("start").reply(r#"<fork next="LEAD.md" item="bees">WORKER.md</fork>"#).cost(0.01),
        )
        .rule(when("lead").reply(r#"<call return="BACK.md" depth="one">inner/</call>"#).cost(0.01))
        .rule(
            when("work on bees")
                .reply(r#"<call return="BACK.md" depth="two">SUB.md</call>"#)
                .cost(0.01),
        )
        .rule(when("sub of").reply("<result>found</result>").cost(0.01))
        .rule(
            when("back with found")
                .reply(r#"<function return="DONE.md">lib:rate/EVAL.md</function>"#)
                .cost(0.01),
        )
        .rule(when("eval").reply("<result>8</result>").cost(0.01))
        .rule(when("done with 8").reply(r#"<reset word="all">LAST.md</reset>"#).cost(0.01))
        .rule(when("last of").reply("<result>over</result>").cost(0.01))
}

/// Returns the steps of each agent.
fn steps(test: &Test) -> BTreeMap<String, Vec<Value>> {
    let mut steps: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for step in test.events("step_finished") {
        let agent = step["agent"].as_str().expect("a step has an agent").to_owned();
        let seen =
            serde_json::json!([step["step"], step["state"], step["transition"], step["cost_usd"]]);
        steps.entry(agent).or_default().push(seen);
    }
    steps
}

/// Returns the agents that failed, with their errors.
fn errors(test: &Test) -> Vec<(String, String)> {
    let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let failed = test.events("agent_failed");
    failed.iter().map(|failed| (said(&failed["agent"]), said(&failed["error"]))).collect()
}

/// Returns the prompts of each agent, in order.
fn asked(test: &Test) -> BTreeMap<String, Vec<String>> {
    let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for call in test.calls() {
        asked.entry(call.agent().to_owned()).or_default().push(call.prompt);
    }
    asked
}

/// The failpoints that such a run does not reach: those of messages to running turns, approvals, lists of agents, graphs,
/// commands, facts and worktrees.
const OTHER_POINTS: [&str; 27] = [
    "message.before",
    "message.sent",
    "approval.before",
    "approval.told",
    "fork.before",
    "fork.after",
    "operation.before",
    "operation.after",
    "activity.before",
    "activity.after",
    "inbox.before",
    "dataspace.written",
    "dataspace.noted",
    "dataspace.applied",
    "migrate.noted",
    "migrate.aside",
    "migrate.begun",
    "migrate.removed",
    "snapshot.made",
    "snapshot.after",
    "worktree.noted",
    "worktree.added",
    "worktree.unlocked",
    "worktree.kept",
    "worktree.going",
    "worktree.removed",
    "worktree.branch",
];

/// A run that is killed.
struct KilledRun {
    workflow: fn() -> Test,
    options: &'static [&'static str],
    /// The exit code of raymond if it is not killed.
    code: i32,
}

/// Returns the workflow with a permanent worker, which is restarted once after its result and then has no
/// restart left.
fn permanent_worker() -> Test {
    workflow().prompt(
        "WORKER.md",
        "---\nsupervision: { restart: permanent, max_restarts: 1 }\n---\nwork on {{item}}",
    )
}

/// Returns the workflow with evaluators for two states: one that a pending return leads to, and one whose
/// agent is sent elsewhere. The worker has a budget that is used up before the last evaluation: its
/// transition is taken without one, and it ends at its next turn.
fn evaluated_states() -> Test {
    let evaluated = |prompt: &str| format!("---\nevaluator: {{ prompt: CHECK.md }}\n---\n{prompt}");
    workflow()
        .prompt("WORKER.md", "---\nbudget: 0.05\n---\nwork on {{item}}")
        .prompt("BACK.md", &evaluated("back with {{result}}"))
        .prompt("DONE.md", &evaluated("done with {{result}}"))
        .prompt("CHECK.md", "check {{transition}}")
        .rule(when("check <reset").reply(r#"<goto word="some">LAST.md</goto>"#).cost(0.002))
        .rule(when("check").reply("fine").cost(0.002))
}

/// Kills raymond the `count`-th time a failpoint is reached, and compares the resumed run; returns whether
/// the failpoint was reached that often.
fn is_killed_at(case: &KilledRun, point: &str, count: u32, whole: &Test) -> bool {
    let context = format!("killed at {point}, time {count}");
    let test = (case.workflow)().env("RAYMOND_FAILPOINT", format!("{point}:{count}"));
    let options = [&["START.md"], case.options].concat();
    let code = case.code;
    let first = test.run(&options);
    let died = first.killed();
    let right = died || first.status.code() == Some(code);
    first.assert(right, &format!("{context}: to be killed, or exit code {code}"));
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    let last = if test.run_dir().exists() { test.resume(&[]) } else { test.run(&options) };
    last.assert(last.status.code() == Some(code), &format!("{context}: exit code {code}"));
    let result = "Agent main terminated with result: over";
    last.assert(last.stdout.contains(result), &format!("{context}: {result:?} on stdout"));
    assert_eq!(steps(&test), steps(whole), "{context}: the steps");
    assert_eq!(asked(&test), asked(whole), "{context}: the turns that were paid for");
    assert_eq!(
        test.status()["total_cost_usd"],
        whole.status()["total_cost_usd"],
        "{context}: the costs"
    );
    assert_eq!(errors(&test), errors(whole), "{context}: the agents that failed");
    let seqs: Vec<u64> =
        test.journal().iter().filter_map(|record| record["seq"].as_u64()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{context}: the numbers");
    let alone = || test.survivors().is_empty();
    wait_until(&format!("{context}: no process is left behind"), alone);
    died
}

/// Kills raymond at each failpoint at each of those times, the earliest first. The first time must be reached
/// at all failpoints but the `unreached`, so it must not depend on the order of concurrent events. No command
/// is sent here; see the run below that takes one.
fn sweep(case: &KilledRun, steps_in_all: usize, times: &[u32], unreached: &[&str]) {
    let whole = (case.workflow)();
    whole.run(&[&["START.md"], case.options].concat()).code(case.code);
    assert_eq!(steps(&whole).values().map(Vec::len).sum::<usize>(), steps_in_all);
    let dies = |point: &str| {
        let deaths = times.iter().take_while(|&&count| is_killed_at(case, point, count, &whole));
        deaths.count() > 0
    };
    let lived: Vec<&str> = POINTS.into_iter().filter(|point| !dies(point)).collect();
    assert_eq!(lived, unreached, "the points that no run reached {} times", times[0]);
}

#[test]
fn run_killed_at_any_point_resumes_with_same_result() {
    let case = KilledRun { workflow, options: &["--max-procs", "2"], code: 0 };
    sweep(&case, 13, &[1, 2, 5, 9], &OTHER_POINTS);
}

#[test]
fn no_warm_run_killed_at_any_point_resumes_with_same_result() {
    let case = KilledRun { workflow, options: &["--max-procs", "2", "--no-warm"], code: 0 };
    sweep(&case, 13, &[1, 6], &[&["passage.noted", "passage.asked"], &OTHER_POINTS[..]].concat());
}

#[test]
fn kill_at_any_point_uses_no_restart_of_permanent_agent() {
    // There is a permit for each process. With fewer, the number of processes that stay for a further turn would
    // depend on the order of the agents.
    let case = KilledRun { workflow: permanent_worker, options: &["--max-procs", "16"], code: 1 };
    sweep(&case, 19, &[2, 12, 14], &OTHER_POINTS);
}

#[test]
fn kill_at_any_point_charges_evaluator_once_and_keeps_agent_budget() {
    let case = KilledRun { workflow: evaluated_states, options: &["--max-procs", "2"], code: 1 };
    sweep(&case, 12, &[1, 4, 8], &OTHER_POINTS);
}

#[test]
fn kill_while_taking_command_applies_it_once() {
    let test = Test::new()
        .prompt("START.md", "start")
        .rule(when("start").hold_before("go").reply("<result>over</result>"))
        .env("RAYMOND_FAILPOINT", "inbox.before:1");
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    test.raymond(&["stop", "t"]).ok();
    assert!(live.wait().killed());
    test.release("go");
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    test.resume(&[]).ok().ended("main", "over");
    assert_eq!(test.events("command_received").len(), 1);
    assert_eq!(test.prompts(), ["start"]);
}
