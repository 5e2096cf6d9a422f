//! What commands say of agents at hosts: where they run, and what they wait for.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::cluster::{Cluster, RUN};
use super::flows::{held_at_work, three};
use crate::support::wait_until;

/// Returns an agent as `tree --json` has it.
fn agent(cluster: &Cluster, id: &str) -> Value {
    let tree = cluster.machine("c").raymond(&["tree", RUN, "--json"]).ok().json();
    let agents = tree["agents"].as_array().cloned().unwrap_or_default();
    agents.into_iter().find(|agent| agent["id"] == id).unwrap_or_default()
}

#[test]
fn running_turns_and_waits_are_shown_with_their_host_on_any_machine() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let third = cluster.machine("c");
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_events("run_started", 1);
    wait_until("the first agent waits for a host", || {
        agent(&cluster, "main")["waits_for"]["kind"] == "host"
    });
    third.raymond(&["status", RUN]).ok().says("waits for a host");
    let _worker = cluster.machine("a").worker(2, &[]);
    cluster.wait_calls(3);
    wait_until("two turns run there, and a third agent waits", || {
        let agents = ["main.1", "main.2", "main.3"].map(|id| agent(&cluster, id));
        let running = agents.iter().filter(|agent| agent["status"] == "running").count();
        let waiting = agents.iter().filter(|agent| agent["waits_for"]["kind"] == "permit").count();
        agents.iter().all(|agent| agent["host"] == "a") && (running, waiting) == (2, 1)
    });
    let tree = third.raymond(&["tree", RUN, "--all"]);
    tree.ok().says("running on a").says("waits for a free process on a");
    third.raymond(&["show", RUN, "main.1"]).ok().says("running on a");
    let hosts = || third.raymond(&["hosts", "--json"]).ok().json();
    wait_until("a heartbeat tells of both turns", || hosts()[0]["busy"] == 2);
    let hosts = hosts();
    assert_eq!(hosts[0]["agents"], 4, "{hosts}");
    let page = include_str!("../../../docs/reference/json.md");
    let page = page.split("## `hosts`").nth(1).and_then(|rest| rest.split("\n## ").next());
    let page = page.expect("the page tells of hosts");
    for key in hosts[0].as_object().expect("a host").keys() {
        assert!(page.contains(&format!("`{key}`")), "{key} is missing in {page}");
    }
    cluster.release("go");
    supervisor.wait().ok();
    wait_until("the host has nothing to do", || {
        let hosts = third.raymond(&["hosts", "--json"]).ok().json();
        assert_eq!(hosts[0]["agents"], 0, "{hosts}");
        hosts[0]["busy"] == 0
    });
}

#[test]
fn label_that_no_host_has_is_named() {
    let cluster = three(Cluster::new()).file("START.md", "---\nhost: gpu\n---\nstart");
    cluster.script(&held_at_work());
    let _worker = cluster.machine("a").worker(2, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    let third = cluster.machine("c");
    cluster.wait_events("run_started", 1);
    wait_until("the agent waits", || agent(&cluster, "main")["waits_for"]["kind"] == "host");
    assert_eq!(agent(&cluster, "main")["waits_for"], json!({ "kind": "host", "label": "gpu" }));
    third.raymond(&["status", RUN]).ok().says("waits for a host with the label gpu");
    third.raymond(&["stop", RUN]).ok();
    supervisor.wait();
}

#[test]
fn silent_host_is_named_by_waits_and_views() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let worker = cluster.machine("a").worker(3, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    wait_until("a turn runs", || agent(&cluster, "main.1")["status"] == "running");
    worker.signal(Signal::STOP);
    let mut stop = cluster.machine("c").start(&["stop", RUN, "--wait"]);
    stop.wait_stderr("host a has been silent for");
    stop.wait_stderr("raymond hosts lost a");
    for command in ["status", "tree"] {
        let shown = cluster.machine("d").raymond(&[command, RUN]);
        shown.ok();
        assert!(shown.stderr.contains("host a has been silent for"), "{command}: {shown:?}");
    }
    worker.signal(Signal::CONT);
    cluster.release("go");
    stop.wait().ok();
    supervisor.wait();
}
