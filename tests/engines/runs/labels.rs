//! Labels: an agent lives on a host that has the one its first state asks for, and waits until there is one.

use serde_json::Value;

use super::cluster::{Cluster, RUN};
use super::flows::{held_at_work, three};
use crate::support::wait_until;

#[test]
fn agents_wait_for_a_host_with_the_label_of_their_state() {
    let cluster = three(Cluster::new()).file("WORK.md", "---\nhost: gpu\n---\nwork {{item}}");
    cluster.script(&held_at_work());
    cluster.release("go");
    let root = cluster.root().to_str().expect("a path");
    let shared = ["--shared-dir", root];
    let _plain = cluster.machine("a").worker(3, &shared);
    let supervisor = cluster.machine("s").run(&shared);
    wait_until("the run says what it waits for", || {
        cluster
            .said()
            .contains("no host has the label gpu; start `raymond worker --host-label gpu`")
    });
    let _labelled =
        cluster.machine("b").worker(3, &[&shared[..], &["--host-label", "gpu"]].concat());
    supervisor.wait().ok();
    cluster.wait_end();
    assert_eq!(hosts_of(&cluster, "main"), ["a"]);
    for child in ["main.1", "main.2", "main.3"] {
        assert_eq!(hosts_of(&cluster, child), ["b"], "{child}");
    }
}

#[test]
fn labels_hold_for_the_first_agent_and_after_a_resume() {
    let cluster = three(Cluster::new())
        .file("START.md", "---\nhost: big\n---\nstart")
        .file("WORK.md", "---\nhost: gpu\n---\nwork {{item}}");
    cluster.script(&held_at_work());
    cluster.release("go");
    let root = cluster.root().to_str().expect("a path");
    let shared = ["--shared-dir", root];
    let plain = cluster.machine("a").worker(3, &shared);
    cluster.machine("c").raymond(&["hosts", "remove", "a"]).code(64).says("a is alive");
    let supervisor = cluster.machine("s").run(&shared);
    wait_until("the first agent waits", || cluster.said().contains("no host has the label big"));
    let _big = cluster.machine("b").worker(3, &[&shared[..], &["--host-label", "big"]].concat());
    wait_until("the others wait", || cluster.said().contains("no host has the label gpu"));
    supervisor.kill9();
    wait_until("the lease runs out", || {
        cluster.engine.runs().expect("runs").iter().all(|run| run.is_abandoned)
    });
    let resumed = cluster.machine("s").start(&["resume", RUN]);
    wait_until("they wait again", || {
        cluster.said().matches("no host has the label gpu").count() >= 2
    });
    let _gpu = cluster.machine("g").worker(3, &[&shared[..], &["--host-label", "gpu"]].concat());
    resumed.wait().ok();
    cluster.wait_end();
    assert_eq!(hosts_of(&cluster, "main"), ["b"]);
    for child in ["main.1", "main.2", "main.3"] {
        assert_eq!(hosts_of(&cluster, child), ["g"], "{child}");
    }
    drop(plain);
}

/// Returns the hosts that an agent was given.
fn hosts_of(cluster: &Cluster, agent: &str) -> Vec<Value> {
    let placed =
        cluster.log().into_iter().filter_map(|record| record["placed"].as_array().cloned());
    let homes = placed.flatten().filter(|placed| placed["agent"] == agent);
    homes.map(|placed| placed["host"].clone()).collect()
}
