//! Supervisors that die, or stand still: another machine goes on with their run, and they write nothing more.

use std::time::{Duration, Instant};

use raymond::domain::id::RunId;
use raymond::engine::shared_log::{LogLine, NewSharedRun};
use raymond::runtime::sharing::{RunEngine, take_over};
use raymond::store::layout::RunsRoot;
use raymond::store::user_state::UserState;
use rustix::process::Signal;

use super::cluster::{Cluster, RUN};
use super::ended::Running;
use super::fake::{answers, holds};
use super::flows::{TURNS, fork, held_at_work, three};
use crate::support::wait_until;

const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(8);

/// Starts a host that takes runs over, and a run on another machine, whose first turns are held.
fn started<'c>(cluster: &'c Cluster, options: &[&str]) -> (Running<'c>, Running<'c>) {
    cluster.script(&held_at_work());
    let worker = cluster.machine("a").worker(3, options);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    (worker, supervisor)
}

/// Waits until the background has a supervisor that holds the run.
pub(super) fn wait_takeover(cluster: &Cluster) {
    wait_until("another supervisor", || {
        let holder = cluster.holder().unwrap_or_default();
        let is_holder = |pid: i32| holder.contains(&format!(", process {pid}, "));
        cluster.detached_supervisor().is_some_and(|one| is_holder(one.pid))
    });
}

pub(super) fn assert_all_done(cluster: &Cluster) {
    cluster.release("go");
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), TURNS);
}

#[test]
fn run_of_a_killed_supervisor_goes_on_by_itself() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &["--takes-runs"]);
    supervisor.kill9();
    wait_takeover(&cluster);
    assert_all_done(&cluster);
}

#[test]
fn turns_that_finish_while_nobody_supervises_are_not_lost() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &["--takes-runs"]);
    supervisor.kill9();
    cluster.machine("s").lose_state();
    cluster.release("go");
    assert_all_done(&cluster);
}

#[test]
fn machine_that_lost_its_state_resumes_its_run() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &[]);
    supervisor.kill9();
    let machine = cluster.machine("s");
    machine.lose_state();
    let machine = cluster.machine("s");
    machine.raymond(&["resume", RUN]).code(73).says("is supervised by another raymond");
    wait_until("the lease runs out", || is_abandoned(&cluster));
    let resumed = machine.start(&["resume", RUN]);
    cluster.release("go");
    resumed.wait().ok();
    assert_all_done(&cluster);
}

#[test]
fn lease_is_kept_while_a_run_loads() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &[]);
    supervisor.kill9();
    wait_until("the lease runs out", || is_abandoned(&cluster));
    let (root, state) = (cluster.root().join("copies"), cluster.root().join("state"));
    let from = RunEngine { engine: cluster.engine.clone(), holder: "another".to_owned() };
    let run = RunId::parse(RUN).expect("an id");
    let taken = take_over(&from, &run, &RunsRoot::new(root), &UserState::new(state));
    let (store, _, claimed) = taken.expect("it is taken over");
    let since = Instant::now();
    wait_until("a lease that nobody keeps would have run out", || {
        assert_eq!(cluster.holder().as_deref(), Some("another"));
        since.elapsed() > LONGER_THAN_A_LEASE
    });
    drop((store, claimed));
    wait_until("nobody keeps it", || is_abandoned(&cluster));
    let resumed = cluster.machine("s").start(&["resume", RUN]);
    cluster.release("go");
    resumed.wait().ok();
    assert_all_done(&cluster);
}

fn is_abandoned(cluster: &Cluster) -> bool {
    cluster.engine.runs().expect("runs").iter().all(|run| run.is_abandoned)
}

#[test]
fn supervisor_that_stood_still_sees_that_it_was_taken_over() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &["--takes-runs"]);
    supervisor.signal(Signal::STOP);
    wait_takeover(&cluster);
    cluster.release("go");
    cluster.wait_end();
    let log = cluster.log();
    supervisor.signal(Signal::CONT);
    supervisor.wait().code(73).says("taken").says(RUN);
    assert_eq!(cluster.log(), log, "it wrote something");
    assert_all_done(&cluster);
}

#[test]
fn supervisor_that_stood_still_is_gone_before_the_run_ends() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &["--takes-runs"]);
    supervisor.signal(Signal::STOP);
    wait_takeover(&cluster);
    supervisor.signal(Signal::CONT);
    supervisor.wait().code(73).says("taken").says(RUN);
    assert_all_done(&cluster);
}

#[test]
fn run_that_was_stopped_is_not_taken_over_though_its_lease_was_left() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &["--takes-runs"]);
    let stop = cluster.machine("c").start(&["stop", RUN, "--wait"]);
    wait_until("the stop arrives", || supervisor.stderr().contains("stop"));
    cluster.release("go");
    stop.wait().ok();
    supervisor.wait();
    let run = RunId::parse(RUN).expect("an id");
    // As if its supervisor had died after it had recorded the stop.
    let lease = cluster.engine.claim_run(&run, "a dead one", Duration::from_millis(1));
    lease.expect("it was given back");
    let (records, calls) = (cluster.log().len(), cluster.calls().len());
    wait_until("the lease is given back", || {
        let runs = cluster.engine.runs().unwrap_or_default();
        runs.iter().any(|run| run.holder.is_none() && !run.is_abandoned)
    });
    assert_eq!((cluster.log().len(), cluster.calls().len()), (records, calls), "it went on");
    cluster.machine("c").raymond(&["resume", RUN]).ok();
    cluster.wait_end();
    cluster.assert_paid_once();
}

#[test]
fn run_that_goes_on_with_other_settings_is_taken_over_with_them() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let worker = cluster.machine("a").worker(3, &["--takes-runs"]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    // The machine that takes the run over has a copy of it from before.
    cluster.machine("a").raymond(&["status", RUN]).ok();
    let stop = cluster.machine("c").start(&["stop", RUN, "--wait"]);
    wait_until("the stop arrives", || supervisor.stderr().contains("stop"));
    cluster.release("go");
    stop.wait().ok();
    supervisor.wait();
    cluster.script(&[
        answers("start", &fork()),
        holds("rest", "on", "<result>done</result>"),
        answers("sum up", "<result>all done</result>"),
    ]);
    let resumed = cluster.machine("s").start(&["resume", RUN, "--budget", "200"]);
    cluster.wait_calls(5);
    resumed.kill9();
    wait_takeover(&cluster);
    cluster.release("on");
    cluster.wait_end();
    cluster.assert_paid_once();
    let said = worker.stderr();
    assert_eq!(said.matches("has lost its supervisor").count(), 1, "{said}");
}

#[test]
fn stop_of_an_abandoned_run_keeps_it_from_being_taken_over() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &[]);
    supervisor.kill9();
    wait_until("the lease runs out", || {
        cluster.engine.runs().is_ok_and(|runs| runs.iter().all(|run| run.is_abandoned))
    });
    let stopped = cluster.machine("c").raymond(&["stop", RUN]);
    stopped.ok().says("has lost its supervisor").says("raymond resume t");
    assert!(cluster.engine.runs().is_ok_and(|runs| !runs[0].is_abandoned));
    cluster.release("go");
    cluster.machine("s").raymond(&["resume", RUN]).ok();
    cluster.wait_end();
    cluster.assert_paid_once();
}

#[test]
fn run_that_cannot_be_taken_over_delays_no_other() {
    let cluster = three(Cluster::new());
    let (_worker, supervisor) = started(&cluster, &["--takes-runs"]);
    for name in ["a1", "a2", "a3", "a4"] {
        let run = RunId::parse(name).expect("an id");
        let lines = vec![LogLine { seq: 1, text: "{}".to_owned() }];
        let new = NewSharedRun { run, terms: "{}".to_owned(), lines };
        cluster.engine.create_run(&new, "nobody", Duration::from_millis(1)).expect("a run");
    }
    supervisor.kill9();
    wait_takeover(&cluster);
    assert_all_done(&cluster);
    cluster.machine("c").raymond(&["list"]).ok().says("the run a1 may be out of date").says(RUN);
}
