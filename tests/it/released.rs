//! Runs of an earlier raymond are resumed: journals and snapshots of every released format.
//!
//! The lines of their journals stay unchanged, byte by byte; new lines have the newest format.

use std::fs;
use std::path::{Path, PathBuf};

use raymond::domain::run::SNAPSHOT_VERSION;
use serde_json::json;

use crate::support::Test;

/// Returns the folder of a run of a format.
fn fixture(format: u32, name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    fixtures.join(format!("format-{format}")).join(name)
}

/// Copies a folder and everything below it; `change` edits each text.
fn copy(from: &Path, to: &Path, change: &impl Fn(&Path, String) -> String) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target, change);
        } else {
            let stored = fs::read_to_string(&path).expect("a text");
            fs::write(&target, change(&path, stored)).expect("written");
        }
    }
}

/// Computes the checksums of a journal or a snapshot anew, because the paths in it have changed.
fn with_checksums(path: &Path, text: &str) -> String {
    let crc = |body: &str| format!("{:08x}", crc32fast::hash(body.as_bytes()));
    match path.file_name().and_then(|name| name.to_str()) {
        Some("journal.jsonl") => {
            let line = |line: &str| {
                let (body, _) = line.rsplit_once(",\"crc\":").expect("a checksum");
                format!("{body},\"crc\":\"{}\"}}\n", crc(body))
            };
            text.lines().map(line).collect()
        }
        Some("state.json") => {
            let (body, _) = text.rsplit_once(",\n  \"checksum\": ").expect("a checksum");
            format!("{body},\n  \"checksum\": \"{}\"\n}}", crc(body))
        }
        _ => text.to_owned(),
    }
}

/// Copies a run and its workflow into a test.
fn restored(format: u32, name: &str) -> Test {
    let test = Test::new();
    let runs = test.dir();
    let change = |path: &Path, stored: String| {
        let placed = stored.replace("@RUNS@", &runs.display().to_string());
        let placed = placed.replace("@ROOT@", &test.root().display().to_string());
        with_checksums(path, &placed)
    };
    copy(&fixture(format, name).join("flow"), &test.flow(), &change);
    copy(&fixture(format, name).join("run"), &runs.join("runs").join(name), &change);
    test
}

/// Returns the number of events of a kind in a run, in records of any format.
fn count(test: &Test, name: &str, kind: &str) -> usize {
    let events = test.raymond(&["log", name, "--json"]).ok().json_lines();
    events.iter().filter(|event| event["event"] == kind).count()
}

fn journal(test: &Test, name: &str) -> String {
    let journal = test.dir().join("runs").join(name).join("journal.jsonl");
    fs::read_to_string(journal).expect("a journal")
}

/// Checks that the lines of `before` are unchanged in a journal, and that the new lines have format 2.
fn assert_goes_on_in_format_2(test: &Test, name: &str, before: &str) {
    let after = journal(test, name);
    let added = after.strip_prefix(before).expect("the lines of format 1 are untouched");
    assert!(before.lines().all(|line| line.starts_with("{\"seq\":")), "{before}");
    assert!(!added.is_empty());
    assert!(added.lines().all(|line| line.starts_with("{\"format\":2,\"seq\":")), "{added}");
    test.raymond(&["status", name]).ok();
    test.raymond(&["show", name, "main", "--json"]).ok();
}

/// Returns the snapshot of a run.
fn snapshot(test: &Test, name: &str) -> serde_json::Value {
    let path = test.dir().join("runs").join(name).join("state.json");
    serde_json::from_slice(&fs::read(path).expect("a snapshot")).expect("JSON")
}

#[test]
fn run_of_format_1_is_resumed_only_after_confirmation() {
    let test = restored(1, "prompts");
    test.raymond(&["run", "prompts"]).code(77).stderr_has("it has no seal");
    test.raymond(&["status", "prompts"]).ok().stdout_has("CHECK.md");
}

#[test]
fn killed_run_of_format_1_with_forks_and_a_join_asks_nothing_twice() {
    let test = restored(1, "prompts");
    assert_eq!(count(&test, "prompts", "step_finished"), 5);
    let before = journal(&test, "prompts");
    let outcome = test.raymond(&["run", "prompts", "--trust"]);
    outcome.ok().stdout_has("all counted");
    assert_goes_on_in_format_2(&test, "prompts", &before);
    assert_eq!(
        count(&test, "prompts", "step_finished"),
        7,
        "the called state and the one it returns to"
    );
    assert_eq!(count(&test, "prompts", "joined"), 1);
    let costs = test.raymond(&["costs", "prompts", "--json"]).ok().json();
    assert_eq!(costs["total_cost_usd"], json!(0.06), "{costs}");
}

#[test]
fn snapshot_of_an_earlier_version_is_replaced_without_a_warning() {
    let runs = [("prompts", None), ("graph", Some("ask=right")), ("program", None)];
    for (format, (name, answer)) in [1, 2].into_iter().flat_map(|it| runs.map(|run| (it, run))) {
        let test = restored(format, name);
        let version = || snapshot(&test, name)["version"].clone();
        assert_eq!(version(), json!(1), "{name}");
        test.raymond(&["status", name]).ok().stderr_lacks("state.json");
        let mut arguments = vec!["run", name, "--trust"];
        arguments.extend(answer.iter().flat_map(|answer| ["--answer", *answer]));
        test.raymond(&arguments).ok().stderr_lacks("state.json");
        assert_eq!(version(), json!(SNAPSHOT_VERSION), "{name}");
    }
}

#[test]
fn snapshot_of_a_newer_format_is_refused() {
    let test = restored(1, "prompts");
    let path = test.dir().join("runs/prompts/state.json");
    let stored = fs::read_to_string(&path).expect("a snapshot");
    let version = SNAPSHOT_VERSION + 1;
    let newer = stored.replacen("\"version\": 1", &format!("\"version\": {version}"), 1);
    fs::write(&path, with_checksums(&path, &newer)).expect("written");
    let outcome = test.raymond(&["run", "prompts", "--trust"]);
    outcome.code(65).stderr_has(&format!(
        "state.json: version {version} is newer than {SNAPSHOT_VERSION}, the newest that this raymond reads"
    ));
    assert_eq!(fs::read_to_string(&path).expect("a snapshot"), with_checksums(&path, &newer));
}

#[test]
fn graph_of_format_1_still_waits_for_its_answer() {
    let test = restored(1, "graph");
    test.raymond(&["status", "graph"]).ok().stdout_has("Is 3 right?");
    let before = journal(&test, "graph");
    let outcome = test.raymond(&["run", "graph", "--trust", "--answer", "ask=right"]);
    outcome.ok().stdout_has("counted");
    assert_goes_on_in_format_2(&test, "graph", &before);
    assert!(!test.flow().join("seen.txt").exists(), "it was written before, and not again");
}

#[test]
fn killed_program_of_format_1_asks_the_second_role_once() {
    let test = restored(1, "program");
    let before = journal(&test, "program");
    let outcome = test.raymond(&["run", "program", "--trust"]);
    outcome.ok().stdout_has("read it");
    assert_goes_on_in_format_2(&test, "program", &before);
    assert_eq!(count(&test, "program", "role_responded"), 2);
    assert_eq!(count(&test, "program", "role_requested"), 2);
}

#[test]
fn runs_of_format_2_are_resumed_where_they_stopped() {
    for (name, answer, result) in [
        ("prompts", None, "all counted"),
        ("graph", Some("ask=right"), "counted"),
        ("program", None, "read it"),
    ] {
        let test = restored(2, name);
        let before = journal(&test, name);
        let answer = answer.map(|answer| ["--answer", answer]);
        let arguments = ["run", name, "--trust"];
        let arguments = [&arguments[..], answer.as_ref().map_or(&[], |answer| &answer[..])];
        test.raymond(&arguments.concat()).ok().stdout_has(result);
        let after = journal(&test, name);
        let added = after.strip_prefix(&before).expect("what stands there is untouched");
        assert!(added.lines().all(|line| line.starts_with("{\"format\":2,")), "{added}");
        test.raymond(&["run", name]).ok();
    }
}
