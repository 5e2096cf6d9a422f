//! Kills raymond at each boundary of a run in a graph, resumes the run, and compares: the same nodes, the
//! same files, each append to a file once, each turn of Claude Code asked once.

use raymond::fault::POINTS;
use serde_json::{Value, json};

use super::{graph, node, remote};
use crate::support::{Test, wait_until, when};

/// The arguments of the run: the question is asked twice, and answered ahead of time.
const START: [&str; 7] =
    ["workflow.yaml", "--answer", "ask=no", "--answer", "ask=yes", "--allow-address", "127.0.0.1"];

const DOC: &[u8] = b"Find the NUMBER.\n";

/// Returns a graph with one action of each recovery class, a turn, and an agent that it waits for.
fn flow(url: &str) -> Value {
    let append =
        |content: &str| json!({"type": "append_to_file", "path": "log.txt", "content": content});
    let option = |id: &str| json!({"id": id, "label": id, "description": id});
    let first = json!([
        {"type": "write_file", "path": "one.txt", "content": "one"},
        append("begun\n"),
        {"type": "foreach", "items": ["a", "b"], "actions": [append("${item}\n")]},
        {"type": "clone_repo", "url": url, "dest": "source"},
        {"type": "bash_exec", "command": "echo ran >> ran.txt; cat log.txt", "store_as": "shell"},
        {"type": "web_fetch", "url": "http://127.0.0.1:1/", "store_as": "page", "allow_failure": true},
    ]);
    let last = json!([
        {"type": "spawn_agent", "subagent_type": "scout", "prompt": "LOOK at ${computed.n}", "store_as": "seen"},
        {"type": "write_file", "path": "two.txt", "content": "${computed.n} ${computed.seen}"},
        {"type": "delete_file", "path": "one.txt"},
    ]);
    let mut flow = graph(json!({
        "start": node(first, "refer"),
        "refer": {"type": "reference", "doc": "doc.md", "next_node": "ask"},
        "ask": {
            "type": "user_prompt",
            "prompt": {"question": "On?", "header": "On", "options": [option("yes"), option("no")]},
            "on_response": {
                "yes": {"consequence": [append("${user_responses.ask.id}\n")], "next_node": "more"},
                "no": {"next_node": "ask"},
            },
        },
        "more": {
            "type": "conditional", "branches": {"true": "failed", "false": "last"},
            "condition": {"type": "file_exists", "path": "two.txt"},
        },
        "last": node(last, "done"),
    }));
    flow["endings"]["done"]["summary"] = json!({
        "n": "${computed.n}", "shell": "${computed.shell.stdout}", "page": "${computed.page.status}",
    });
    flow
}

fn place() -> Test {
    let place = Test::new();
    let url = remote(&place);
    place
        .file("workflow.yaml", flow(&url).to_string().as_bytes())
        .file("doc.md", DOC)
        .rule(
            when("NUMBER")
                .reply(r#"<result>{"status":"ok","outputs":{"n":7}}</result>"#)
                .cost(0.01),
        )
        .rule(when("LOOK at 7").reply("<result>seen</result>").cost(0.02))
}

/// Returns everything that must be the same after a kill.
fn comparable_outcome(test: &Test) -> Value {
    let walked = test.events("graph_advanced");
    let visits = walked.iter().filter_map(|walk| walk["visits"].as_array()).flatten();
    let visits: Vec<Value> = visits.map(|visit| json!([visit["node"], visit["outcome"]])).collect();
    let mut asked: Vec<String> =
        test.calls().iter().map(|call| format!("{} {}", call.agent(), call.prompt)).collect();
    asked.sort();
    let file = |name: &str| std::fs::read_to_string(test.flow().join(name)).unwrap_or_default();
    let files = ["one.txt", "two.txt", "log.txt", "ran.txt", "source/README.md"].map(file);
    json!({
        "visits": visits,
        "asked": asked,
        "files": files,
        "cost": test.status()["total_cost_usd"],
    })
}

/// Kills raymond the `count`-th time a failpoint is reached, and compares the resumed run; returns whether
/// the failpoint was reached that often.
fn is_killed_at(point: &str, count: u32, whole: &Value, result: &str) -> bool {
    let context = format!("killed at {point}, time {count}");
    let test = place().env("RAYMOND_FAILPOINT", format!("{point}:{count}"));
    let first = test.run(&START);
    let died = first.killed();
    first.assert(died || first.status.code() == Some(0), &context);
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    let last = if test.run_dir().exists() { test.resume(&[]) } else { test.run(&START) };
    last.assert(last.status.code() == Some(0), &format!("{context}: exit code 0"));
    last.assert(last.stdout.contains(result), &format!("{context}: {result}"));
    assert_eq!(comparable_outcome(&test), *whole, "{context}");
    wait_until(&format!("{context}: no process is left behind"), || test.survivors().is_empty());
    died
}

#[test]
fn graph_killed_at_any_point_resumes_with_same_result() {
    let whole = place();
    let outcome = whole.run(&START);
    outcome.ok();
    let (result, whole) = (super::payload(&outcome, "main"), comparable_outcome(&whole));
    assert_eq!(result["summary"], json!({"n": 7, "page": 0, "shell": "begun\na\nb\n"}));
    assert_eq!(whole["files"], json!(["", "7 seen", "begun\na\nb\nyes\n", "ran\n", "# Docs\n"]));
    let result = result.to_string();
    let times = [1, 2, 3, 5, 8];
    let dies = |point: &str| {
        let deaths = times.iter().take_while(|&&count| is_killed_at(point, count, &whole, &result));
        deaths.count()
    };
    let deaths: Vec<(&str, usize)> = POINTS.into_iter().map(|point| (point, dies(point))).collect();
    for operations in ["operation.before", "operation.after", "append.before", "sync.after"] {
        assert!(deaths.contains(&(operations, times.len())), "{operations}: {deaths:?}");
    }
    let lived: Vec<&str> = deaths
        .iter()
        .filter(|(_, count)| *count == 0)
        .map(|(point, _)| *point)
        .filter(|point| {
            let others = ["approval.", "message.", "dataspace.", "migrate.", "activity."];
            let others = others.iter().chain(&["fork.", "snapshot.", "worktree."]);
            !others.into_iter().any(|other| point.starts_with(other))
        })
        .collect();
    assert_eq!(lived, ["passage.noted", "passage.asked", "inbox.before"]);
}

#[test]
fn time_of_killed_run_is_the_journaled_time_after_resume() {
    let stamped = json!([
        {"type": "compute", "expression": "new Date().toISOString()", "store_as": "stamp"},
        {"type": "write_file", "path": "stamp.txt", "content": "${computed.stamp}"},
    ]);
    let mut flow = graph(json!({"start": node(stamped, "done")}));
    flow["endings"]["done"]["summary"] = json!("${computed.stamp}");
    let test = Test::new()
        .file("workflow.yaml", flow.to_string().as_bytes())
        .env("RAYMOND_FAILPOINT", "operation.before:1");
    let first = test.run(&["workflow.yaml"]);
    first.assert(first.killed(), "killed before the file is written");
    let journaled = json!(test.events("graph_advanced")).to_string();
    let test = test.env("RAYMOND_FAILPOINT", "none:1");
    let outcome = test.resume(&[]);
    outcome.ok();
    let stamp = super::text(&test, "stamp.txt");
    assert!(journaled.contains(&format!("\"{stamp}\"")), "{stamp}: {journaled}");
    assert_eq!(super::payload(&outcome, "main")["summary"], stamp.as_str());
}

/// Returns a graph with several commits, each of which says how it knows that it was done.
fn commits(count: usize) -> Value {
    let mut actions =
        vec![json!({"type": "bash_exec", "command": "git init -q -b main .", "idempotent": true})];
    for number in 1..=count {
        let who = "-c user.name=a -c user.email=a@b";
        let commit = format!("git {who} commit -q --allow-empty -m number-{number}");
        let unless = format!("git log --format=%s | grep -qx number-{number}");
        actions.push(json!({"type": "bash_exec", "command": commit, "unless": unless}));
    }
    graph(json!({"start": node(json!(actions), "done")}))
}

#[test]
fn commit_with_unless_is_made_once_however_often_raymond_is_killed() {
    const COMMITS: usize = 4;
    let test = Test::new().file("workflow.yaml", commits(COMMITS).to_string().as_bytes());
    let mut deaths = 0;
    let point = |count: usize| {
        if count.is_multiple_of(2) { "operation.after:1" } else { "operation.before:1" }
    };
    let mut test = test.env("RAYMOND_FAILPOINT", point(0));
    let mut last = test.run(&["workflow.yaml"]);
    while last.killed() {
        deaths += 1;
        assert!(deaths < 30, "it comes to no end");
        let next = if deaths < 3 * COMMITS { point(deaths) } else { "none:1" };
        test = test.env("RAYMOND_FAILPOINT", next);
        last = test.resume(&[]);
    }
    last.ok();
    assert!(deaths >= COMMITS, "{deaths}");
    let log = super::git(&test.flow(), &["log", "--format=%s", "--reverse"]);
    let expected: Vec<String> = (1..=COMMITS).map(|number| format!("number-{number}")).collect();
    assert_eq!(log.lines().collect::<Vec<_>>(), expected);
}
