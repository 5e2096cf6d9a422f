//! Workers that die, drain, or leave: another one of the same host takes their turns up.

use std::fs;

use rustix::process::Signal;

use super::cluster::{Cluster, RUN};
use super::fake::{answers, holds};
use super::flows::{TURNS, held_at_work, three};
use super::process::OwnProcess;
use crate::support::wait_until;

#[test]
fn worker_that_is_started_again_adopts_its_turns() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let machine = cluster.machine("a");
    let worker = machine.worker(3, &[]);
    let mut supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    worker.kill9();
    supervisor.wait_stderr("host a has been silent").wait_stderr("`raymond hosts lost a`");
    let _worker = machine.worker(3, &[]);
    supervisor.wait_stderr("host a responds again");
    cluster.release("go");
    supervisor.wait().ok();
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), TURNS);
}

#[test]
fn turns_that_finish_without_a_worker_are_not_lost() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let machine = cluster.machine("a");
    let worker = machine.worker(2, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(3);
    let first = cluster.calls();
    worker.kill9();
    cluster.release("go");
    wait_until("the turns end", || {
        let living = cluster.processes();
        !first.iter().any(|call| living.iter().any(|one| one.pid == call.pid))
    });
    let _worker = machine.worker(2, &[]);
    supervisor.wait().ok();
    cluster.wait_end();
    cluster.assert_paid_once();
    assert_eq!(cluster.calls().len(), TURNS);
}

/// A program whose command notes that it begins, and runs until it may end.
fn one_command(cluster: Cluster) -> Cluster {
    let (begun, go) = (cluster.root().join("begun"), cluster.root().join("go"));
    let (begun, go) = (begun.display(), go.display());
    let command = format!("echo begun >> {begun}; while [ ! -e {go} ]; do sleep 0.05; done");
    let work = format!("(action (run :command \"{command}\"))");
    let program = format!("(workflow once (state work {work} (terminal :result done)))");
    cluster.file("workflow.lisp", &program)
}

fn begun(cluster: &Cluster) -> usize {
    let lines = fs::read_to_string(cluster.root().join("begun")).unwrap_or_default();
    lines.lines().count()
}

#[test]
fn command_of_a_worker_that_was_killed_is_not_repeated() {
    let cluster = one_command(Cluster::new().with_environment(&[("RAYMOND_TRUST", "true")]));
    let machine = cluster.machine("a");
    let worker = machine.worker(1, &["--allow", "commands"]);
    let supervisor = cluster.machine("s").run(&[]);
    wait_until("the command begins", || begun(&cluster) == 1);
    worker.kill9();
    let _worker = machine.worker(1, &["--allow", "commands"]);
    supervisor.wait().says("WF502");
    assert_eq!(begun(&cluster), 1, "the command was begun once");
}

#[test]
fn command_at_a_host_is_ended_when_a_stop_has_waited_for_it() {
    let cluster = one_command(Cluster::new().with_environment(&[("RAYMOND_TRUST", "true")]));
    let _worker = cluster.machine("a").worker(1, &["--allow", "commands"]);
    let supervisor = cluster.machine("s").run(&["--shutdown", "1s"]);
    wait_until("the command begins", || begun(&cluster) == 1);
    cluster.machine("c").raymond(&["stop", RUN]).ok();
    supervisor.wait().code(130);
    let command = |living: &[OwnProcess]| living.iter().any(|one| one.has_text("echo begun"));
    wait_until("the command ends", || !command(&cluster.processes()));
}

#[test]
fn interrupted_worker_ends_after_its_turns_and_the_next_goes_on() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let machine = cluster.machine("a");
    let mut worker = machine.worker(2, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(3);
    worker.signal(Signal::INT);
    worker.wait_stderr("interrupted");
    cluster.release("go");
    worker.wait().ok();
    let _worker = machine.worker(2, &[]);
    supervisor.wait().ok();
    cluster.wait_end();
    cluster.assert_paid_once();
}

#[test]
fn draining_host_keeps_its_agents_and_gets_no_others() {
    let cluster = Cluster::new().file("START.md", "start").file("NEXT.md", "next");
    cluster.script(&[
        holds("start", "go", "<goto>NEXT.md</goto>"),
        answers("next", "<result>done</result>"),
    ]);
    let worker = cluster.machine("a").worker(2, &[]);
    let first = cluster.machine("s").run(&[]);
    cluster.wait_calls(1);
    let third = cluster.machine("c");
    third.raymond(&["hosts", "drain", "a"]).ok().says("gets no new ones");
    let standing = || {
        let hosts = third.raymond(&["hosts", "--json"]).ok().json();
        hosts[0]["standing"].clone()
    };
    assert_eq!(standing(), "draining");
    let flow = cluster.flow();
    let other = ["run", flow.to_str().expect("a path"), "--id", "other", "--stagger", "0s"];
    let mut second = cluster.machine("s2").start(&other);
    second.wait_stderr("wait for a host");
    cluster.release("go");
    first.wait().ok();
    assert_eq!(cluster.calls().len(), 2, "the other run has no host");
    let _other = cluster.machine("b").worker(1, &[]);
    second.wait().ok();
    assert!(cluster.calls()[2..].iter().all(|call| call.is_on("b")), "{:?}", cluster.calls());
    drop(worker);
}

#[test]
fn name_of_a_live_host_is_left_to_its_worker_until_that_is_silent() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let first = cluster.machine("a").worker(3, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(4);
    let other = cluster.machine("b");
    let mut second = other.start(&["worker", "--host", "a"]);
    second.wait_stderr("waiting until it is silent");
    second.wait().code(73).says("another worker serves the host a").says("with --host");
    cluster.release("go");
    supervisor.wait().ok();
    cluster.assert_paid_once();
    first.kill9();
    let _second = other.start(&["worker", "--host", "a"]);
    wait_until("the other worker serves it", || {
        let hosts = cluster.engine.hosts().expect("hosts");
        hosts.iter().any(|host| host.epoch.0 == 2 && host.is_alive())
    });
}
