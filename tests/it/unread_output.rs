//! A reader that stops reading delays neither the run nor its end.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::support::{kill, wait_until};

/// A raymond whose output goes into a full pipe, because its workflow has many steps with an unfilled
/// placeholder.
struct BlockedRun {
    place: tempfile::TempDir,
    child: Child,
    _reader: std::io::PipeReader,
}

impl BlockedRun {
    fn start(arguments: &[&str], which: &str) -> Self {
        let place = tempfile::tempdir().expect("a temporary folder");
        let flow = place.path().join("flow");
        std::fs::create_dir(&flow).expect("a folder");
        std::fs::write(flow.join("START.md"), "count {{nothing}}").expect("written");
        let replies = "START.md:\n".to_owned()
            + &"  - \"<goto>START.md</goto>\"\n".repeat(600)
            + "  - <result>ok</result>\n";
        std::fs::write(flow.join("replies.yaml"), replies).expect("written");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let other = || Stdio::from(File::create(place.path().join("other")).expect("a file"));
        let full = Stdio::from(OwnedFd::from(writer));
        let mut command = Command::new(env!("CARGO_BIN_EXE_raymond"));
        command.args(["run", "START.md", "--agent", "scripted", "--id", "t"]).args(arguments);
        command
            .env_clear()
            .env("RAYMOND_DIR", place.path().join("ray"))
            .env("HOME", place.path())
            .current_dir(&flow)
            .stdin(Stdio::null());
        let command = match which {
            "stdout" => command.stdout(full).stderr(other()),
            _ => command.stderr(full).stdout(other()),
        };
        let child = command.spawn().expect("it starts");
        Self { place, child, _reader: reader }
    }

    fn journal(&self) -> String {
        let mut text = String::new();
        let journal = File::open(self.place.path().join("ray/runs/t/journal.jsonl"));
        let _ = journal.and_then(|mut journal| journal.read_to_string(&mut text));
        text
    }
}

#[test]
fn unread_stderr_does_not_block_the_run() {
    let mut blocked = BlockedRun::start(&[], "stderr");
    wait_until("the last record", || blocked.journal().contains("\"tag\":\"result\""));
    wait_until("its end", || blocked.child.try_wait().expect("asked").is_some());
}

#[test]
fn unread_json_stdout_blocks_neither_the_run_nor_an_interrupt() {
    let mut blocked = BlockedRun::start(&["--json"], "stdout");
    wait_until("the last record", || blocked.journal().contains("\"tag\":\"result\""));
    let pid = i32::try_from(blocked.child.id()).expect("a pid fits");
    wait_until("its end after an interrupt", || {
        kill(pid, Signal::INT);
        blocked.child.try_wait().expect("asked").is_some()
    });
}
