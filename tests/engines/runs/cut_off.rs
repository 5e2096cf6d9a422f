//! Machines whose network carries nothing any more, and does not say so: others go on, and what comes back begins and
//! writes nothing.

use super::cluster::{Cluster, RUN};
use super::fake::holds;
use super::flows::{TURNS, fork, held_at_work, three};
use super::own_network::OwnNetwork;
use super::supervisors::{assert_all_done, wait_takeover};

#[test]
fn worker_that_was_cut_off_and_declared_lost_begins_nothing_more() {
    let cluster = three(Cluster::new());
    cluster.script(&[&[holds("start", "go", &fork())], &held_at_work()[..]].concat());
    let mut network = OwnNetwork::of(&cluster, "a");
    let mut cut_off = network.around(cluster.machine("a")).worker(3, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(1);
    network.fall_silent();
    cut_off.wait_stderr("cannot be reached");
    let _other = cluster.machine("b").worker(3, &[]);
    cluster.machine("c").raymond(&["hosts", "lost", "a"]).ok();
    cluster.wait_calls(2);
    cluster.release("go");
    supervisor.wait().ok();
    cluster.wait_end();
    let (calls, log) = (cluster.calls().len(), cluster.log());
    network.come_back();
    cut_off.wait().code(73).says("declared lost");
    assert_eq!((calls, cluster.calls().len()), (TURNS + 1, TURNS + 1), "it began something");
    assert_eq!(cluster.log(), log);
}

#[test]
fn supervisor_that_was_cut_off_writes_nothing_after_it_was_taken_over() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let mut network = OwnNetwork::of(&cluster, "s");
    let _worker = cluster.machine("a").worker(3, &["--takes-runs"]);
    let supervisor = network.around(cluster.machine("s")).run(&[]);
    cluster.wait_calls(4);
    network.fall_silent();
    wait_takeover(&cluster);
    cluster.release("go");
    cluster.wait_end();
    let log = cluster.log();
    network.come_back();
    supervisor.wait().code(73).says("taken").says(RUN);
    assert_eq!(cluster.log(), log, "it wrote something");
    assert_all_done(&cluster);
}
