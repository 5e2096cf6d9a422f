//! Runs and hosts of a newer raymond: an older one says so, and touches nothing.

use std::time::Duration;

use raymond::domain::host::{HostName, HostReport};
use raymond::domain::id::RunId;
use raymond::engine::shared_log::LogLine;

use super::cluster::{Cluster, RUN};
use super::fake::answers;
use super::hostile::change_terms;
use crate::support::report;

fn one_prompt() -> Cluster {
    let cluster = Cluster::new().file("START.md", "start");
    cluster.script(&[answers("start", "<result>done</result>")]);
    cluster
}

#[track_caller]
fn assert_ended_and_free(cluster: &Cluster) {
    let runs = cluster.engine.runs().expect("runs");
    assert!(runs.iter().all(|run| run.holder.is_none() && !run.is_abandoned), "{runs:?}");
    assert_eq!(cluster.calls().len(), 1);
}

#[test]
fn run_whose_terms_are_newer_is_refused_with_both_versions() {
    let cluster = one_prompt();
    let _worker = cluster.machine("a").worker(1, &[]);
    cluster.machine("s").run(&[]).wait().ok();
    // A newer version may have other parts.
    change_terms(&cluster, "\"version\":1,\"scope_dir\":", "\"version\":7,\"place\":");
    let reader = cluster.machine("reader");
    for command in [&["list"][..], &["status", RUN], &["resume", RUN]] {
        reader.raymond(command).code(69).says("version 7").says("version 1");
    }
    // So is one that this machine has a copy of.
    cluster.machine("s").raymond(&["resume", RUN]).code(69).says("version 7").says("version 1");
    assert_ended_and_free(&cluster);
}

#[test]
fn run_with_newer_records_is_refused() {
    let cluster = one_prompt();
    let _worker = cluster.machine("a").worker(1, &[]);
    cluster.machine("s").run(&[]).wait().ok();
    let run = RunId::parse(RUN).expect("an id");
    let mut lines = cluster.engine.read(&run, 0, usize::MAX).expect("a log");
    let last = lines.pop().expect("a record");
    let seq = last.seq + 1;
    let text = format!(r#"{{"format":9,"seq":{seq}}}"#);
    let lease = cluster.engine.claim_run(&run, "newer", Duration::from_hours(1)).expect("a lease");
    cluster.engine.append(&lease, &[LogLine { seq, text }]).expect("a line");
    cluster.engine.release_run(&lease, true).expect("it is given back");
    for machine in ["reader", "s"] {
        for command in ["status", "resume"] {
            cluster.machine(machine).raymond(&[command, RUN]).code(65).says("format 9");
        }
    }
    assert_ended_and_free(&cluster);
}

#[test]
fn host_of_another_version_is_given_no_agents() {
    let cluster = one_prompt();
    let newer = HostName::parse("newer").expect("a name");
    let other = HostReport { wire: 9, ..report(0) };
    cluster
        .engine
        .register_host(&newer, "worker", &other, Duration::ZERO)
        .expect("it is in service");
    let mut supervisor = cluster.machine("s").run(&[]);
    supervisor.wait_stderr("newer").wait_stderr("version 9");
    let _worker = cluster.machine("a").worker(1, &[]);
    supervisor.wait().ok();
    assert!(cluster.calls()[0].is_on("a"), "{:?}", cluster.calls());
}
