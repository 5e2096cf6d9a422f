//! Forks and joins, end to end: the children of a reply, the agents that wait for them, and the commands that
//! show them.

mod advised;
mod crash;
mod failures;
mod late;
mod limits;
mod lists;
mod many;
mod nested;
mod policies;
mod rest;
mod results;
mod waits;
mod wrong;

use serde_json::{Value, json};

use crate::support::{RaymondOutcome, RunningRaymond, Test};

/// Returns the tag that forks a worker for each entry of a list, and leads to the state that waits for them.
fn each(list: &str) -> String {
    format!("<fork next=\"JOIN.md\" each=\"{}\">WORKER.md</fork>", list.replace('"', "&quot;"))
}

/// Returns a workflow in which START forks workers on `{{item}}`, and JOIN has this frontmatter.
fn place(join: &str) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("JOIN.md", &format!("---\n{join}\n---\nmerge {{{{results}}}}"))
}

/// Returns the workflow with scripted replies: START replies with this, each worker with its item, and JOIN
/// with all results.
fn scripted(join: &str, start: &str) -> Test {
    answering(place(join), start, &json!({}))
}

/// Adds the usual scripted replies and the given ones.
fn answering(test: Test, start: &str, others: &Value) -> Test {
    let mut replies = json!({
        "START.md": [start],
        "WORKER.md": ["<result>did {{item}}</result>"],
        "JOIN.md": ["<result>{{results}}</result>"],
    });
    for (state, own) in others.as_object().into_iter().flatten() {
        replies[state] = own.clone();
    }
    test.file("replies.yaml", replies.to_string().as_bytes())
}

/// Runs the workflow with its script and without stagger.
#[track_caller]
fn play(test: &Test, options: &[&str]) -> RaymondOutcome {
    let all = ["START.md", "--agent", "scripted", "--stagger", "0s"];
    test.run(&[&all, options].concat())
}

/// Starts the workflow with the stand-in for Claude Code and without stagger.
fn spawn<'t>(test: &'t Test, options: &[&str]) -> RunningRaymond<'t> {
    test.spawn(&[&["START.md", "--stagger", "0s"], options].concat())
}

/// Returns the result of an agent as JSON.
#[track_caller]
fn payload(ended: &RaymondOutcome, agent: &str) -> Value {
    let start = format!("Agent {agent} terminated with result: ");
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(&start));
    ended.assert(line.is_some(), &format!("{start} on stdout"));
    serde_json::from_str(line.unwrap_or_default()).expect("JSON")
}

/// Returns the outcomes in a list of results: `id status result`, or the error.
fn outcomes(results: &Value) -> Vec<String> {
    let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |result: &Value| {
        let what = result.get("result").or_else(|| result.get("error"));
        let what = what.map(said).unwrap_or_default();
        format!("{} {} {what}", said(&result["id"]), said(&result["status"])).trim().to_owned()
    };
    results.as_array().into_iter().flatten().map(one).collect()
}

/// Returns the joins that are over: `agent outcome count done failed`.
fn joins(test: &Test) -> Vec<String> {
    let shown = |joined: &Value| {
        let [agent, outcome] = ["agent", "outcome"].map(|key| joined[key].as_str().unwrap_or("?"));
        format!("{agent} {outcome} {} {} {}", joined["count"], joined["done"], joined["failed"])
    };
    test.events("joined").iter().map(shown).collect()
}

/// Returns the error of an agent, from the journal.
#[track_caller]
fn error(test: &Test, agent: &str) -> String {
    let failed = test.events("agent_failed");
    let own = failed.iter().find(|failed| failed["agent"] == agent);
    own.and_then(|failed| failed["error"].as_str()).expect("it failed").to_owned()
}

/// Waits until an agent has ended.
#[track_caller]
fn wait_end<'l, 't>(live: &'l mut RunningRaymond<'t>, agent: &str) -> &'l mut RunningRaymond<'t> {
    live.wait_for(&format!("the end of {agent}"), |test| {
        let results = test.events("step_finished").into_iter();
        let results = results.filter(|step| step["transition"]["tag"] == "result");
        results.chain(test.events("agent_failed")).any(|ended| ended["agent"] == agent)
    })
}

/// Returns the number of children of each fork, from the records.
fn births(test: &Test) -> Vec<usize> {
    let size = |group: &Value| group["agents"].as_array().map_or(0, Vec::len);
    let born =
        |step: &Value| step["children"].as_array().map(|groups| groups.iter().map(size).sum());
    test.events("step_finished").iter().filter_map(born).collect()
}
