//! `raymond list`: order, age, status and number.

use std::fs;

use serde_json::Value;

use crate::support::{Test, pair};

fn ids(test: &Test, options: &[&str]) -> Vec<String> {
    let listed = test.raymond(&[&["list", "--json"], options].concat()).ok().json_items();
    let id = |run: &Value| run["run"].as_str().expect("an id").to_owned();
    listed.iter().map(id).collect()
}

fn with_runs() -> Test {
    let test = pair();
    test.run(&["START.md", "--id", "b"]).ok();
    test.run(&["START.md", "--id", "c", "--budget", "0.01"]).code(75);
    test.run(&["START.md", "--id", "a"]).ok();
    test
}

#[test]
fn list_shows_newest_run_first_with_age() {
    let test = with_runs();
    assert_eq!(ids(&test, &[]), ["a", "c", "b"]);
    let printed = test.raymond(&["list"]).ok().stdout.clone();
    let rows: Vec<Vec<&str>> =
        printed.lines().skip(1).map(|line| line.split_whitespace().take(3).collect()).collect();
    let header = printed.lines().next().expect("a header");
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>(),
        ["run", "status", "age", "took", "agents", "cost", "workflow"]
    );
    assert!(printed.lines().all(|line| !line.starts_with("a ") || line.contains("  flow")));
    let heads: Vec<&[&str]> = rows.iter().map(|row| &row[..2]).collect();
    assert_eq!(heads, [["a", "completed"], ["c", "paused"], ["b", "completed"]]);
    assert!(rows.iter().all(|row| row[2].ends_with(['s', 'm'])), "{printed}");
}

#[test]
fn list_filters_by_status() {
    let test = with_runs();
    fs::create_dir(test.dir().join("runs/broken")).expect("made");
    assert_eq!(ids(&test, &["--status", "completed"]), ["a", "b"]);
    assert_eq!(ids(&test, &["--status", "paused,unreadable"]), ["broken", "c"]);
    assert_eq!(ids(&test, &["--status", "failed"]), Vec::<String>::new());
    test.raymond(&["list", "--status", "failed"]).ok().stderr_has("none of the 4 runs");
    test.raymond(&["list", "--status", "done"]).code(64);
}

#[test]
fn list_shows_at_most_limit_runs() {
    let test = with_runs();
    assert_eq!(ids(&test, &["--limit", "2"]), ["a", "c"]);
    test.raymond(&["list", "--limit", "1"])
        .ok()
        .stderr_has("2 older runs were not looked at; for all give --limit 3");
}

#[test]
fn list_shows_fifty_runs_on_terminal() {
    let test = with_runs();
    for number in 0..60 {
        fs::create_dir(test.dir().join(format!("runs/broken-{number}"))).expect("made");
    }
    assert_eq!(ids(&test, &[]).len(), 63);
    let mut screen = test.on_screen(&["list"], (120, 150));
    screen.wait_for(&["13 older runs were not looked at; for all give --limit 63"]);
    assert_eq!(screen.wait_for_exit(), Some(0));
}
