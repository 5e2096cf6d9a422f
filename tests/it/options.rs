//! The options of a run: those that reach Claude Code, those that reach the disk, and those that are refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::support::{Test, pair};

#[test]
fn invalid_run_id_is_refused() {
    for id in ["../evil", "a/b", "", "."] {
        pair().run(&["START.md", "--id", id]).code(64).stderr_has("--id");
    }
}

#[test]
fn wrong_usage_exits_64() {
    let test = pair();
    test.raymond(&["run"]).code(64);
    test.raymond(&["run", "START.md", "--no-such-flag"]).code(64).stderr_has("--no-such-flag");
    test.raymond(&["run", "START.md", "--budget", "lots"]).code(64).stderr_has("--budget");
    test.raymond(&["run", "START.md", "--backoff", "fast"]).code(64).stderr_has("--backoff");
    test.raymond(&["run", "START.md", "--var", "novalue"]).code(64).stderr_has("--var");
    test.raymond(&["run", "START.md", "--max-procs", "0"]).code(64).stderr_has("--max-procs");
    assert!(test.calls().is_empty());
}

#[test]
fn help_and_version_exit_0() {
    let test = pair();
    test.raymond(&["--help"]).ok().stdout_has("run");
    test.raymond(&["--version"]).ok().stdout_has("raymond");
}

#[test]
fn arguments_after_dashes_reach_claude_code_verbatim() {
    let test = pair();
    test.run(&["START.md", "--", "--append-system-prompt", "be brief; $HOME", "--effort", "low"])
        .ok();
    for call in test.calls() {
        assert_eq!(call.flag("--append-system-prompt"), Some("be brief; $HOME"));
        assert_eq!(call.flag("--effort"), Some("low"));
    }
}

#[test]
fn permission_options_reach_claude_code_and_default_to_accept_edits() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let call = &test.calls()[0];
    assert_eq!(call.flag("--permission-mode"), Some("acceptEdits"));
    assert_eq!(call.flag("--disallowedTools"), Some("AskUserQuestion,ScheduleWakeup,CronCreate"));
    assert!(!call.has("--dangerously-skip-permissions"));

    let test = pair();
    test.run(&["START.md", "--permission-mode", "plan"]).ok();
    assert_eq!(test.calls()[0].flag("--permission-mode"), Some("plan"));

    let test = pair();
    test.run(&["START.md", "--dangerously-skip-permissions"]).ok();
    assert!(test.calls()[0].has("--dangerously-skip-permissions"));
}

#[test]
fn turn_has_its_run_in_the_environment_and_runs_in_cwd() {
    let test = pair().file("elsewhere/x", b"");
    test.run(&["START.md", "--cwd", "elsewhere"]).ok();
    let call = &test.calls()[0];
    let env = |key: &str| call.env.get(key).map_or("", String::as_str);
    assert_eq!(
        (env("RAYMOND_RUN"), env("RAYMOND_AGENT"), env("RAYMOND_TURN")),
        ("t", "main", "main-1-0")
    );
    assert_eq!(Path::new(env("RAYMOND_DIR")), test.dir());
    let elsewhere = test.flow().join("elsewhere").canonicalize().expect("it is there");
    assert_eq!(Path::new(&call.cwd), elsewhere);
}

#[test]
fn closed_stdout_fails_no_command() {
    let test = pair();
    test.run_without_reader(&["run", "START.md", "--id", "t", "--json"]).ok().stderr_lacks("panic");
    assert_eq!(test.calls().len(), 3);
    for arguments in
        [&["log", "t"][..], &["log", "t", "--json"], &["status", "t"], &["list"], &["--help"]]
    {
        test.run_without_reader(arguments).ok().stderr_lacks("panic");
    }
}

#[test]
fn run_directory_is_private_to_its_owner() {
    let test = pair();
    test.run(&["START.md"]).ok();
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&test.run_dir()), 0o700);
    assert_eq!(mode(&test.journal_file()), 0o600);
    assert_eq!(mode(&test.run_dir().join("state.json")), 0o600);
    assert_eq!(mode(&test.run_dir().join("steps/main-1-0.jsonl")), 0o600);
}

#[test]
fn api_key_of_the_environment_is_written_to_no_file() {
    let test = pair().env("ANTHROPIC_API_KEY", "sk-very-secret");
    test.run(&["START.md", "--debug"]).ok();
    let mut folders = vec![test.dir()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("it is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).expect("it can be read");
                let leaked = String::from_utf8_lossy(&bytes).contains("sk-very-secret");
                assert!(!leaked, "the key is in {}", path.display());
            }
        }
    }
}

#[test]
fn scripted_agent_starts_no_process_and_notes_that_no_model_is_called() {
    let replies = "\
START.md:
  - reply: \"<fork next='NEXT.md' item='tea'>WORKER.md</fork>\"
    cost: 0.02
WORKER.md:
  - \"<result>had {{item}}</result>\"
NEXT.md:
  - \"<result>led</result>\"
";
    let test = pair().file("replies.yaml", replies.as_bytes());
    let outcome = test.run(&["START.md", "--agent", "scripted"]);
    outcome.ok().ended("main", "led").ended("main.1", "had tea").stderr_has("no model");
    assert!(test.calls().is_empty());
    assert_eq!(test.status()["total_cost_usd"], json!(0.02));
}

#[test]
fn scripted_agent_out_of_replies_fails() {
    let test = pair().file("replies.yaml", b"START.md:\n  - \"<goto>START.md</goto>\"\n");
    let outcome = test.run(&["START.md", "--agent", "scripted"]);
    outcome.code(1).says("replies.yaml").says("START.md").failed("main");
}

#[test]
fn unlikely_model_gets_a_warning_unless_a_gateway_may_know_it() {
    let test = pair();
    let misspelt = "warning: --model: `haku` is not a known model alias; did you mean `haiku`?";
    test.run(&["START.md", "--model", "haku"]).ok().stderr_has(misspelt);
    let unknown = "`gpt4` is not a known model alias; raymond passes it to Claude Code unchanged";
    test.run(&["START.md", "--model", "gpt4", "--id", "u"]).ok().stderr_has(unknown);
    let full = "us.anthropic.claude-haiku";
    for model in ["haiku", "opus[1m]", full] {
        test.run(&["START.md", "--model", model, "--id", &format!("known-{}", model.len())])
            .ok()
            .stderr_lacks("model alias");
    }
    let of_a_state = |test: Test| test.prompt("START.md", "---\nmodel: sonet\n---\nstart");
    let run = ["START.md", "--model", "gpt4"];
    of_a_state(pair()).run(&run).ok().stderr_has("START.md:2:8: RF403 `sonet`");
    let test = of_a_state(pair()).env("CLAUDE_CODE_USE_BEDROCK", "1");
    test.run(&run).ok().stderr_lacks("model alias");
    test.raymond(&["check", "START.md"]).ok().stdout_lacks("model alias");
}

/// Returns a folder `flow` with a workflow, a case of it and its replies.
fn small_flow() -> Test {
    Test::new()
        .prompt("flow/START.md", "Say {{input}}. End with <result>x</result>")
        .file("flow/replies.yaml", b"START.md: <result>x</result>\n")
        .file("flow/tests/main.yaml", b"expect: { result: x }\n")
}

#[test]
fn wrong_sort_of_file_is_reported_with_the_command_for_it() {
    let test = small_flow();
    test.run(&["flow/tests/main.yaml"])
        .code(64)
        .stderr_has("this is a file of test cases; run them: raymond test flow/tests/main.yaml");
    test.raymond(&["test", "flow/replies.yaml"])
        .code(64)
        .stderr_has("flow/replies.yaml: this is not a file of cases");
    test.run(&["flow", "--agent", "scripted", "--id", "flow-1"]).ok();
    test.raymond(&["run", "FLOW"]).code(64).stderr_has("did you mean flow?");
}

#[test]
fn misleading_text_has_warning() {
    let test = small_flow().file("notes.txt", b"sea");
    let scripted = ["flow", "--agent", "scripted", "--dry-run", "--input"];
    for file in ["notes.txt", "@notes.txt"] {
        let said = test.raymond(&[&["run"], &scripted[..], &[file]].concat());
        said.stderr_has("the name of a file; for its content: --input - < notes.txt");
    }
    let behind = ["sea", "--", "--budget", "0.01"];
    test.raymond(&[&["run"], &scripted[..], &behind].concat())
        .stderr_has("what follows -- has no effect: no model is called; if --budget is meant")
        .stderr_lacks("the name of a file");
}

#[test]
fn scripted_run_that_begins_with_a_script_needs_the_replies_at_the_start() {
    let test = Test::new()
        .file("START.sh", b"echo '<goto>NEXT.md</goto>'\n")
        .prompt("NEXT.md", "Go. <result>x</result>");
    test.run(&["START.sh", "--trust", "--agent", "scripted"])
        .code(65)
        .stderr_has("--agent scripted needs this file");
    assert!(!test.run_dir().exists());
    let alone = Test::new().file("START.sh", b"echo '<result>x</result>'\n");
    alone.run(&["START.sh", "--trust", "--agent", "scripted"]).ok();
}
