//! What others put into the directories of a run: FIFOs, links, devices, directories and garbage freeze nothing.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::held;

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
}

/// Puts one of each kind into a directory, under names that come before those of commands.
fn plant(dir: &Path) -> [&'static str; 5] {
    make_fifo(&dir.join("0-fifo.json"));
    symlink("/dev/zero", dir.join("0-zero.json")).expect("linked");
    std::fs::create_dir(dir.join("0-dir.json")).expect("made");
    std::fs::write(dir.join("0-garbage.json"), b"\0\xff{").expect("written");
    let long = File::create(dir.join("0-long.json")).expect("made");
    long.set_len(1 << 40).expect("a sparse file");
    ["0-fifo", "0-zero", "0-dir", "0-garbage", "0-long"]
}

#[test]
fn stop_is_read_from_an_inbox_full_of_other_things_and_each_is_warned_of_once() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let planted = plant(&test.run_dir().join("inbox"));
    for name in planted {
        live.wait_stderr(name);
    }
    test.raymond(&["stop", "t"]).ok();
    live.wait_for("the request is taken out", |test| {
        let inbox = std::fs::read_dir(test.run_dir().join("inbox")).expect("an inbox");
        inbox.flatten().all(|entry| entry.file_name().to_string_lossy().starts_with("0-"))
    });
    test.release("go");
    let outcome = live.wait();
    outcome.code(130);
    for name in planted {
        assert_eq!(outcome.stderr.matches(name).count(), 1, "{name}: {}", outcome.stderr);
    }
    test.assert_no_survivors();
    test.again(&[]).ok().ended("main", "ok");
}
