//! A host whose disk is full: the run says where, begins and loses nothing, and goes on once there is room.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use super::cluster::{Cluster, RUN};
use super::ended::Running;
use super::fake::answers;
use super::machine::Machine;

/// Makes the directory of the worker a disk of its own, in namespaces of its own.
const MOUNTS: &str = r#"mkdir -p "$RAYMOND_TEST_DISK" && mount -t tmpfs -o size=2m none "$RAYMOND_TEST_DISK" && exec "$0" "$@""#;

/// Returns whether the system lets a test mount a disk; CI has to.
fn may_mount() -> bool {
    let tried =
        Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/tmp"]).output();
    let may = tried.is_ok_and(|tried| tried.status.success());
    assert!(may || std::env::var_os("CI").is_none(), "CI must allow `unshare -rm`");
    may
}

/// A host with a small disk.
struct SmallDisk<'c> {
    worker: Running<'c>,
    /// The file that fills it, as it is seen from outside of the worker's namespace.
    filler: PathBuf,
}

impl<'c> SmallDisk<'c> {
    fn new(machine: Machine<'c>) -> Self {
        let dir = machine.path("ray");
        let text = dir.to_str().expect("a path");
        let machine = machine.with("RAYMOND_TEST_DISK", text);
        let worker =
            machine.started_by(&["unshare", "-rm", "/bin/sh", "-c", MOUNTS]).worker(1, &[]);
        let inside = format!("/proc/{}/root{text}/filler", worker.pid());
        Self { worker, filler: inside.into() }
    }

    /// Fills the disk to its last byte.
    fn fill(&self) {
        let mut file =
            OpenOptions::new().append(true).create(true).open(&self.filler).expect("a file");
        for size in [4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(&self.filler).expect("it is removed");
    }
}

#[test]
fn run_begins_nothing_at_a_host_with_a_full_disk_and_goes_on_when_there_is_room() {
    if !may_mount() {
        return;
    }
    let cluster = Cluster::new().file("START.md", "start").file("NEXT.md", "next {{answer}}");
    cluster.script(&[
        answers("start", r#"<ask next="NEXT.md">Which colour?</ask>"#),
        answers("next", "<result>well</result>"),
    ]);
    let disk = SmallDisk::new(cluster.machine("a"));
    disk.fill();
    let machine = cluster.machine("s");
    let dir = cluster.machine("a").path("ray");
    let place = format!("host a: {}", dir.to_str().expect("a path"));
    let full = "No space left on device";

    // What the host needs of the run cannot be written.
    machine.run(&["--on-wait", "stay"]).wait().code(69).says(&place).says(full);
    assert!(cluster.calls().is_empty(), "{:?}", cluster.calls());
    disk.make_room();
    let supervisor = machine.start(&["resume", RUN, "--on-wait", "stay"]);
    cluster.wait_events("step_finished", 1);

    // The files of the next turn cannot be written.
    disk.fill();
    cluster.machine("c").raymond(&["answer", RUN, "NEXT.md=blue"]).ok();
    supervisor.wait().code(74).says(&place).says(full);
    assert_eq!(cluster.calls().len(), 1, "{:?}", cluster.calls());
    disk.make_room();
    machine.raymond(&["resume", RUN]).ok().says("well");
    cluster.wait_end();
    assert_eq!(cluster.calls().len(), 2);
    assert!(cluster.calls()[1].history == ["start"], "its session goes on");
    drop(disk.worker);
}
