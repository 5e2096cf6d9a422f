//! Graphs, end to end, with real files, a real git, and pages from this machine. Claude Code is called only
//! where a node asks for it.

#![expect(clippy::needless_pass_by_value, reason = "JSON is written where it is given")]

mod addresses;
mod agents;
mod bounds;
mod conformance;
mod crash;
mod example;
mod journal;
mod others;
mod parallel;
mod references;
mod responses;
mod site;
mod together;
mod world;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{RaymondOutcome, Test};

/// Returns a graph of these nodes that begins with `start` and ends in `done` or in `failed`.
pub(crate) fn graph(nodes: Value) -> Value {
    json!({
        "name": "flow",
        "version": "1.0.0",
        "description": "a flow",
        "entry_preconditions": [],
        "initial_state": {},
        "start_node": "start",
        "nodes": nodes,
        "endings": {
            "done": {"type": "success", "message": "done"},
            "failed": {
                "type": "error", "message": "It failed", "details": "${computed.last_error}",
                "recovery": "flow-repair",
            },
        },
    })
}

/// Returns a node with actions, which leads to `next`.
pub(crate) fn node(actions: Value, next: &str) -> Value {
    json!({"type": "action", "actions": actions, "on_success": next, "on_failure": "failed"})
}

/// Returns a test with this graph, whose Claude Code leaves a trace and fails if it is called.
fn test(graph: &Value) -> Test {
    let test = Test::new();
    let trap = test.root().join("trap");
    let script = format!("#!/bin/sh\ntouch '{}'\nexit 1\n", trace(&test).display());
    std::fs::write(&trap, script).expect("written");
    std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).expect("allowed");
    test.file("workflow.yaml", graph.to_string().as_bytes()).env("RAYMOND_CLAUDE", trap)
}

fn trace(test: &Test) -> std::path::PathBuf {
    test.root().join("called")
}

fn run(test: &Test, options: &[&str]) -> RaymondOutcome {
    test.run(&[&["workflow.yaml", "--allow-address", "127.0.0.1"], options].concat())
}

/// Returns the result of an agent's graph.
#[track_caller]
fn payload(outcome: &RaymondOutcome, agent: &str) -> Value {
    let start = format!("Agent {agent} terminated with result: ");
    let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(&start));
    outcome.assert(line.is_some(), &format!("{start} on stdout"));
    serde_json::from_str(line.unwrap_or_default()).expect("JSON")
}

/// Returns the nodes that an agent executed, as `node outcome`.
fn route(test: &Test, agent: &str) -> Vec<String> {
    let walked = test.events("graph_advanced");
    let of = walked.iter().filter(|walked| walked["agent"] == agent);
    let visits = of.filter_map(|walked| walked["visits"].as_array()).flatten();
    let said = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    visits.map(|visit| format!("{} {}", said(&visit["node"]), said(&visit["outcome"]))).collect()
}

fn text(test: &Test, name: &str) -> String {
    std::fs::read_to_string(test.flow().join(name))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs git in a directory, as the people of a remote do.
pub(crate) fn git(dir: &Path, words: &[&str]) -> String {
    let who = ["AUTHOR", "COMMITTER"]
        .map(|role| [(format!("GIT_{role}_NAME"), "a"), (format!("GIT_{role}_EMAIL"), "a@b")]);
    let ended = Command::new("git")
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(who.into_iter().flatten())
        .args(words)
        .output()
        .expect("git runs");
    assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).expect("text").trim().to_owned()
}

/// Creates a repository with one commit; returns its address.
fn remote(test: &Test) -> String {
    let dir = test.root().join("remote");
    std::fs::create_dir(&dir).expect("made");
    git(&dir, &["init", "-q", "-b", "main"]);
    std::fs::write(dir.join("README.md"), "# Docs\n").expect("written");
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-q", "-m", "one"]);
    format!("file://{}", dir.display())
}
