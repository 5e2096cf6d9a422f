//! A graph that crashes ends with the same result as one that does not: tested at each thing it needs.

use serde_json::{Value, json};

use super::stage::{Stage, answered, converging, done, failed, node};

/// Returns a graph with everything that a crash can interrupt.
fn everything() -> Stage {
    let file =
        |path: &str, content: &str| json!({"type": "write_file", "path": path, "content": content});
    let start = json!([
        {"type": "set_timestamp", "store_as": "began"},
        {"type": "create_checkpoint", "name": "first"},
        {"type": "foreach", "items": "${rows}", "as": "row", "actions": [
            file("${row.name}.md", "# ${row.name}"),
            {"type": "foreach", "items": "${row.cells}", "actions": [
                {"type": "read_file", "path": "${row.name}.md", "store_as": "text"},
                {"type": "append_state", "field": "seen", "value": "${computed.text}: ${item}"},
                file("${row.name}-${item}.md", "${computed.text}"),
            ]},
        ]},
        {"type": "web_fetch", "url": "http://x/", "store_as": "page", "prompt": "What is it?"},
        {"type": "spawn_agent", "subagent_type": "scout", "prompt": "Look", "store_as": "found"},
        {"type": "spawn_agent", "subagent_type": "scout", "prompt": "Look on", "store_as": "other", "run_in_background": true},
        {"type": "compute_hash", "from": "computed.page", "store_as": "hash"},
        {"type": "display_message", "message": "found ${computed.found}"},
    ]);
    let ask = json!({
        "type": "user_prompt",
        "prompt": {"question": "Which of ${computed.n}?", "header": "h", "options": [
            {"id": "a", "label": "A", "description": "a"},
            {"id": "b", "label": "B", "description": "b"},
        ]},
        "on_response": {
            "a": {
                "consequence": [
                    file("answer", "${user_responses.ask.raw}"),
                    {"type": "invoke_pattern", "path": "doc.md", "store_as": "pattern"},
                    {"type": "set_flag", "flag": "asked", "value": true},
                ],
                "next_node": "try",
            },
            "b": {"next_node": "ask"},
        },
    });
    let exists = |path: &str| json!({"type": "file_exists", "path": path});
    let gate = json!({
        "type": "validation_gate",
        "validations": [exists("answer"), exists("nowhere"), exists("a.md"), {"type": "git_fetch_state", "id": "x"}],
        "on_valid": "failed", "on_invalid": "back",
    });
    let gate = {
        let mut gate = gate;
        gate["validations"][3] = json!({"type": "source_cloned", "id": "x"});
        gate
    };
    Stage::new(json!({
        "start": node(start, "refer"),
        "refer": {"type": "reference", "doc": "doc.md", "context": {"rows": "${rows}"}, "next_node": "ask"},
        "ask": ask,
        "try": {
            "type": "action", "on_success": "failed", "on_failure": "gate",
            "actions": [file("last", "x"), {"type": "git_pull", "repo_path": "x"}],
        },
        "gate": gate,
        "back": node(json!([
            {"type": "set_state", "field": "kept", "value": "${seen}"},
            {"type": "get_sha", "repo_path": "x", "store_as": "sha"},
            {"type": "rollback_checkpoint", "name": "first"},
            {"type": "append_state", "field": "seen", "value": "rolled back"},
        ]), "branch"),
        "branch": {
            "type": "conditional", "branches": {"true": "done", "false": "failed"},
            "condition": {"type": "all_of", "conditions": [exists("answer"), exists("b-2.md")]},
        },
    }))
    .beginning(json!({
        "rows": [{"name": "a", "cells": [1]}, {"name": "b", "cells": [1, 2]}, {"name": "c", "cells": []}],
        "seen": [], "kept": null, "hash": null,
    }))
    .with("entry_preconditions", json!([{"type": "none_of", "conditions": [exists("answer")]}]))
    .file("doc.md", "Do it.")
}

fn wait_result() -> Vec<raymond_model::graph_execution::WaitResult> {
    vec![
        done(json!("in short")),
        done(json!("{\"where\": \"there\"}")),
        done(json!({"n": 3})),
        answered("b"),
        answered("1"),
        done(json!({"pattern": true})),
    ]
}

#[test]
fn resume_after_kill_at_any_call_gives_same_result() {
    let stage = || everything().hearing(wait_result()).world(converging());
    let (whole, log) = stage().play_and_die(usize::MAX);
    assert_eq!(whole.payload()["message"], "done");
    assert_eq!(whole.at("seen"), json!(["rolled back"]));
    assert_eq!(whole.at("user_responses"), json!({}), "the answers are rolled back too");
    assert!(log.calls > 30, "{}", log.calls);
    for at in 1..=log.calls {
        let (played, again) = stage().play_and_die(at);
        assert_eq!(played, whole, "it died before call {at}");
        assert_eq!(again.wanted, log.wanted, "it died before call {at}");
        assert_eq!(again.records.len(), log.records.len(), "it died before call {at}");
    }
}

#[test]
fn resume_after_kill_repeats_same_failure() {
    let stage = || {
        let mut wait_result = wait_result();
        wait_result[1] = failed("lost");
        let first = json!({"type": "write_file", "path": "x", "content": ""});
        let spawn = json!({"type": "spawn_agent", "subagent_type": "s", "prompt": "Look", "store_as": "found"});
        let nodes = json!({"start": node(json!([first, spawn]), "done")});
        Stage::new(nodes).hearing([wait_result.swap_remove(1)]).world(converging())
    };
    let (whole, log) = stage().play_and_die(usize::MAX);
    assert_eq!(whole.failure(), "spawn_agent: unusable");
    for at in 1..=log.calls {
        assert_eq!(stage().play_and_die(at).0, whole, "it died before call {at}");
    }
}

#[test]
fn write_operation_is_recorded_before_it_runs() {
    let log = everything().hearing(wait_result()).world(converging()).log();
    let writes = log
        .operations
        .iter()
        .filter(|operation| operation.class() != raymond_model::operation::RecoveryClass::Read);
    let due: Vec<Value> = log
        .records
        .iter()
        .filter_map(|record| {
            serde_json::to_value(&record.next_action).ok()?.get("operation").cloned()
        })
        .collect();
    let written: Vec<Value> = writes.map(|operation| operation.name().into()).collect();
    assert_eq!(due, written);
}
