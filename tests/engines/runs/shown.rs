//! `raymond show` of turns at other hosts, from a machine that has no part in the run.

use std::path::Path;

use rustix::process::Signal;

use super::cluster::{Cluster, RUN};
use super::fake::answers;
use super::flows::{held_at_work, three};
use crate::support::wait_until;

#[test]
fn texts_of_turns_are_shown_from_a_third_machine() {
    let cluster = three(Cluster::new());
    cluster.script(&held_at_work());
    let worker = cluster.machine("a").worker(2, &[]);
    let supervisor = cluster.machine("s").run(&[]);
    cluster.wait_calls(2);
    let third = cluster.machine("c");
    // While the run goes on, its supervisor does not get what the third machine asks for.
    third.raymond(&["show", RUN, "main.1"]).ok().says("work a");
    cluster.release("go");
    supervisor.wait().ok();
    cluster.assert_paid_once();
    let shown = third.raymond(&["show", RUN, "main"]);
    shown.ok().says("sum up").says("all done").lacks("which");
    let shown = third.raymond(&["show", RUN, "main.1", "--json"]).ok().json();
    let turn = &shown["steps"][0]["turns"][0];
    assert_eq!((&turn["prompt"], &turn["host"]), (&"work a".into(), &"a".into()), "{shown}");
    let mut session = cluster.backend.session();
    let left = "SELECT count(*) FROM raymond.request WHERE key LIKE '?%'";
    assert_eq!(session.ask(left).as_deref(), Some("0"));

    worker.signal(Signal::STOP);
    wait_until("the host counts as silent", || {
        let shown = third.raymond(&["show", RUN, "main"]);
        shown.ok().stdout.contains("which has been silent for")
    });
    third.raymond(&["hosts", "lost", "a"]).ok();
    let shown = third.raymond(&["show", RUN, "main"]);
    shown.ok().says("its texts are on the host a, which was declared lost").says("all done");
    worker.signal(Signal::CONT);
    worker.wait().code(73);
}

#[test]
fn host_that_has_no_files_any_more_is_named() {
    let cluster = Cluster::new().file("START.md", "start");
    cluster.script(&[answers("start", "<result>done</result>")]);
    let _worker = cluster.machine("a").worker(1, &[]);
    cluster.machine("s").run(&[]).wait().ok();
    let calls = cluster.calls();
    let host = calls[0].env.get("RAYMOND_DIR").expect("the host's directory");
    let steps = Path::new(host).join("runs").join(RUN).join("steps");
    std::fs::remove_dir_all(&steps).expect("the files of the turns");
    let shown = cluster.machine("c").raymond(&["show", RUN]);
    shown.ok().says("the host a no longer has its files").lacks("start\n");
}
