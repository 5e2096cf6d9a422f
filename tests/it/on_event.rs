//! `--on-event`: a user's command is told when the run needs a person or ends, and cannot harm the run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Test, always, held, pair, when};

/// Writes a script beside the workflow.
fn script(test: &Test, lines: &str) -> PathBuf {
    let path = test.root().join("hook.sh");
    fs::write(&path, format!("#!/bin/sh\n{lines}\n")).expect("the script is written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is a program");
    path
}

/// Writes a script that keeps its input and its environment.
fn keeper(test: &Test) -> String {
    let place = test.root().display();
    let lines = format!("cat >> {place}/told\nenv | grep = > \"{place}/env.$RAYMOND_EVENT\"");
    script(test, &lines).display().to_string()
}

/// Returns the input that the script was given.
fn told(test: &Test) -> Vec<Value> {
    let said = fs::read_to_string(test.root().join("told")).unwrap_or_default();
    said.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn events(test: &Test) -> Vec<String> {
    told(test).iter().map(|told| told["event"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn ended_event_has_status_cost_and_environment_without_secrets() {
    let test = pair()
        .env("ANTHROPIC_API_KEY", "secret")
        .env("CLAUDE_CODE_OAUTH_TOKEN", "secret")
        .env("RAYMOND_TURN", "other-1-0")
        .env("GITHUB_TOKEN", "secret")
        .env("MINE", "kept")
        .file("raymond.yaml", b"env: [MINE]\n");
    test.run(&["START.md", "--on-event", &keeper(&test)]).ok();
    let all = told(&test);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["event"], "ended");
    assert_eq!(all[0]["run"], "t");
    assert_eq!(all[0]["status"], "completed");
    assert_eq!(all[0]["total_cost_usd"], test.status()["total_cost_usd"]);
    let message = all[0]["message"].as_str().expect("a sentence");
    assert!(message.starts_with("run t finished, $"), "{message}");

    let environment = fs::read_to_string(test.root().join("env.ended")).expect("it was told");
    let has = |line: &str| environment.lines().any(|one| one == line);
    assert!(
        has("RAYMOND_EVENT=ended") && has("RAYMOND_RUN=t") && has("MINE=kept"),
        "{environment}"
    );
    assert!(has(&format!("RAYMOND_DIR={}", test.dir().display())), "{environment}");
    assert!(has(&format!("RAYMOND_MESSAGE={message}")), "{environment}");
    assert!(!environment.contains("secret") && !environment.contains("RAYMOND_TURN"));
    test.assert_no_survivors();
}

#[test]
fn ended_event_counts_failures_that_join_kept() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("WORK.md", "work")
        .prompt("JOIN.md", "---\njoin: all\non_failure: keep\n---\nmerge")
        .rule(when("start").reply("<fork next=\"JOIN.md\">WORK.md</fork>"))
        .rule(when("work").reply("no tag"))
        .rule(when("merge").reply("<result>m</result>"));
    test.run(&["START.md", "--on-event", &keeper(&test)]).ok();
    let all = told(&test);
    let ended = all.last().expect("it was told");
    assert_eq!((&ended["event"], &ended["status"]), (&"ended".into(), &"completed".into()));
    assert_eq!(ended["failed_agents"], 1);
    assert_eq!(ended["failures"][0]["state"], "WORK.md");
    let message = ended["message"].as_str().expect("a sentence");
    let expected = "finished: 1 of 2 agents failed, kept by the join (WORK.md: protocol), $";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn paused_event_has_its_record_and_resume_does_not_keep_the_command() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply("<goto>NEXT.md</goto>").cost(0.06))
        .rule(when("next").reply("<result>ok</result>").cost(0.01));
    test.run(&["START.md", "--budget", "0.05", "--on-event", &keeper(&test)]).code(75);
    let all = told(&test);
    assert_eq!(events(&test), ["paused"]);
    assert_eq!(all[0]["status"], "paused");
    assert_eq!(all[0]["record"]["event"], "run_paused");
    assert_eq!(all[0]["record"]["pause"]["reason"], "budget");
    let kept = &test.events("run_paused")[0];
    assert_eq!((&all[0]["record"]["seq"], &all[0]["record"]["at"]), (&kept["seq"], &kept["at"]));
    assert_eq!(all[0]["record"]["proof"], Value::Null, "that is the journal's alone");
    assert_eq!(
        all[0]["message"],
        "run t paused: the budget of $0.05 is used up: $0.06 spent; resume with more: raymond resume t --budget USD"
    );

    test.resume(&["--budget", "1"]).ok();
    assert_eq!(events(&test), ["paused"], "it is not kept with the run");
}

#[test]
fn parked_agent_and_failed_agent_each_cause_an_event() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "---\nsupervision: { max_restarts: 0, on_exhausted: wait }\n---\nworker")
        .rule(when("start").once().reply(r#"<fork next="START.md">W.md</fork>"#))
        .rule(when("start").reply("no tag at all"))
        .rule(when("worker").exit(1));
    test.run(&["START.md", "--on-event", &keeper(&test)]).code(2);
    let mut events = events(&test);
    assert_eq!(events.pop().as_deref(), Some("paused"));
    events.sort();
    assert_eq!(events, ["agent_failed", "agent_parked"]);
    let all = told(&test);
    let message = |event: &str| {
        let one = all.iter().find(|one| one["event"] == event).expect("told");
        one["message"].as_str().expect("a sentence").to_owned()
    };
    let parked = message("agent_parked");
    assert!(parked.starts_with("main.1 of run t waits for a person at W.md: "), "{parked}");
    let failed = message("agent_failed");
    assert!(failed.starts_with("main of run t failed at START.md (protocol): "), "{failed}");
    assert!(message("paused").ends_with("resume: raymond resume t"));
}

#[test]
fn failing_command_causes_a_warning() {
    let test = pair();
    let hook = script(&test, "echo no network >&2\nexit 3").display().to_string();
    let outcome = test.run(&["START.md", "--on-event", &hook]);
    outcome.ok().stderr_has(&format!(
        "warning: --on-event `{hook}` exited with code 3: no network (event ended)"
    ));
}

#[test]
fn output_of_the_command_is_discarded() {
    let test = pair();
    let hook = script(&test, "echo printed; echo said >&2").display().to_string();
    let outcome = test.run(&["START.md", "--json", "--on-event", &hook]);
    outcome.ok().stderr_lacks("said");
    assert!(!outcome.json_lines().is_empty());
}

#[test]
fn processes_left_by_the_command_are_ended() {
    let test = pair();
    let hook = script(&test, "sleep 600 &").display().to_string();
    test.run(&["START.md", "--on-event", &hook]).ok();
    test.assert_no_survivors();
}

#[test]
fn hanging_command_blocks_neither_run_nor_interrupt() {
    let test = Test::new()
        .prompt("START.md", "start")
        .prompt("W.md", "worker")
        .prompt("NEXT.md", "next")
        .rule(when("start").reply(r#"<fork next="NEXT.md">W.md</fork>"#))
        .rule(when("worker").reply("no tag at all"))
        .rule(when("next").hold_before("go").reply("<result>ok</result>"));
    let mark = test.root().join("begun");
    let lines = format!("touch {}; trap '' TERM; sleep 600", mark.display());
    let hook = script(&test, &lines).display().to_string();
    let mut live = test.spawn(&["START.md", "--on-event", &hook]);
    live.wait_file(&mark);
    test.release("go");
    live.wait_for("the end of main", |test| {
        test.events("step_finished").iter().any(|step| step["transition"]["tag"] == "result")
    });
    live.interrupt_until_it_ends().code_in(&[1, 130]);
    test.assert_no_survivors();
}

#[test]
fn background_run_runs_the_event_command() {
    let test = pair();
    let hook = keeper(&test);
    test.raymond(&["start", "START.md", "--id", "t", "--on-event", &hook]).ok();
    test.raymond(&["log", "t", "--follow"]).ok();
    crate::support::wait_until("it is told", || events(&test) == ["ended"]);
    test.assert_no_survivors();
}

#[test]
fn recovered_run_runs_the_event_command() {
    let test = held();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.kill9();
    test.release("go");
    let hook = keeper(&test);
    test.raymond(&["recover", "--on-event", &hook]).code(64).stderr_has("--all");
    test.raymond(&["recover", "--all", "--on-event", &hook]).ok();
    assert_eq!(events(&test), ["ended"]);
}

#[test]
fn invalid_command_is_refused_before_the_run_starts() {
    let test = Test::new().prompt("START.md", "start").rule(always().reply("<result>x</result>"));
    for command in ["sh 'x", ""] {
        test.run(&["START.md", "--on-event", command]).code(64).stderr_has("--on-event");
    }
    for verb in ["run", "start"] {
        test.raymond(&[verb, "START.md", "--on-event", "no-such-program x"])
            .code(64)
            .stderr_has("--on-event: no executable program `no-such-program` on the PATH");
    }
    assert!(test.calls().is_empty() && !test.dir().join("runs").exists());
}
