//! What a run leaves behind on hosts: no process; and what the processes of agents are told: not the engine.

use super::cluster::{Cluster, RUN};
use super::flows::{held_at_work, three};
use crate::support::wait_until;

#[test]
fn no_process_is_left_on_a_host_and_none_knew_the_engine() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let _worker = cluster.machine("a").worker(3, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    let of_run = || {
        let mut all = cluster.processes();
        all.retain(|one| one.variable("RAYMOND_RUN").as_deref() == Some(RUN));
        all
    };
    let living = of_run();
    assert!(living.len() >= 3, "{living:?}");
    let url = cluster.backend.url();
    for process in &living {
        assert_eq!(process.variable("RAYMOND_ENGINE"), None);
        assert!(!process.has_text(&url), "{process:?}");
    }
    cluster.release("go");
    supervisor.wait().ok();
    for call in cluster.calls() {
        assert!(!call.env.contains_key("RAYMOND_ENGINE"), "{call:?}");
    }
    wait_until("the processes of the run end", || of_run().is_empty());
}
