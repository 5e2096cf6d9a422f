//! Labels: an agent lives on a host that has the one its first state asks for, and waits until there is one.

use super::cluster::Cluster;
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
        cluster.said().contains("no host has the label gpu; start `raymond worker --label gpu`")
    });
    let _labelled = cluster.machine("b").worker(3, &[&shared[..], &["--label", "gpu"]].concat());
    supervisor.wait().ok();
    cluster.wait_end();
    let host_of = |agent: &str| {
        let placed =
            cluster.log().into_iter().filter_map(|record| record["placed"].as_array().cloned());
        let homes = placed.flatten().filter(|placed| placed["agent"] == agent);
        homes.map(|placed| placed["host"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(host_of("main"), ["a"]);
    for child in ["main.1", "main.2", "main.3"] {
        assert_eq!(host_of(child), ["b"], "{child}");
    }
}
