//! Fan-out and join, end to end: who is born of one reply, who waits for whom, what is seen of them.

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

use crate::support::{Live, Outcome, Test};

/// The tag that forks a worker for each entry of a list, and leads to the state that waits for them.
fn each(list: &str) -> String {
    format!("<fork next=\"JOIN.md\" each=\"{}\">WORKER.md</fork>", list.replace('"', "&quot;"))
}

/// START forks workers on `{{item}}`; JOIN has this in its frontmatter.
fn place(join: &str) -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work on {{item}}")
        .prompt("JOIN.md", &format!("---\n{join}\n---\nmerge {{{{results}}}}"))
}

/// The same with scripted replies: START says this, a worker tells its item, and JOIN all results.
fn scripted(join: &str, start: &str) -> Test {
    answering(place(join), start, &json!({}))
}

/// The usual replies, and these.
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

/// Plays it by the script, without any stagger.
#[track_caller]
fn play(test: &Test, options: &[&str]) -> Outcome {
    let all = ["START.md", "--agent", "scripted", "--stagger", "0s"];
    test.run(&[&all, options].concat())
}

/// Runs it with the stand-in for Claude Code, without any stagger.
fn spawn<'t>(test: &'t Test, options: &[&str]) -> Live<'t> {
    test.spawn(&[&["START.md", "--stagger", "0s"], options].concat())
}

/// What an agent ended with, if that is JSON.
#[track_caller]
fn payload(ended: &Outcome, agent: &str) -> Value {
    let start = format!("Agent {agent} terminated with result: ");
    let line = ended.stdout.lines().find_map(|line| line.strip_prefix(&start));
    ended.assert(line.is_some(), &format!("{start} on stdout"));
    serde_json::from_str(line.unwrap_or_default()).expect("JSON")
}

/// What came of each worker that is in a list of results: `id status what`.
fn outcomes(results: &Value) -> Vec<String> {
    let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let one = |result: &Value| {
        let what = result.get("result").or_else(|| result.get("error"));
        let what = what.map(said).unwrap_or_default();
        format!("{} {} {what}", said(&result["id"]), said(&result["status"])).trim().to_owned()
    };
    results.as_array().into_iter().flatten().map(one).collect()
}

/// Each join that is over: `agent verdict count done failed`.
fn joins(test: &Test) -> Vec<String> {
    let shown = |joined: &Value| {
        let [agent, outcome] = ["agent", "outcome"].map(|key| joined[key].as_str().unwrap_or("?"));
        format!("{agent} {outcome} {} {} {}", joined["count"], joined["done"], joined["failed"])
    };
    test.events("joined").iter().map(shown).collect()
}

/// The error an agent ended with, as the journal has it.
#[track_caller]
fn error(test: &Test, agent: &str) -> String {
    let failed = test.events("agent_failed");
    let own = failed.iter().find(|failed| failed["agent"] == agent);
    own.and_then(|failed| failed["error"].as_str()).expect("it failed").to_owned()
}

/// Waits until an agent has ended.
#[track_caller]
fn wait_end<'l, 't>(live: &'l mut Live<'t>, agent: &str) -> &'l mut Live<'t> {
    live.wait_for(&format!("the end of {agent}"), |test| {
        let results = test.events("step_finished").into_iter();
        let results = results.filter(|step| step["transition"]["tag"] == "result");
        results.chain(test.events("agent_failed")).any(|ended| ended["agent"] == agent)
    })
}

/// The agents that a step gave birth to, by their records.
fn births(test: &Test) -> Vec<usize> {
    let size = |group: &Value| group["agents"].as_array().map_or(0, Vec::len);
    let born =
        |step: &Value| step["children"].as_array().map(|groups| groups.iter().map(size).sum());
    test.events("step_finished").iter().filter_map(born).collect()
}
