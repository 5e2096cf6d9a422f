//! `--debug`: exactly step 5.5 of the seed, and never a failure of the run.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Test, always, when};

fn flow() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("WORKER.md", "work")
        .prompt("NEXT.md", "next")
        .prompt("EVAL.md", "evaluate")
        .prompt("DONE.md", "done with {{result}}")
        .rule(when("start").reply(r#"<fork next="NEXT.md">WORKER.md</fork>"#).cost(0.05))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(when("next").reply(r#"<function return="DONE.md">EVAL.md</function>"#).cost(0.03))
        .rule(when("evaluate").reply("<result>7</result>"))
        .rule(when("done").reply("<result>Task \"completed\"</result>").cost(0.02))
}

/// Returns the only debug directory.
#[track_caller]
fn debug_dir(test: &Test) -> PathBuf {
    let entries = fs::read_dir(test.dir().join("debug")).expect("a debug directory");
    let paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths[0].clone()
}

/// Returns the shape of a text: each digit is a `0`.
fn shape(of: &str) -> String {
    of.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
}

/// Returns the paragraphs of `transitions.log` about an agent.
fn paragraphs(log: &str, agent: &str) -> Vec<Vec<String>> {
    let mark = format!(" [{agent}] ");
    log.split("\n\n")
        .filter(|paragraph| paragraph.contains(&mark))
        .map(|paragraph| paragraph.trim_matches('\n').lines().map(str::to_owned).collect())
        .collect()
}

#[test]
fn debug_directory_is_named_after_run_and_time() {
    let test = flow();
    test.run(&["START.md", "--debug"]).ok();
    let dir = debug_dir(&test);
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    assert_eq!(shape(name), "t_00000000_000000", "{name}");
}

#[test]
fn stream_of_every_step_is_written_as_json_array() {
    let test = flow();
    test.run(&["START.md", "--debug"]).ok();
    let dir = debug_dir(&test);
    let mut names: Vec<String> = fs::read_dir(&dir)
        .expect("it is there")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "main.1_WORKER_001.json",
            "main_DONE_004.json",
            "main_EVAL_003.json",
            "main_NEXT_002.json",
            "main_START_001.json",
            "transitions.log",
        ]
    );
    let content = fs::read_to_string(dir.join("main_START_001.json")).expect("it is text");
    let Value::Array(stream) = serde_json::from_str(&content).expect("it is JSON") else {
        panic!("no array: {content}");
    };
    assert!(content.lines().count() > stream.len(), "it is indented");
    assert_eq!(stream[0]["subtype"], "init");
    let last = stream.last().expect("it has a last");
    assert_eq!(
        (last["type"].as_str(), last["total_cost_usd"].as_f64()),
        (Some("result"), Some(0.05))
    );
}

#[test]
fn transitions_are_logged_in_seed_format() {
    let test = flow();
    test.run(&["START.md", "--debug"]).ok();
    let log = fs::read_to_string(debug_dir(&test).join("transitions.log")).expect("a log");
    let session = |part: &str| test.calls_with(part).remove(0).session.expect("a session");

    let main = paragraphs(&log, "main");
    let heads: Vec<&str> = main.iter().map(|lines| &lines[0][20..]).collect();
    assert_eq!(
        heads,
        [
            "[main] START.md -> NEXT.md (fork)",
            "[main] NEXT.md -> EVAL.md (function)",
            "[main] EVAL.md -> DONE.md (result)",
            "[main] DONE.md -> (result, terminated)",
        ]
    );
    for lines in &main {
        assert_eq!(shape(&lines[0][..20]), "0000-00-00 00:00:00 ");
        assert!(lines[1..].iter().all(|line| line.starts_with("  ")), "{lines:#?}");
    }
    let has = |lines: &[String], wanted: &str| {
        assert!(lines.iter().any(|line| line == wanted), "{wanted:?} in {lines:#?}");
    };
    has(&main[0], &format!("  session_id: {}", session("start")));
    has(&main[0], "  cost: $0.05");
    has(&main[1], &format!("  session_id: {} (resumed)", session("start")));
    has(&main[1], "  cost: $0.03");
    has(&main[2], &format!("  session_id: {}", session("evaluate")));
    let back = format!("  session_id: {}", session("start"));
    assert!(main[3].iter().any(|line| line.starts_with(&back)), "{main:#?}");
    has(&main[3], "  total_cost: $0.10");
    has(&main[3], r#"  result: "Task \"completed\"""#);

    let worker = paragraphs(&log, "main.1");
    assert_eq!(&worker[0][0][20..], "[main.1] WORKER.md -> (result, terminated)");
    has(&worker[0], r#"  result: "worked""#);
}

#[test]
fn resumed_run_logs_every_transition() {
    let test = flow();
    test.run(&["START.md", "--debug", "--budget", "0.01"]).code(75);
    assert!(debug_dir(&test).join("main_START_001.json").exists());
    test.resume(&["--debug", "--budget", "5"]).ok();
    let logs: Vec<String> = fs::read_dir(test.dir().join("debug"))
        .expect("it is there")
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("transitions.log")).ok())
        .collect();
    let all = logs.join("\n\n");
    assert_eq!(paragraphs(&all, "main").len(), 4, "{all}");
}

#[test]
fn no_debug_directory_without_flag() {
    let test = flow();
    test.run(&["START.md"]).ok();
    assert!(!test.dir().join("debug").exists());
}

#[test]
fn debug_directory_that_cannot_be_created_is_warning() {
    let test = flow();
    fs::create_dir(test.dir()).expect("it is made");
    fs::write(test.dir().join("debug"), "in the way").expect("it is written");
    test.run(&["START.md", "--debug"]).ok().stderr_has("debug");
}

#[test]
fn debug_directory_removed_mid_run_is_warning() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").hold_before("go").reply("<goto>NEXT.md</goto>"))
        .rule(always().reply("<result>ok</result>"));
    let mut live = test.spawn(&["START.md", "--debug"]);
    live.wait_calls(1).wait_file(&test.dir().join("debug"));
    fs::remove_dir_all(test.dir().join("debug")).expect("it was there");
    fs::write(test.dir().join("debug"), "in the way").expect("it is written");
    test.release("go");
    live.wait().ok().stderr_has("debug");
}
