//! The commands, used by people and programs.

mod clean;
mod completions;
mod engines;
mod help;
mod list;
mod named_runs;
mod pending;
mod runs_dir;
mod stop;
mod wording;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Test, always, held, pair, wait_until, when};

#[test]
fn bare_path_starts_run() {
    let test = pair();
    test.raymond(&["START.md", "--model", "sonnet"]).ok().ended("main", "led");
    assert_eq!(test.calls()[0].flag("--model"), Some("sonnet"));
}

#[test]
fn folder_argument_runs_its_start_file() {
    let test =
        Test::new().prompt("inner/START.md", "start").rule(always().reply("<result>ok</result>"));
    test.run(&["inner"]).ok().ended("main", "ok");
}

#[test]
fn runs_without_id_get_unique_ids() {
    let test = pair();
    test.raymond(&["run", "START.md"]).ok();
    test.raymond(&["run", "START.md"]).ok();
    assert_eq!(fs::read_dir(test.dir().join("runs")).expect("runs").count(), 2);
}

#[test]
fn id_in_use_is_refused() {
    let test = pair();
    test.run(&["START.md"]).ok();
    test.run(&["START.md"]).code(64).stderr_has("raymond resume t");
    assert_eq!(test.calls().len(), 3);
}

#[test]
fn name_of_both_run_and_path_is_refused_as_ambiguous() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.interrupt();
    live.interrupt();
    live.wait().code(130);
    let test = test.file("t/START.md", b"another");
    test.raymond(&["run", "t"]).code(64).stderr_has("raymond resume t").stderr_has("./t");
    test.release("go");
    test.raymond(&["resume", "t"]).ok().ended("main", "ok");
}

#[test]
fn status_and_stop_report_processes_of_killed_run() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.kill9();
    for command in ["status", "stop"] {
        test.raymond(&[command, "t"])
            .ok()
            .says("1 of its processes still run")
            .says("raymond resume t");
    }
    test.release("go");
    test.resume(&[]).ok();
    test.assert_no_survivors();
}

#[test]
fn claude_arguments_set_by_raymond_are_refused() {
    let test = pair();
    for own in ["--output-format=json", "--resume", "-p"] {
        let outcome = test.run(&["START.md", "--", own, "x"]);
        outcome
            .code(64)
            .stderr_has(own.split('=').next().unwrap_or(own))
            .stderr_has("is set by raymond for each turn");
    }
    assert!(test.calls().is_empty());
}

#[test]
fn run_json_prints_each_record_as_a_line() {
    let test = pair();
    let outcome = test.run(&["START.md", "--json"]);
    let printed = outcome.ok().json_lines();
    let events = |records: &[Value]| {
        records
            .iter()
            .map(|record| (record["seq"].clone(), record["event"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(events(&printed), events(&test.journal()));
    assert_eq!(printed[0]["event"], "run_started");
}

#[test]
fn status_shows_state_and_stack_of_each_agent() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("CHILD.md", "child")
        .prompt("BACK.md", "back")
        .prompt("WORKER.md", "work")
        .rule(when("start").reply(r#"<fork next="BACK.md">WORKER.md</fork>"#).cost(0.25))
        .rule(when("work").reply("<result>worked</result>"))
        .rule(when("back").reply(r#"<call return="BACK.md">CHILD.md</call>"#))
        .rule(when("child").hold_before("go").reply("<reset>WORKER.md</reset>"));
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("the child", |test| test.calls_with("child").len() == 1);
    live.wait_event("step_finished", 3);

    let status = test.status();
    assert_eq!(status["run"], "t");
    assert_eq!(status["status"], "running");
    assert_eq!(status["total_cost_usd"], json!(0.25));
    let scope = Path::new(status["scope_dir"].as_str().unwrap_or_default());
    let scope = test.flow().join(scope).canonicalize().expect("the scope is there");
    assert_eq!(scope, test.flow().canonicalize().expect("it is there"));
    let session = |part: &str| test.calls_with(part).remove(0).session;
    let agents = status["agents"].as_array().expect("agents");
    assert_eq!(agents.len(), 1, "{status:#}");
    assert_eq!(agents[0]["id"], "main");
    assert_eq!(agents[0]["current_state"], "CHILD.md");
    assert_eq!(agents[0]["session_id"], json!(session("child")));
    assert_eq!(agents[0]["stack"], json!([{"session": session("start"), "state": "BACK.md"}]));
    assert_eq!(status["finished"][0]["id"], "main.1");
    assert_eq!(status["finished"][0]["result"], "worked");

    test.raymond(&["status", "t"])
        .ok()
        .stdout_has("main")
        .stdout_has("CHILD.md")
        .stdout_has("0.25");
    test.release("go");
    live.wait().ok();
    let status = test.status();
    assert_eq!(status["agents"], json!([]));
    assert_eq!(status["finished"].as_array().map(Vec::len), Some(2));
    assert_ne!(status["status"], "running");
}

#[test]
fn list_names_every_run() {
    let test = pair();
    test.raymond(&["list"]).ok();
    assert_eq!(test.raymond(&["list", "--json"]).ok().json_items().len(), 0);
    test.run(&["START.md", "--id", "one"]).ok();
    test.run(&["START.md", "--id", "two"]).ok();
    test.raymond(&["list"]).ok().stdout_has("one").stdout_has("two");
    assert_eq!(test.raymond(&["list", "--json"]).ok().json_items().len(), 2);
}

#[test]
fn log_prints_all_journal_records() {
    let test = pair();
    test.run(&["START.md"]).ok();
    test.raymond(&["log", "t"]).ok().stdout_has("main.1").stdout_has("NEXT.md").stdout_has("fork");
    let printed = test.raymond(&["log", "t", "--json"]).ok().json_lines();
    let kept = test.journal();
    assert_eq!(printed.len(), kept.len());
    for (printed, mut kept) in printed.iter().zip(kept) {
        let stored = kept.as_object_mut().expect("a record");
        assert_eq!(stored.remove("format"), Some(2.into()));
        stored.retain(|name, _| !["more", "proof", "crc"].contains(&name.as_str()));
        assert_eq!(*printed, kept, "the rest has the same names there and here");
    }
}

#[test]
fn log_follow_ends_with_run() {
    let test = held();
    let mut run = test.spawn(&["START.md"]);
    run.wait_calls(1);
    let mut log = test.start(&["log", "t", "--follow", "--json"]);
    log.wait_stdout("run_started");
    test.release("go");
    run.wait().ok();
    let printed = log.wait();
    assert_eq!(printed.ok().json_lines().len(), test.journal().len());
}

#[test]
fn start_runs_in_background() {
    let test = held();
    let outcome = test.raymond(&["start", "START.md", "--id", "t"]);
    assert_eq!(outcome.ok().stdout.trim(), "t", "just the id, for a script to read");
    wait_until("the first turn", || test.calls().len() == 1);
    assert_eq!(test.status()["status"], "running");
    test.release("go");
    wait_until("its end", || test.status()["status"] != "running");
    assert_eq!(test.status()["finished"][0]["result"], "ok");
    test.assert_no_survivors();
}

#[test]
fn start_works_in_nested_pid_namespace() {
    let test = held();
    test.release("go");
    let inside = r#""$0" start START.md --id t && "$0" log t --follow"#;
    // Raymond still has to start where no process namespace can be made.
    let script = format!(
        r#"if unshare -pf --mount-proc true; then unshare -pf --mount-proc /bin/sh -c '{inside}' "$0"; else {inside}; fi"#
    );
    test.run_in_namespaces(&script).ok().stdout_has("t\n").stdout_has("ok (result)");
    assert_eq!(test.status()["finished"][0]["result"], "ok");
}

#[test]
fn start_fails_at_once_for_missing_workflow_or_claude() {
    let test = held();
    test.raymond(&["start", "NOWHERE.md"]).code_in(&[64, 65]).stderr_has("NOWHERE.md");
    test.raymond(&["start", "START.md", "--claude", "/nowhere/claude"])
        .code(69)
        .stderr_has("/nowhere/claude");
}

#[test]
fn stopped_live_run_can_be_resumed() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    test.raymond(&["stop", "t"]).ok();
    live.wait_event("command_received", 1);
    test.release("go");
    live.wait().code(130);
    assert_eq!(test.prompts(), ["start"]);
    test.assert_no_survivors();
    test.raymond(&["resume", "t"]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"]);
}

#[test]
fn stop_is_accepted_for_run_of_killed_raymond() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.kill9();
    test.raymond(&["stop", "t"]).ok();
    test.release("go");
    test.resume(&[]).code_in(&[0, 130]);
    test.resume(&[]).ok().ended("main", "ok");
    assert_eq!(test.prompts(), ["start", "next"]);
}

#[test]
fn recover_lists_unfinished_runs_and_resumes_them_with_all() {
    let test = pair();
    test.run(&["START.md", "--id", "ended"]).ok();
    for id in ["a", "b"] {
        test.run(&["START.md", "--id", id, "--budget", "0.01"]).code(75);
    }
    test.raymond(&["recover"]).ok().stdout_has("a").stdout_has("b").stdout_lacks("completed");
    let listed = test.raymond(&["recover", "--json"]).ok().json_items();
    assert_eq!(listed.len(), 2, "{listed:#?}");

    let test = held();
    for id in ["a", "b"] {
        let mut live = test.spawn(&["START.md", "--id", id]);
        live.wait_for("its turn", |test| {
            test.calls().iter().any(|call| call.env["RAYMOND_RUN"] == id)
        });
        live.kill9();
    }
    test.release("go");
    test.raymond(&["recover", "--all"]).ok();
    assert_eq!(test.calls_with("next").len(), 2);
    assert_eq!(test.calls_with("start").len(), 2);
    let listed = test.raymond(&["recover", "--json"]).ok().json_items();
    assert_eq!(listed, Vec::<Value>::new());
}

#[test]
fn second_raymond_on_live_run_is_refused() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let refused = test.resume(&[]);
    refused.code(73).stderr_has(&live.pid().to_string());
    test.release("go");
    live.wait().ok();
    assert_eq!(test.prompts(), ["start", "next"]);
}

#[test]
fn folder_of_workflows_is_listed_with_descriptions() {
    let test = Test::new()
        .file("one/START.md", b"---\nmodel: haiku\n---\n\nWrite a poem about {{input}}.\nEnd it.")
        .file("two/START.md", b"x")
        .file("two/raymond.yaml", b"description: Does two things\n")
        .file("three/notes.md", b"no workflow");
    let listed = test.raymond(&[]).ok().stderr_has("raymond run NAME").stdout.clone();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines, ["one  Write a poem about {{input}}.", "two  Does two things"]);
}
