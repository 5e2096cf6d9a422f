//! An engine that is down for a while: running turns go on, and the run does afterwards.

use super::super::backend;
use super::cluster::Cluster;
use super::ended::Running;
use super::flows::{TURNS, held_at_work, three};
use crate::support::wait_until;

const DOWN: &str = "cannot be reached";
const BACK: &str = "is reached again";

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

fn assert_told_once(process: &Running<'_>) {
    let said = process.stderr();
    for line in [DOWN, BACK] {
        assert_eq!(said.matches(line).count(), 1, "{line} in {said}");
    }
}
