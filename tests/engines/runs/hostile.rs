//! Terms that somebody has changed in the engine: what leaves its place is refused, on hosts and where a run is only read.

use std::time::Duration;

use raymond::domain::id::RunId;

use super::cluster::{Cluster, RUN};
use super::fake::{answers, holds};
use crate::support::wait_until;

/// Replaces a part of the run's terms, as who can write the engine's tables could.
pub(super) fn change_terms(cluster: &Cluster, from: &str, to: &str) {
    let run = RunId::parse(RUN).expect("an id");
    let terms = cluster.engine.terms(&run).expect("the terms");
    assert!(terms.contains(from), "{from} in {terms}");
    let mut lease = None;
    wait_until("the lease of the run is free", || {
        lease = cluster.engine.claim_run(&run, "somebody", Duration::from_hours(1)).ok();
        lease.is_some()
    });
    let lease = lease.expect("a lease");
    cluster.engine.set_terms(&lease, &terms.replace(from, to)).expect("they are changed");
    cluster.engine.release_run(&lease, false).expect("it is given back");
}

#[test]
fn file_of_changed_terms_is_written_nowhere() {
    let cluster = Cluster::new().file("START.md", "start");
    cluster.script(&[answers("start", "<result>done</result>")]);
    let _worker = cluster.machine("a").worker(1, &[]);
    cluster.machine("s").run(&[]).wait().ok();
    let outside = cluster.root().join("planted");
    for path in [outside.to_str().expect("a path"), "../../../../../../planted"] {
        change_terms(&cluster, "\"START.md\":{", &format!("{path:?}:{{"));
        let reader = cluster.machine("reader").raymond(&["list"]);
        reader.code(65).says("not below the workflow");
        assert!(!outside.exists() && !cluster.machine("reader").path("planted").exists());
        change_terms(&cluster, &format!("{path:?}:{{"), "\"START.md\":{");
    }
    cluster.machine("reader").raymond(&["list"]).ok();
}

#[test]
fn directory_of_changed_terms_is_corrected_on_resume() {
    let cluster = Cluster::new().file("START.md", "start");
    cluster.script(&[holds("start", "go", "<result>done</result>")]);
    let machine = cluster.machine("s");
    let shared = machine.path("");
    let shared = shared.to_str().expect("a path").trim_end_matches('/');
    let supervisor = machine.run(&["--shared-dir", shared]);
    cluster.wait_events("run_started", 1);
    supervisor.kill9();
    let work = format!("{shared}/work");
    change_terms(&cluster, &format!("\"cwd\":{work:?}"), &format!("\"cwd\":\"{shared}/../flow\""));
    let _worker = cluster.machine("a").worker(1, &["--shared-dir", shared]);
    cluster.release("go");
    cluster.machine("s").raymond(&["resume", RUN]).ok();
    let terms = cluster.engine.terms(&RunId::parse(RUN).expect("an id")).expect("the terms");
    assert!(terms.contains(&format!("\"cwd\":{work:?}")), "{terms}");
    assert_eq!(cluster.calls().len(), 1);
    assert_eq!(cluster.calls()[0].env.get("PWD").map_or(work.as_str(), |pwd| pwd), work);
}

#[test]
fn copy_of_another_engine_is_not_taken_for_the_run() {
    let [first, second] = [Cluster::new(), Cluster::new()].map(|cluster| {
        let cluster = cluster.file("START.md", "start");
        cluster.script(&[answers("start", "<result>done</result>")]);
        cluster
    });
    let machine = first.machine("a");
    let dir = machine.path("ray");
    let dir = dir.to_str().expect("a path");
    let worker = machine.worker(1, &[]);
    first.machine("s").run(&[]).wait().ok();
    worker.kill9();
    let arguments = ["worker", "--host", "a", "--slots", "1", "--dir", dir, "--allow", "program"];
    let mut command = machine.command(&arguments);
    command.env("RAYMOND_ENGINE", second.backend.url());
    let _worker = machine.launch(command, &arguments);
    let refused = second.machine("s").run(&[]).wait();
    refused.code(69).says("host a: ").says("is not a copy of the run t of this engine");
    assert_eq!((first.calls().len(), second.calls().len()), (1, 0));
}
