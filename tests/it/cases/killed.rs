//! `raymond test` that is killed, and environments that would bend its runs.

use super::{CASES, flow, left, test_of};
use crate::support::wait_until;

#[test]
fn killed_test_ends_its_runs_and_the_next_test_removes_its_directory() {
    let cases =
        "replies: { A.md: [{ reply: x, delay: 5m }] }\nexpect: { path: [START.md, A.md] }\n";
    let test = flow(cases);
    std::fs::create_dir(test.root().join("tmp")).expect("made");
    let test = test.env("TMPDIR", "../tmp");
    let mut running = test.start(&["test"]);
    let raymonds = || {
        let mark =
            format!("{}/tmp/raymond-test-", test.root().canonicalize().expect("real").display());
        let entries = std::fs::read_dir("/proc").expect("/proc is there").flatten();
        let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&mark)).count()
    };
    running.wait_for("a run of the case", |_| raymonds() == 1);
    running.kill9();
    wait_until("the run of the case has ended", || raymonds() == 0);
    assert_eq!(left(&test), 1, "its directory is left");
    let test = test.file("tests/ways.yaml", b"expect: { path: [START.md, A.md] }\n");
    test_of(&test, &[]).ok();
    assert_eq!(left(&test), 0, "it is removed");
}

#[test]
fn directory_of_a_test_that_runs_stays() {
    let test = flow(CASES);
    let dir = test.root().join("tmp/raymond-test-0123456789ab");
    std::fs::create_dir_all(&dir).expect("made");
    let lock = std::fs::File::create(dir.join("lock")).expect("made");
    lock.lock().expect("locked");
    let test = test.env("TMPDIR", "../tmp");
    test_of(&test, &["--case", "by A"]).ok();
    assert!(dir.is_dir());
    drop(lock);
    test_of(&test, &["--case", "by A"]).ok();
    assert_eq!(left(&test), 0);
}

#[test]
fn variables_that_bend_scripted_runs_do_not_reach_the_cases() {
    let test = flow(CASES).env("RAYMOND_LAST", "1").env("RAYMOND_REPLIES", "/nowhere.yaml");
    test_of(&test, &["--case", "by A", "--kill-sweep"]).ok().stdout_has(" kills)");
}
