//! `raymond clean`: what has ended is removed, everything else stays.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use crate::support::{Test, held, pair};

fn runs(test: &Test) -> Vec<String> {
    let entries = fs::read_dir(test.dir().join("runs")).expect("runs");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    names.sort();
    names
}

fn seals(test: &Test) -> usize {
    let path = test.root().join("home/.local/state/raymond/runs");
    fs::read_dir(path).map_or(0, Iterator::count)
}

fn with_runs() -> Test {
    let test = pair();
    test.run(&["START.md", "--id", "ended"]).ok();
    test.run(&["START.md", "--id", "paused", "--budget", "0.01"]).code(75);
    test
}

#[test]
fn clean_removes_ended_runs_by_age() {
    let test = with_runs();
    let dry = test.raymond(&["clean", "--older-than", "0d", "--dry-run"]);
    dry.ok().stdout_has("ended  completed").stdout_lacks("paused").stderr_has("would be removed");
    let none = test.raymond(&["clean", "--older-than", "1d", "--yes"]);
    none.ok().stderr_has("no run was removed");
    assert_eq!(runs(&test), ["ended", "paused"]);
    let removed = test.raymond(&["clean", "--older-than", "0d", "--yes", "--json"]).ok().json();
    assert_eq!(removed["removed"][0]["run"], "ended");
    assert!(removed["removed"][0]["bytes"].as_u64() > Some(1000), "{removed}");
    assert_eq!(removed["kept"], serde_json::json!([]));
    assert_eq!(runs(&test), ["paused"]);
    assert_eq!(seals(&test), 1, "that of the paused run");
    test.raymond(&["status", "ended"]).code(64);
}

#[test]
fn clean_refuses_runs_that_have_not_ended() {
    let test = with_runs();
    test.raymond(&["clean"]).code(64).stderr_has("--older-than");
    test.raymond(&["clean", "ended"]).code(64).stderr_has("--yes").stderr_has("--dry-run");
    test.raymond(&["clean", "nothing", "--yes"]).code(64).stderr_has("no run nothing");
    let mixed = test.raymond(&["clean", "paused", "end", "--yes"]);
    mixed
        .code(64)
        .stderr_has("paused stays: it is paused; only runs that have ended are removed")
        .stderr_has("removed");
    assert_eq!(runs(&test), ["paused"]);

    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    test.raymond(&["clean", "t", "--yes"]).code(64).stderr_has("t stays: it is running");
    test.release("go");
    live.wait().ok();
}

#[test]
fn clean_leaves_what_links_lead_to() {
    let test = with_runs();
    let outside = test.root().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("mine"), "mine").expect("written");
    symlink(&outside, test.dir().join("runs/ended/steps/out")).expect("linked");
    symlink(&outside, test.dir().join("runs/linked")).expect("linked");
    test.raymond(&["clean", "linked", "--yes"]).code(64).stderr_has("linked stays");
    test.raymond(&["clean", "ended", "--yes"]).ok();
    assert_eq!(runs(&test), ["linked", "paused"]);
    assert!(outside.join("mine").exists());
}

#[test]
fn clean_of_run_with_forged_end_needs_its_name() {
    let test = with_runs();
    let journal = test.dir().join("runs/ended/journal.jsonl");
    let records = fs::read_to_string(&journal).expect("read");
    fs::write(&journal, records.replace("\"proof\":\"", "\"proof\":\"0")).expect("written");
    let by_age = test.raymond(&["clean", "--older-than", "0d", "--yes"]);
    by_age.ok().stderr_has("ended stays");
    assert_eq!(runs(&test), ["ended", "paused"]);
}

#[test]
fn two_cleans_at_once_do_not_disturb_each_other() {
    let test = pair();
    for number in 0..8 {
        test.run(&["START.md", "--id", &format!("run-{number}")]).ok();
    }
    let left = test.dir().join("runs/.removed-old/steps/a");
    fs::create_dir_all(&left).expect("made");
    (0..500).for_each(|number| fs::write(left.join(number.to_string()), "x").expect("written"));
    let cleans = [(); 3].map(|()| test.start(&["clean", "--older-than", "0d", "--yes"]));
    for clean in cleans {
        clean.wait().ok().stderr_lacks("warning");
    }
    test.raymond(&["clean", "--older-than", "0d", "--yes"]).ok();
    assert_eq!(runs(&test), [""; 0]);
}

#[test]
fn clean_marks_named_run_that_does_not_prove_its_end() {
    let test = with_runs();
    // With another key of the user nothing proves what was recorded.
    fs::remove_dir_all(test.root().join("home/.local/state/raymond")).expect("removed");
    let by_age = test.raymond(&["clean", "--older-than", "0d", "--yes"]);
    by_age.ok().stderr_has("ended stays: its directory does not prove that it has ended");
    let both = test.raymond(&["clean", "ended", "--older-than", "0d", "--yes"]);
    both.code(64).stderr_has("ended stays: its directory does not prove how old it is");
    assert_eq!(runs(&test), ["ended", "paused"]);
    let named = test.raymond(&["clean", "ended", "--yes"]);
    named.ok().stdout_has("its directory does not prove that it has ended");
    assert_eq!(runs(&test), ["paused"]);
}

#[test]
fn clean_asks_on_terminal() {
    let test = with_runs();
    let mut screen = test.on_screen(&["clean", "ended"], (24, 100));
    screen.wait_for(&["ended  completed", "Type yes to remove 1 run of"]).keys("no\r");
    screen.wait_for(&["no run was removed"]);
    assert_eq!(screen.wait_for_exit(), Some(0));
    let mut screen = test.on_screen(&["clean", "ended"], (24, 100));
    screen.wait_for(&["Type yes"]).keys("yes\r").wait_for(&["removed"]);
    assert_eq!(screen.wait_for_exit(), Some(0));
    assert_eq!(runs(&test), ["paused"]);
}

#[test]
fn clean_keeps_runs_with_worktrees_and_what_planted_records_name() {
    let test = with_runs();
    let victim = test.root().join("victim");
    fs::create_dir_all(victim.join("main")).expect("made");
    fs::write(victim.join("main/data"), "mine").expect("written");
    let record = r#"{"agent":"main","branch":"nobranch","base":"x","prefix":"","stage":"begun"}"#;
    fs::write(victim.join("main.json"), record).expect("written");
    fs::create_dir_all(test.dir().join("worktrees")).expect("made");
    symlink(&victim, test.dir().join("worktrees/ended")).expect("linked");
    test.raymond(&["clean", "ended", "--yes"]).code(64).stderr_has("ended stays: it has worktrees");
    test.raymond(&["worktrees", "ended", "--prune", "--all"]);
    assert_eq!(fs::read_to_string(victim.join("main/data")).expect("there"), "mine");
    assert_eq!(runs(&test), ["ended", "paused"]);
}

#[test]
fn clean_goes_by_the_last_record_and_not_by_the_time_of_the_file() {
    let test = with_runs();
    let journal =
        fs::File::options().append(true).open(test.dir().join("runs/ended/journal.jsonl"));
    let long_ago = SystemTime::now() - Duration::from_hours(720);
    journal.expect("opened").set_modified(long_ago).expect("set");
    let none = test.raymond(&["clean", "--older-than", "7d", "--yes"]);
    none.ok().stderr_has("no run was removed");
    assert_eq!(runs(&test), ["ended", "paused"]);
}

#[test]
fn clean_says_that_named_run_is_not_old_enough() {
    let test = with_runs();
    let young = test.raymond(&["clean", "ended", "--older-than", "1d", "--yes"]);
    young.code(64).stderr_has("ended stays: its last event is not old enough");
    assert_eq!(runs(&test), ["ended", "paused"]);
}
