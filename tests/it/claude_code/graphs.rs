//! Graphs that use Claude Code: documents, agents, and a kill in the middle.

use std::fs;

use serde_json::{Value, json};

use crate::api::on;

use super::machine::TestMachine;

const OK: &str = r#"Done. <result>{"status":"ok","outputs":{"commit":"c0ffee"}}</result>"#;

/// Returns a machine with this graph, and a document of two sections.
fn machine(nodes: &Value) -> TestMachine {
    let machine = TestMachine::new();
    let graph = json!({
        "name": "flow", "start_node": "start", "nodes": nodes,
        "initial_state": {"url": "https://example.org/x"},
        "endings": {
            "done": {"type": "success", "message": "done ${computed.got}"},
            "failed": {"type": "error", "message": "failed: ${computed.last_error}"},
        },
    });
    machine.prompt("workflow.yaml", &graph.to_string());
    let document = "# Guide\n\n## Clone\n\nALPHA: clone it.\n\n## Look\n\nBRAVO: look.\n";
    fs::write(machine.path("work/guide.md"), document).expect("the workspace is writable");
    machine
}

fn reference() -> Value {
    json!({
        "start": {
            "type": "reference", "doc": "guide.md", "section": "Clone",
            "context": {"url": "${url}"}, "next_node": "then",
        },
        "then": {
            "type": "action", "on_success": "done", "on_failure": "failed",
            "actions": [{"type": "compute", "expression": "computed.commit", "store_as": "computed.got"}],
        },
    })
}

fn done(got: &str) -> String {
    let payload = json!({"ending": "done", "type": "success", "message": format!("done {got}")});
    format!("Agent main terminated with result: {payload}\n")
}

#[test]
fn reference_node_sends_section_with_context_and_stores_outputs() {
    let machine = machine(&reference());
    machine.api.script([on("ALPHA").reply(OK)]);
    let ended = machine.start_at("workflow.yaml", &[]).wait().exits(0);
    assert!(ended.stdout.ends_with(&done("c0ffee")), "{ended:?}");
    let asked = machine.api.request("ALPHA");
    assert!(asked.sees("https://example.org/x") && !asked.sees("BRAVO"), "{asked:#?}");
}

#[test]
fn reply_without_result_is_reminded_in_same_session() {
    let machine = machine(&reference());
    machine.api.script([on("ALPHA").reply("It is cloned."), on("cannot be used").reply(OK)]);
    let ended = machine.start_at("workflow.yaml", &[]).wait().exits(0);
    assert!(ended.stdout.ends_with(&done("c0ffee")), "{ended:?}");
    assert_eq!(machine.records("turn_rejected").len(), 1);
    let requests = machine.api.requests();
    assert!(requests.len() == 2 && requests[1].sees("ALPHA"), "{requests:#?}");
}

#[test]
fn pattern_reporting_error_fails_its_node() {
    let machine = machine(&json!({
        "start": {
            "type": "action", "on_success": "done", "on_failure": "failed",
            "actions": [{"type": "invoke_pattern", "path": "guide.md", "section": "Look", "store_as": "got"}],
        },
    }));
    machine
        .api
        .script([on("BRAVO").reply(r#"<result>{"status":"error","error":"it is dark"}</result>"#)]);
    let ended = machine.start_at("workflow.yaml", &[]).wait().exits(1);
    assert!(ended.stdout.contains("failed: invoke_pattern: it is dark"), "{ended:?}");
}

#[test]
fn spawned_agents_run_in_separate_sessions_and_return_results() {
    let agent = |prompt: &str, background: bool| {
        let kind = if background { "scout" } else { "general-purpose" };
        json!({
            "type": "spawn_agent", "subagent_type": kind, "prompt": prompt, "store_as": "got",
            "run_in_background": background,
        })
    };
    let machine = machine(&json!({
        "start": {
            "type": "action", "on_success": "done", "on_failure": "failed",
            "actions": [agent("CHARLIE: count.", true), agent("DELTA: name it.", false)],
        },
    }));
    machine.api.script([
        on("CHARLIE").reply("<result>12</result>"),
        on("DELTA").reply("<result>POSITIVE</result>"),
    ]);
    let ended = machine.start_at("workflow.yaml", &[]).wait().exits(0);
    assert!(ended.stdout.contains(&done("POSITIVE")), "{ended:?}");
    assert!(ended.stdout.contains("Agent main.1 terminated with result: 12"), "{ended:?}");
    assert!(machine.api.request("CHARLIE").sees("You act as the `scout` agent."));
    assert!(!machine.api.request("DELTA").sees("CHARLIE"), "each has a session of its own");
}

#[test]
fn reference_turn_is_adopted_or_retried_after_kill() {
    for claude_dies in [false, true] {
        let machine = machine(&reference());
        machine.api.script([on("ALPHA").reply(OK).hold()]);
        let run = machine.start_at("workflow.yaml", &[]);
        machine.api.wait_for("ALPHA", 1);
        run.kill();
        if claude_dies {
            machine.kill_claude();
        }
        machine.api.release("ALPHA");
        let ended = machine.resume(&["--backoff", "1ms..5ms"]).wait().exits(0);
        assert!(ended.stdout.ends_with(&done("c0ffee")), "{ended:?}");
        let times = if claude_dies { 2 } else { 1 };
        assert_eq!(machine.api.turns("ALPHA"), times, "no turn is paid for twice");
        assert_eq!(machine.records("turn_failed").len(), times - 1);
    }
}
