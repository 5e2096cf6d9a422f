//! FIFOs, links, devices, directories and garbage in the directories of a run: none of them blocks raymond.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Test, held};

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
}

/// Puts one file of each kind into a directory, under names that sort before those of commands.
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
fn stop_is_read_despite_planted_inbox_entries_that_each_warn_once() {
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
    test.resume(&[]).ok().ended("main", "ok");
}

/// Puts FIFOs and links in the places of the next turn's files; returns the target of the links.
fn plant_at_next_turn(test: &Test) -> std::path::PathBuf {
    let steps = test.run_dir().join("steps");
    let elsewhere = test.root().join("elsewhere");
    std::fs::write(&elsewhere, "mine").expect("written");
    make_fifo(&steps.join("main-2-0.turn"));
    symlink(&elsewhere, steps.join("main-2-0.prompt")).expect("linked");
    symlink(&elsewhere, steps.join("main-2-0.jsonl")).expect("linked");
    make_fifo(&steps.join("main-1-0.compact"));
    elsewhere
}

#[test]
fn turn_runs_despite_planted_files() {
    for options in [&["START.md"][..], &["START.md", "--no-warm"]] {
        let test = held();
        let mut live = test.spawn(options);
        live.wait_calls(1);
        let elsewhere = plant_at_next_turn(&test);
        test.release("go");
        live.wait().ok().ended("main", "ok");
        assert_eq!(std::fs::read(elsewhere).expect("there"), b"mine", "no link was followed");
        assert_eq!(test.prompts(), ["start", "next"]);
        test.assert_no_survivors();
    }
}

#[test]
fn fifos_in_place_of_transcripts_block_neither_show_nor_costs() {
    let test = held();
    test.release("go");
    test.run(&["START.md", "--no-warm"]).ok();
    for name in ["main-1-0", "main-2-0"] {
        let path = test.run_dir().join(format!("steps/{name}.jsonl"));
        std::fs::remove_file(&path).expect("removed");
        make_fifo(&path);
    }
    test.raymond(&["show", "t", "main"]).ok().stdout_has("step 2");
    test.raymond(&["costs", "t"]).ok();
}

#[test]
fn fifo_as_snapshot_is_replaced_and_as_lock_or_journal_is_an_error() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.interrupt_until_it_ends().code(130);
    let replace_by_fifo = |name: &str| {
        let path = test.run_dir().join(name);
        std::fs::remove_file(&path).expect("removed");
        make_fifo(&path);
    };
    replace_by_fifo("state.json");
    test.raymond(&["status", "t"]).ok().stdout_has("stopped by an interrupt");
    test.release("go");
    test.resume(&[]).ok().stderr_has("state.json: not readable (it is a FIFO, not a plain file)");
    assert!(test.run_dir().join("state.json").is_file());
    replace_by_fifo("lock");
    test.raymond(&["status", "t"]).code(74).stderr_has("lock: cannot open: it is a FIFO");
    std::fs::remove_file(test.run_dir().join("lock")).expect("removed");
    let other = test.dir().join("runs/other");
    std::fs::create_dir(&other).expect("made");
    make_fifo(&other.join("journal.jsonl"));
    test.raymond(&["log", "other"]).code(74).stderr_has("journal.jsonl: cannot open: it is a FIFO");
    test.raymond(&["list"]).ok().stdout_has("unreadable");
}

#[test]
fn facts_are_read_and_planted_lines_and_files_are_named() {
    let test = Test::new().file(
        "p.lisp",
        // Without the second part it would look at one file alone, and list none.
        b"(workflow w (roles (a) (b)) (state s (wait (or (signal go :key k) (signal go :equals never))) (terminal :result (signal go :key k))))",
    );
    test.raymond(&["signal", "go", "--key", "first", "--value", "no"]).ok();
    let space = test.dir().join("dataspace");
    let journal = space.join("facts");
    let stored = std::fs::read(&journal).expect("facts");
    std::fs::write(&journal, [&stored[..], b"\0\xff{\n{}\n"].concat()).expect("written");
    let mut live = test.spawn(&["p.lisp", "--on-wait=stay"]);
    live.wait_stderr("facts:3: this is not a fact (it does not end with its checksum)");
    let listed = test.raymond(&["facts"]);
    listed.ok().stdout_has("first").stderr_has("facts:4: this is not a fact (it does not end");
    std::fs::remove_file(space.join("changes")).expect("removed");
    make_fifo(&space.join("changes"));
    test.raymond(&["signal", "go", "--key", "k", "--value", "yes"]).ok();
    live.wait().ok().ended("main", "yes");
    std::fs::remove_file(&journal).expect("removed");
    make_fifo(&journal);
    for command in [&["facts"][..], &["signal", "go"]] {
        test.raymond(command).code(74).stderr_has("facts: cannot open: it is a FIFO");
    }
    std::fs::remove_file(&journal).expect("removed");
    let definitions = space.join("definitions");
    test.raymond(&["workflow", "define", "p.lisp"]).ok();
    plant(&definitions);
    test.raymond(&["workflow", "list"]).ok().stderr_has("0-fifo.json: this is not a definition");
    std::fs::remove_file(space.join("lock")).expect("removed");
    make_fifo(&space.join("lock"));
    test.raymond(&["signal", "go", "--key", "x"])
        .code(74)
        .stderr_has("lock: cannot open: it is a FIFO");
}

#[test]
fn fifo_or_device_that_a_user_file_or_option_names_is_an_error_at_once() {
    let test = Test::new()
        .prompt("START.md", "start")
        .file("replies.yaml", b"START.md: [<result>ok</result>]\n")
        .file("tests/a.yaml", b"replies: r.yaml\nexpect: { result: ok }\n");
    let outside = test.root().join("outside");
    std::fs::create_dir_all(outside.join("raymond")).expect("made");
    make_fifo(&test.flow().join("tests/r.yaml"));
    test.raymond(&["test"]).code(65).says("r.yaml cannot be read: it is a FIFO, not a plain file");
    std::fs::remove_file(test.flow().join("tests/r.yaml")).expect("removed");
    symlink("/dev/zero", test.flow().join("tests/r.yaml")).expect("linked");
    test.raymond(&["test"]).code(65).says("it is a device, not a plain file");

    let fifo = outside.join("fifo").display().to_string();
    make_fifo(Path::new(&fifo));
    for answers in [&*fifo, "/dev/zero"] {
        let run = test.run(&["START.md", "--agent", "scripted", "--answers", answers]);
        run.code(74).says("not a plain file");
    }
    make_fifo(&outside.join("raymond/config.yaml"));
    let test = test.env("XDG_CONFIG_HOME", outside.to_str().expect("text"));
    let run = test.run(&["START.md", "--agent", "scripted"]);
    run.code(74).says("config.yaml").says("it is a FIFO, not a plain file");
}
