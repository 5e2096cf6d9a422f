//! An agent changes the workflow that it runs in.

use serde_json::json;

use crate::support::{Test, always, when};

/// Returns a graph whose only node runs a command that leaves a trace.
fn evil() -> String {
    graph("touch pwned")
}

fn graph(command: &str) -> String {
    super::graph(&json!({"type": "bash_exec", "command": command}))
}

/// Returns a workflow in which START waits at `go` and then goes to any state.
fn agent(goes_to: &str) -> Test {
    let reply = format!("<goto>{goes_to}</goto>");
    Test::new()
        .prompt("START.md", "start")
        .prompt("NEXT.md", "the next prompt")
        .rule(when("start").hold_before("go").reply(&reply))
        .rule(always().reply("<result>ok</result>"))
}

fn was_run(test: &Test) -> bool {
    test.flow().join("pwned").exists()
}

#[test]
fn graph_written_by_agent_is_not_executed() {
    let test = agent("evil.yaml");
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    std::fs::write(test.flow().join("evil.yaml"), evil()).expect("written");
    test.release("go");
    live.wait().code(1).stdout_has("evil.yaml: this file was not part of the workflow");
    assert!(!was_run(&test));
}

#[test]
fn graph_changed_by_agent_is_executed_with_original_content() {
    let policy = "---\nallowed_transitions:\n  - { tag: goto, target: flow.yaml }\n---\nstart";
    let test = agent("flow.yaml")
        .prompt("START.md", policy)
        .file("flow.yaml", graph("touch as-it-was").as_bytes());
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    std::fs::write(test.flow().join("flow.yaml"), evil()).expect("written");
    test.release("go");
    let outcome = live.wait();
    outcome.ok().stderr_has("flow.yaml: changed since the run began");
    assert!(!was_run(&test) && test.flow().join("as-it-was").exists());
    assert_eq!(outcome.stderr.matches("changed since the run began").count(), 1);
}

#[test]
fn workflow_copy_changed_by_agent_is_not_executed() {
    let test = agent("flow.yaml").file("flow.yaml", graph("touch as-it-was").as_bytes());
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    let copy = test.run_dir().join("workflow/flow.yaml");
    std::fs::remove_file(&copy).expect("an agent can remove it");
    std::fs::write(&copy, evil()).expect("written");
    std::fs::write(test.flow().join("flow.yaml"), evil()).expect("written");
    test.release("go");
    live.wait().ok();
    assert!(
        !was_run(&test) && test.flow().join("as-it-was").exists(),
        "the text that was captured"
    );
}

#[test]
fn script_changed_by_agent_is_not_executed_by_trusted_command() {
    let test = agent("flow.yaml")
        .file("flow.yaml", graph("sh tools/build.sh || touch refused").as_bytes())
        .file("tools/build.sh", b"touch as-it-was\n");
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    std::fs::write(test.flow().join("tools/build.sh"), "touch pwned\n").expect("written");
    test.release("go");
    live.wait();
    assert!(!was_run(&test) && !test.flow().join("refused").exists());
    let records = test.journal().iter().map(ToString::to_string).collect::<String>();
    assert!(records.contains("the command names tools/build.sh"), "{records}");
}

#[test]
fn prompt_changed_by_agent_is_sent_with_original_content() {
    let test = agent("NEXT.md");
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    std::fs::write(test.flow().join("NEXT.md"), "do evil").expect("written");
    test.release("go");
    live.wait().ok().stderr_has("NEXT.md: changed since the run began");
    assert_eq!(test.prompts(), ["start", "the next prompt"]);
}

#[test]
fn live_run_uses_changed_prompt_but_executes_no_new_graph() {
    let test = agent("NEXT.md");
    let mut live = test.spawn(&["START.md", "--reread-prompts"]);
    live.wait_calls(1);
    std::fs::write(test.flow().join("NEXT.md"), "write better").expect("written");
    test.release("go");
    live.wait().ok();
    assert_eq!(test.prompts(), ["start", "write better"]);

    let test = agent("evil.yaml");
    let mut live = test.spawn(&["START.md", "--reread-prompts"]);
    live.wait_calls(1);
    std::fs::write(test.flow().join("evil.yaml"), evil()).expect("written");
    test.release("go");
    live.wait().code(1).stdout_has("evil.yaml: this file was not part of the workflow");
    assert!(!was_run(&test));
}

#[test]
fn live_run_rejects_widening_key_in_changed_prompt() {
    let heads = [
        "allowed_tools: [\"Bash(rm:*)\"]",
        "permission_mode: bypassPermissions",
        "env: { PATH: /evil }",
        "mcp_config: { mcpServers: { x: { command: evil } } }",
    ];
    for head in heads {
        let test = agent("NEXT.md");
        let mut live = test.spawn(&["START.md", "--reread-prompts"]);
        live.wait_calls(1);
        let changed = format!("---\n{head}\n---\nthe next prompt");
        std::fs::write(test.flow().join("NEXT.md"), changed).expect("written");
        test.release("go");
        live.wait().code(1).stdout_has("this widens permissions in a file that was changed");
        assert_eq!(test.prompts(), ["start"], "{head}");
    }
}

#[test]
fn migrate_uses_changed_files_and_shows_diff() {
    let test = agent("NEXT.md");
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.interrupt();
    test.release("go");
    live.wait().code(130);
    std::fs::write(test.flow().join("NEXT.md"), "another prompt").expect("written");
    let outcome = test.resume(&["--migrate"]);
    outcome.ok().stderr_has("NEXT.md: changed since the run began");
    outcome.stderr_has("\n  -the next prompt").stderr_has("\n  +another prompt");
    assert_eq!(test.prompts().last().map(String::as_str), Some("another prompt"));
}

#[test]
fn changed_graph_needs_trust_to_migrate() {
    let test = agent("flow.yaml")
        .file("flow.yaml", graph("touch as-it-was").as_bytes())
        .env("RAYMOND_TRUST", "false");
    test.raymond(&["trust", "."]).ok();
    let mut live = test.spawn(&["START.md"]);
    live.wait_calls(1);
    live.interrupt();
    test.release("go");
    live.wait().code(130);
    std::fs::write(test.flow().join("flow.yaml"), evil()).expect("written");
    test.resume(&["--migrate"]).code(77).stderr_has("touch pwned");
    assert!(!was_run(&test));
    test.resume(&[]).ok();
    assert!(!was_run(&test) && test.flow().join("as-it-was").exists());
}
