//! An engine that is down for a while: running turns go on, and the run does afterwards.

use std::time::{Duration, Instant};

use super::super::backend;
use super::cluster::Cluster;
use super::ended::Running;
use super::flows::{TURNS, held_at_work, three};
use crate::support::wait_until;

const DOWN: &str = "cannot be reached";
/// Longer than the `--host-timeout` of the worker.
const TIMEOUT: Duration = Duration::from_secs(11);

const BACK: &str = "can be reached again";

#[test]
fn run_waits_for_an_engine_that_is_down_and_pays_nothing_twice() {
    let server = backend::own_server();
    let cluster = three(Cluster::on(&server));
    cluster.script(&held_at_work());
    let mut worker = cluster.machine("a").worker(3, &[]);
    let mut supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    server.kill();
    supervisor.wait_stderr(DOWN);
    worker.wait_stderr(DOWN);
    cluster.release("go");
    wait_until("the turns finish", || cluster.finished() == TURNS / 2);
    server.start();
    supervisor.wait_stderr(BACK);
    worker.wait_stderr(BACK);
    cluster.wait_end();
    for process in [&supervisor, &worker] {
        assert_told_once(process);
    }
    supervisor.wait().ok();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), TURNS);
}

#[test]
fn hosts_that_nobody_could_hear_while_the_engine_was_down_are_not_lost() {
    let server = backend::own_server();
    let cluster = three(Cluster::on(&server));
    cluster.script(&held_at_work());
    let mut worker = cluster.machine("a").worker(3, &["--host-timeout", "10s"]);
    let mut supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    server.kill();
    let down = Instant::now();
    wait_until("it is down for longer than a host may be silent", || down.elapsed() > TIMEOUT);
    server.start();
    supervisor.wait_stderr(BACK);
    worker.wait_stderr(BACK);
    cluster.release("go");
    cluster.wait_end();
    supervisor.wait().ok();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), TURNS);
}

fn assert_told_once(process: &Running<'_>) {
    let said = process.stderr();
    for line in [DOWN, BACK] {
        assert_eq!(said.matches(line).count(), 1, "{line} in {said}");
    }
}
