//! Facts of an engine's runs: changed and seen from all machines, and taken once, whoever dies meanwhile.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use raymond::domain::id::RunId;
use serde_json::{Value, json};

use super::cluster::{Cluster, RUN};
use super::ended::Running;
use super::machine::Machine;
use crate::postgres::server::Server;
use crate::support::wait_until;

const PUSHES: usize = 8;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("workflows").join(name)
}

/// Starts a sample that is a program, with the label of its run.
fn start<'c>(
    machine: &Machine<'c>,
    name: &str,
    label: &str,
    failpoint: Option<&str>,
) -> Running<'c> {
    let folder = sample(name);
    let folder = folder.to_str().expect("a path");
    let run = ["run", folder, "--label", label, "--agent", "scripted", "--input", "a flag"];
    let mut command = machine.command(&[&run[..], &["--stagger", "0s"]].concat());
    command.envs(failpoint.map(|point| ("RAYMOND_FAILPOINT", point)));
    machine.launch(command, &run)
}

#[track_caller]
fn signal(machine: &Machine<'_>, label: &str, key: &str, value: &str) {
    machine.raymond(&["signal", label, "--key", key, "--value", value]).ok();
}

/// Returns the facts of a label that a machine sees, by key.
#[track_caller]
fn facts(machine: &Machine<'_>, label: &str) -> BTreeMap<String, String> {
    let listed = machine.raymond(&["facts", "--label", label, "--json"]).ok().json();
    let text = |fact: &Value, name: &str| fact[name].as_str().unwrap_or_default().to_owned();
    let all = listed.as_array().expect("facts").iter();
    all.map(|fact| (text(fact, "key"), text(fact, "value"))).collect()
}

/// Returns the changes of facts in the engine.
fn changes(cluster: &Cluster) -> Vec<Value> {
    let all = cluster.engine.fact_changes(0, usize::MAX).unwrap_or_default();
    all.iter().map(|change| serde_json::from_str(&change.text).expect("a change")).collect()
}

/// Returns the keys of the facts of a label that were taken, in their order.
fn taken(cluster: &Cluster, label: &str) -> Vec<String> {
    let changes = changes(cluster);
    let claims = changes
        .iter()
        .filter(|change| change["label"] == label && !change["change"]["claimed"].is_null());
    claims.map(|change| change["key"].as_str().unwrap_or_default().to_owned()).collect()
}

fn responses(cluster: &Cluster, run: &str) -> usize {
    let run = RunId::parse(run).expect("an id");
    let lines = cluster.engine.read(&run, 0, usize::MAX).unwrap_or_default();
    lines.iter().filter(|line| line.text.contains("\"event\":\"role_responded\"")).count()
}

fn wait_responses(cluster: &Cluster, number: usize) {
    wait_until("answers of roles", || responses(cluster, RUN) >= number);
}

fn wait_taken(cluster: &Cluster, label: &str, number: usize) {
    wait_until("a fact is taken", || taken(cluster, label).len() >= number);
}

#[test]
fn gate_is_decided_from_a_third_machine() {
    let cluster = Cluster::new();
    let _worker = cluster.machine("a").worker(1, &[]);
    let run = start(&cluster.machine("s"), "gate", RUN, None);
    let third = cluster.machine("c");
    wait_responses(&cluster, 1);
    signal(&third, "gate/ci", RUN, "failed: the copy is written");
    wait_responses(&cluster, 2);
    signal(&third, "gate/ci", RUN, "passed");
    wait_taken(&cluster, "gate/ci", 2);
    signal(&third, "gate/verdict", RUN, "the help says nothing");
    wait_responses(&cluster, 3);
    signal(&third, "gate/ci", RUN, "passed");
    wait_taken(&cluster, "gate/ci", 3);
    signal(&third, "gate/verdict", RUN, "approved");
    run.wait().ok().says("The help text tells of it.");
    for machine in [&third, &cluster.machine("d")] {
        assert!(facts(machine, "gate/ci").is_empty() && facts(machine, "gate/verdict").is_empty());
    }
}

#[test]
fn planner_and_implementer_are_satisfied_from_a_third_machine() {
    let cluster = Cluster::new();
    let third = cluster.machine("c");
    signal(&third, "plan/summary", RUN, "Add it");
    let _worker = cluster.machine("a").worker(2, &[]);
    let run = start(&cluster.machine("s"), "planner-worker-review", RUN, None);
    third.raymond(&["signal", "plan/ready", "--key", RUN]).ok();
    wait_responses(&cluster, 3);
    third.raymond(&["signal", "review/satisfied", "--key", RUN]).ok();
    run.wait().ok();
    assert_eq!(facts(&cluster.machine("d"), "plan/summary")[RUN], "Add it");
}

#[test]
fn two_reviewers_on_two_machines_take_each_push_once() {
    let cluster = Cluster::new();
    let _worker = cluster.machine("a").worker(4, &[]);
    let third = cluster.machine("c");
    let names = ["r1", "r2"];
    let runs = names.map(|name| start(&cluster.machine(name), "standing-reviewer", name, None));
    for push in 0..PUSHES {
        signal(&third, "git/push", &push.to_string(), &format!("{push}..{}", push + 1));
    }
    wait_until("a review of each push", || facts(&third, "review/done").len() == PUSHES);
    for _ in &runs {
        let before = taken(&cluster, "git/push").len();
        signal(&third, "git/push", "stop", "stop");
        wait_taken(&cluster, "git/push", before + 1);
    }
    for run in runs {
        run.wait().ok();
    }
    let mut keys = taken(&cluster, "git/push");
    keys.sort_unstable();
    let mut expected: Vec<String> = (0..PUSHES).map(|push| push.to_string()).collect();
    expected.extend(["stop".to_owned(), "stop".to_owned()]);
    assert_eq!(keys, expected);
    let turns: usize = names.iter().map(|name| responses(&cluster, name)).sum();
    assert_eq!(turns, PUSHES);
    assert!(facts(&cluster.machine("d"), "git/push").is_empty());
}

/// Returns the number of changes that a run makes up to the first fact that it takes.
fn changes_up_to_claim() -> usize {
    let cluster = Cluster::new();
    let _worker = cluster.machine("a").worker(1, &[]);
    signal(&cluster.machine("c"), "git/push", "1", "a..b");
    let _run = start(&cluster.machine("s"), "standing-reviewer", RUN, None);
    wait_taken(&cluster, "git/push", 1);
    let changes = changes(&cluster);
    let claim = changes.iter().position(|change| !change["change"]["claimed"].is_null());
    let of_signal = |change: &&Value| change["change"]["asserted"]["fact"]["source"] == "signal";
    let claim = claim.expect("a claim");
    claim + 1 - changes[..claim].iter().filter(of_signal).count()
}

#[test]
fn fact_of_a_supervisor_that_died_before_its_record_is_taken_once() {
    let claim = changes_up_to_claim();
    let cluster = Cluster::new();
    let _worker = cluster.machine("a").worker(1, &["--takes-runs"]);
    let third = cluster.machine("c");
    signal(&third, "git/push", "1", "a..b");
    let point = format!("dataspace.written:{claim}");
    let run = start(&cluster.machine("s"), "standing-reviewer", RUN, Some(&point));
    wait_taken(&cluster, "git/push", 1);
    run.killed();
    assert_eq!(responses(&cluster, RUN), 0, "it died before it went on");
    signal(&third, "git/push", "2", "b..c");
    wait_until("both are reviewed", || facts(&third, "review/done").len() == 2);
    signal(&third, "git/push", "stop", "stop");
    cluster.wait_end();
    assert_eq!(taken(&cluster, "git/push"), ["1", "2", "stop"]);
    assert_eq!(responses(&cluster, RUN), 2);
}

#[test]
fn facts_outlive_a_server_that_was_killed() {
    let server = Arc::new(Server::new(""));
    let cluster = Cluster::on(&server);
    let third = cluster.machine("c");
    let _worker = cluster.machine("a").worker(1, &[]);
    let mut run = start(&cluster.machine("s"), "standing-reviewer", RUN, None);
    signal(&third, "git/push", "1", "a..b");
    wait_until("a review", || facts(&third, "review/done").len() == 1);
    server.kill();
    run.wait_stderr("cannot be reached");
    let down = third.raymond(&["signal", "git/push", "--key", "2", "--value", "b..c"]);
    down.code(69).says("cannot be reached");
    third.raymond(&["facts"]).code(69).says("cannot be reached");
    server.start();
    run.wait_stderr("can be reached again");
    assert!(!taken(&cluster, "git/push").contains(&"2".to_owned()), "nothing half done");
    signal(&third, "git/push", "3", "c..d");
    wait_until("another review", || facts(&third, "review/done").len() == 2);
    signal(&third, "git/push", "stop", "stop");
    run.wait().ok();
    assert_eq!(taken(&cluster, "git/push"), ["1", "3", "stop"]);
}

#[test]
fn hints_and_values_are_those_of_a_directory() {
    let cluster = Cluster::new();
    let third = cluster.machine("c");
    let told = third.raymond(&["signal", "plan/ready", "--key", "x"]);
    told.ok().says("plan/ready x is asserted (1)").says("nobody waits for plan/ready");
    let other = cluster.machine("d");
    other.raymond(&["signal", "job", "--value", "one", "--append"]).ok().says("asserted (2)");
    let second = third.raymond(&["signal", "job", "--value", "two", "--append", "--json"]);
    assert_eq!(second.ok().json()["before"], 1);
    other.raymond(&["facts"]).ok().says("plan/ready").says("one").lacks("two");
    other.raymond(&["signal", "plan/ready", "--key", "x", "--retract"]).ok().says("is retracted");
    third.raymond(&["facts", "--label", "job", "--prune"]).ok().says("1 fact is retracted");
    assert!(facts(&other, "job").is_empty());
}

#[test]
fn copy_of_facts_is_not_changed_without_its_engine() {
    let cluster = Cluster::new();
    let machine = cluster.machine("c");
    let (ray, other) = (machine.path("ray"), machine.path("other"));
    let (ray, other) = (ray.to_str().expect("a path"), other.to_str().expect("a path"));
    machine.raymond(&["signal", "job", "--dir", ray]).ok();
    let alone = |words: &[&str]| {
        let mut command = machine.command(words);
        command.env_remove("RAYMOND_ENGINE");
        machine.launch(command, words).wait()
    };
    alone(&["facts", "--dir", ray]).ok().says("job");
    alone(&["signal", "job", "--retract", "--dir", ray]).code(64).says("name it with --engine");
    alone(&["signal", "own", "--dir", other]).ok();
    let shared = machine.raymond(&["signal", "job", "--dir", other]);
    shared.code(64).says("are those of this machine");
    for words in [&["workflow", "list"][..], &["workflow", "define", "x.lisp"]] {
        machine.raymond(words).code(64).says("not yet on those of an engine");
    }
}

#[test]
fn run_that_a_program_starts_shares_the_facts() {
    let parent = r"(workflow parent
        (state s
          (action (start-workflow child.lisp :label feature-42 :as run))
          (wait (signal made :key @run :consume true :as made))
          (wait (signal workflow/state :key @run :equals completed))
          (terminal :result @made)))";
    let child = r"(workflow child
        (metadata (publish-state true))
        (state s
          (wait (signal wanted :key @workflow-id :consume true :as what))
          (action (assert made :key @workflow-id :value @what))
          (terminal :result @what)))";
    let cluster = Cluster::new().file("workflow.lisp", parent).file("child.lisp", child);
    let _worker = cluster.machine("a").worker(1, &[]);
    let run = cluster.machine("s").run(&[]);
    signal(&cluster.machine("c"), "wanted", "feature-42", "honey");
    run.wait().ok().says("honey");
    assert_eq!(taken(&cluster, "wanted"), ["feature-42"]);
    assert_eq!(taken(&cluster, "made"), ["feature-42"]);
    assert!(facts(&cluster.machine("d"), "made").is_empty());
}

#[test]
fn agent_learns_that_it_cannot_change_facts_of_an_engine() {
    let cluster = Cluster::new().file("START.md", "start");
    let said = cluster.root().join("said");
    let words = format!(
        "for word in 'signal job' facts; do {} $word >> {said} 2>&1; echo \"code $?\" >> {said}; done",
        env!("CARGO_BIN_EXE_raymond"),
        said = said.display()
    );
    cluster.script(&[json!({ "when": "start", "reply": "<result>done</result>", "run": words })]);
    let _worker = cluster.machine("a").worker(1, &[]);
    cluster.machine("s").run(&[]).wait().ok();
    let said = std::fs::read_to_string(said).expect("it said something");
    assert_eq!(said.matches("code 64").count(), 2, "{said}");
    assert_eq!(said.matches("agents do not have its address").count(), 2, "{said}");
    assert!(facts(&cluster.machine("c"), "job").is_empty());
}
