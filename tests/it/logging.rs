//! `--log-format`, `--log-file`, `--log-level`: raymond's own log, for programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::{Test, always, pair};

/// Returns a workflow whose prompt has a placeholder without a value, which raymond warns of.
fn warned() -> Test {
    Test::new().prompt("START.md", "start {{nothing}}").rule(always().reply("<result>ok</result>"))
}

#[track_caller]
fn records(text: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line);
    let lines: Result<Vec<Value>, _> = text.lines().map(parse).collect();
    let Ok(lines) = lines else { panic!("only JSON lines, but\n{text}") };
    for line in &lines {
        for field in ["timestamp", "level", "message", "target"] {
            assert!(line[field].is_string(), "{field} in {line}");
        }
    }
    lines
}

fn message(record: &Value) -> &str {
    record["message"].as_str().unwrap_or_default()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("there is a log")
}

#[test]
fn json_format_writes_only_json_lines_to_stderr() {
    let test = warned();
    let outcome = test.run(&["START.md", "--log-format", "json"]);
    outcome.ok().ended("main", "ok");
    let records = records(&outcome.stderr);
    let warning =
        records.iter().find(|record| record["agent"] == "main").expect("the warning of the agent");
    assert_eq!(warning["level"], "warn");
    assert!(message(warning).contains("{{nothing}} has no value"), "{warning}");
    let time = warning["timestamp"].as_str().unwrap_or_default();
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");

    let people: Vec<&Value> =
        records.iter().filter(|record| record["target"] == "raymond::people").collect();
    assert!(people.iter().all(|record| record["level"] == "info"), "{people:?}");
    assert!(message(people[0]).starts_with("run t starts at START.md"), "{people:?}");
    let last = people.last().expect("there is a last");
    assert!(message(last).starts_with("run t finished"), "{last}");
}

#[test]
fn start_warning_is_logged_as_json() {
    let test = pair();
    let outcome = test.raymond(&["start", "START.md", "--id", "t", "--log-format", "json"]);
    outcome.ok();
    let records = records(&outcome.stderr);
    assert_eq!((records.len(), &records[0]["level"]), (1, &"warn".into()));
    assert!(message(&records[0]).contains("{{input}} is empty"), "{records:?}");
}

#[test]
fn error_is_logged_as_json() {
    let test = pair();
    let outcome = test.run(&["MISSING.md", "--log-format", "json"]);
    outcome.code(64);
    let records = records(&outcome.stderr);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["level"], "error");
    assert!(message(&records[0]).contains("MISSING.md"), "{records:?}");
}

#[test]
fn log_file_receives_warnings_instead_of_stderr() {
    let test = warned();
    let file = test.root().join("my.log");
    let path = file.to_str().unwrap_or_default();
    test.run(&["START.md", "--log-file", path])
        .ok()
        .stderr_has("run t starts at START.md")
        .stderr_has("run t finished")
        .stderr_lacks("has no value");
    let log = read(&file);
    let line = log.lines().find(|line| line.contains("has no value")).expect("the warning");
    let (time, rest) = line.split_once(' ').expect("words");
    assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line}");
    assert!(rest.starts_with("warning: ") && rest.ends_with("(agent main)"), "{line}");
    let mode = fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    test.run(&["GONE.md", "--id", "u", "--log-file", path, "--log-format", "json"]).code(64);
    let both = read(&file);
    let added = both.strip_prefix(&log).expect("it is appended to");
    assert!(records(added)[0]["level"] == "error", "{added}");
}

#[test]
fn log_level_option_overrides_environment() {
    let stderr = |variable: &str, arguments: &[&str]| {
        let test = warned().env("RAYMOND_LOG", variable);
        test.run(&[&["START.md"], arguments].concat()).ok().stderr.clone()
    };
    assert!(stderr("", &[]).contains("has no value"));
    assert!(!stderr("error", &[]).contains("has no value"));
    assert!(stderr("error", &["--log-level", "warn"]).contains("has no value"));
    assert!(!stderr("", &["--log-level", "error"]).contains("has no value"));
    let json = stderr("", &["--log-level", "error", "--log-format", "json"]);
    assert!(json.contains("run t finished") && !json.contains("has no value"), "{json}");

    let test = warned().env("RAYMOND_LOG", "raymond=loud");
    test.run(&["START.md"]).code(64).stderr_has("RAYMOND_LOG=raymond=loud: ");
}

#[test]
fn unwritable_log_file_is_error_before_run_starts() {
    let test = pair();
    let file = test.root().join("no/such/folder/log");
    let path = file.to_str().unwrap_or_default();
    for verb in ["run", "start"] {
        test.raymond(&[verb, "START.md", "--log-file", path])
            .code(74)
            .stderr_has(&format!("{path}: cannot keep the log of --log-file there: No such file"));
    }
    test.raymond(&["recover", "--all", "--log-file", path]).code(74).stderr_has(path);
    assert!(!test.dir().join("runs").exists());
}

#[test]
fn background_run_writes_to_its_log_file() {
    let test = warned();
    let file = test.root().join("my.log");
    let path = file.to_str().unwrap_or_default();
    let options = ["--id", "t", "--log-file", path, "--log-format", "json"];
    test.raymond(&[&["start", "START.md"], &options[..]].concat()).ok();
    test.raymond(&["log", "t", "--follow"]).ok();
    crate::support::wait_until("the warning is logged", || {
        fs::read_to_string(&file).is_ok_and(|log| log.contains("has no value"))
    });
    records(&read(&file));
}
