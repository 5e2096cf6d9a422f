//! Machines whose clocks are wrong by a minute: leases and silence are those of the engine's clock.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::cluster::Cluster;
use super::flows::{TURNS, held_at_work, three};
use super::machine::Machine;
use super::supervisors::{assert_all_done, wait_takeover};
use crate::support::wait_until;
use crate::wrong_clock::{AHEAD, PRELOAD, library};

fn ahead<'c>(machine: Machine<'c>, seconds: &str) -> Machine<'c> {
    machine.with(PRELOAD, library()).with(AHEAD, seconds)
}

/// Checks that the first record is of a supervisor whose clock is behind: it is older than the test.
#[track_caller]
fn assert_is_old(cluster: &Cluster, began: Timestamp) {
    let first = &cluster.log()[0];
    let at: Timestamp = first["at"].as_str().and_then(|at| at.parse().ok()).expect("a time");
    assert!(at < began, "the clock was not changed: {first}");
}

#[test]
fn run_goes_on_though_the_clocks_differ_by_two_minutes() {
    let began = Timestamp::try_from(SystemTime::now()).expect("a time");
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    // The host would count as lost at once if its clock were compared with that of the supervisor.
    let options = ["--host-timeout", "30s", "--takes-runs"];
    let worker = ahead(cluster.machine("a"), "60").worker(3, &options);
    let supervisor = ahead(cluster.machine("s"), "-60").run(&[]);
    cluster.wait_calls(4);
    assert_is_old(&cluster, began);
    // Several heartbeats and leases pass.
    let holder = cluster.holder();
    let (mut beats, mut last) = (0, Duration::ZERO);
    wait_until("the host is heard of again and again", || {
        let hosts = cluster.engine.hosts().unwrap_or_default();
        let silent = hosts.first().map_or(Duration::MAX, |host| host.silent_for);
        beats += usize::from(silent < last);
        last = silent;
        beats == 5
    });
    cluster.machine("c").raymond(&["hosts"]).ok().says("alive");
    assert_eq!(cluster.holder(), holder);
    cluster.release("go");
    supervisor.wait().ok().lacks("silent").lacks("lost");
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), TURNS);
    assert!(!worker.stderr().contains("taken over"), "{}", worker.stderr());
}

#[test]
fn run_is_taken_over_by_a_machine_whose_clock_is_wrong() {
    let began = Timestamp::try_from(SystemTime::now()).expect("a time");
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let _worker = ahead(cluster.machine("a"), "60").worker(3, &["--takes-runs"]);
    let supervisor = ahead(cluster.machine("s"), "-60").run(&[]);
    cluster.wait_calls(4);
    assert_is_old(&cluster, began);
    supervisor.kill9();
    wait_takeover(&cluster);
    assert_all_done(&cluster);
}
