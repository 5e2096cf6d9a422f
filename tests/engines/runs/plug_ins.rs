//! A required plug-in runs beside the supervisor, wherever that is, and the turns at hosts obey it.

use super::cluster::{Cluster, RUN};
use super::fake::{answers, holds};
use super::machine::Machine;
use crate::support::wait_until;

/// Lets a host take the runs of this workflow, whose plug-in needs trust.
const ALLOW: [&str; 2] = ["--allow", "commands"];

/// What is said where the program is missing.
const MISSING: &str = "no executable program `guard`";

/// Returns a workflow of two turns with the plug-in `guard`, which each supervisor's machine has on its `PATH`.
fn guarded() -> Cluster {
    let manifest =
        "plugins:\n  - { command: guard, required: true, restart: temporary, deadline: 1m }\n";
    let cluster = Cluster::new()
        .file("raymond.yaml", manifest)
        .file("START.md", "start")
        .file("NEXT.md", "next");
    cluster.script(&[
        holds("start", "go", "<goto>NEXT.md</goto>"),
        answers("next", "<result>well</result>"),
    ]);
    cluster
}

/// Installs the plug-in on a machine. It stops the run while the file `night` exists, and dies at a record while `dies` does.
fn install(cluster: &Cluster, machine: &Machine<'_>) {
    let folder = cluster.fake();
    let script = format!(
        r#"#!/usr/bin/env python3
import json, os, sys
def has(name):
    return os.path.exists("{}/" + name)
def say(**message):
    print(json.dumps(message), flush=True)
say(type="hello", version=2, consult=["start"])
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "consult" and has("night"):
        say(type="verdict", id=message["id"], verdict="stop", scope="run", reason="it is night")
    elif message["type"] == "consult":
        say(type="verdict", id=message["id"], verdict="proceed")
    if message["type"] == "record" and has("dies"):
        sys.exit(3)
"#,
        folder.display()
    );
    machine.install("guard", &script);
}

/// Returns whether nobody holds the run, and nobody is to take it over.
fn is_given_back(cluster: &Cluster) -> bool {
    let runs = cluster.engine.runs().expect("runs");
    runs.iter().all(|run| run.holder.is_none() && !run.is_abandoned)
}

fn ends(cluster: &Cluster, name: &str) {
    std::fs::remove_file(cluster.fake().join(name)).expect("it was there");
}

#[test]
fn required_plug_in_that_refuses_lets_no_host_begin_anything() {
    let cluster = guarded();
    let _worker = cluster.machine("a").worker(1, &ALLOW);
    let machine = cluster.machine("s");
    install(&cluster, &machine);
    cluster.release("night");
    cluster.release("go");
    machine.run(&["--trust"]).wait().code(75).says("the plug-in guard: it is night");
    assert!(cluster.calls().is_empty(), "{:?}", cluster.calls());
    ends(&cluster, "night");

    // Another machine is no way around it.
    let third = cluster.machine("c");
    third
        .raymond(&["resume", RUN])
        .code(69)
        .says("the plug-in guard cannot be started")
        .says(MISSING);
    assert!(cluster.calls().is_empty(), "{:?}", cluster.calls());
    assert!(is_given_back(&cluster), "a host may take it over that takes runs");
    let status = third.raymond(&["status", RUN, "--json"]).ok().json();
    assert_eq!(status["status"], "paused", "{status}");
    install(&cluster, &third);
    third.raymond(&["resume", RUN]).ok().says("well");
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), 2);
    cluster.assert_nothing_left();
}

#[test]
fn required_plug_in_that_dies_pauses_the_run_and_the_running_turn_counts() {
    let cluster = guarded();
    let _worker = cluster.machine("a").worker(1, &ALLOW);
    let machine = cluster.machine("s");
    install(&cluster, &machine);
    let mut supervisor = machine.run(&["--trust"]);
    cluster.wait_calls(1);
    cluster.release("dies");
    cluster.release("go");
    supervisor.wait_stderr("the plug-in guard exited with code 3; the run needs it");
    supervisor.wait().code(75).says("the plug-in guard: it is required");
    assert_eq!(cluster.calls().len(), 1, "nothing begins without it");
    ends(&cluster, "dies");
    machine.raymond(&["resume", RUN]).ok().says("well");
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), 2);
    cluster.assert_nothing_left();
}

#[test]
fn run_with_a_required_plug_in_is_not_taken_over_where_that_is_missing() {
    let cluster = guarded();
    let mut strict = cluster.machine("a").worker(1, &[&ALLOW[..], &["--takes-runs"]].concat());
    let machine = cluster.machine("s");
    install(&cluster, &machine);
    let supervisor = machine.run(&["--trust"]);
    cluster.wait_calls(1);
    let lax = ["--allow", "plugins", "--takes-runs"];
    let _lax = cluster.machine("t").worker(1, &[&ALLOW[..], &lax].concat());
    supervisor.kill9();
    strict.wait_stderr("this host does not take it over").wait_stderr("--allow plugins");
    wait_until("the other machine says why it cannot", || cluster.said().contains(MISSING));
    cluster.release("go");
    assert_eq!(cluster.calls().len(), 1, "nothing began without the plug-in");
    // It is still to be taken over, which succeeds once the program is there.
    install(&cluster, &cluster.machine("t"));
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), 2);
}
