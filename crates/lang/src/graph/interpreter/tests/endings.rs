//! Endings and the entry gate: the messages for people, and the results.

use serde_json::{Value, json};

use super::stage::{NOW, Stage, node, packed};
use crate::graph::interpreter::{GraphInterpreter, GraphYield};
use raymond_model::graph_execution::WaitResult;
use raymond_model::operation::Operation;

fn ending_in(ending: Value) -> Stage {
    Stage::new(json!({"start": node(json!([]), "end")}))
        .beginning(json!({"source": "react", "computed": {"files": 3, "list": ["a"]}}))
        .with("endings", json!({"end": ending, "failed": {"type": "error", "message": "failed"}}))
}

#[test]
fn success_ending_shows_and_returns_its_summary() {
    let summary =
        json!({"id": "${source}", "files": "${computed.files}", "list": "${computed.list}"});
    let ending = json!({"type": "success", "message": "Added '${source}'", "summary": summary});
    let played = ending_in(ending).play();
    assert_eq!(played.shown, ["Added 'react'\n  id: react\n  files: 3\n  list: [\"a\"]"]);
    let expected = json!({
        "ending": "end", "type": "success", "message": "Added 'react'",
        "summary": {"id": "react", "files": 3, "list": ["a"]},
    });
    assert_eq!(played.payload(), expected);
}

#[test]
fn error_ending_shows_details_and_recovery() {
    for recovery in ["corpus-init", "/corpus-init"] {
        let ending = json!({
            "type": "error", "message": "No ${source}", "details": "Run it elsewhere",
            "recovery": recovery,
        });
        let played = ending_in(ending).play();
        let text = "No react\nRun it elsewhere\nTry running: /corpus-init";
        assert_eq!(played.shown, [text]);
        assert_eq!(played.error(), format!("in flow.yaml: {text}"));
    }
}

#[test]
fn error_ending_keeps_references_without_value() {
    let ending = json!({
        "type": "error", "message": "Scanning ${source} failed", "details": "${computed.files.gone}",
        "recovery": {"suggestion": "See ${computed.files} files in ${source.x}"},
    });
    let played = ending_in(ending).play();
    let text = "Scanning react failed\n${computed.files.gone}\nSee 3 files in ${source.x}";
    assert_eq!(played.error(), format!("in flow.yaml: {text}"));
}

#[test]
fn error_message_is_that_of_last_failure() {
    let failing = json!([{"type": "merge_state", "field": "source", "value": {"a": 1}}]);
    let stage = ending_in(json!({"type": "error", "message": "Failed: ${error.message}"}));
    let mut start = node(failing, "failed");
    start["on_failure"] = "next".into();
    let next =
        node(json!([{"type": "set_state", "field": "why", "value": "${error.message}"}]), "end");
    let played = stage.with("nodes", json!({"start": start, "next": next})).play();
    assert_eq!(played.at("why"), json!("merge_state: source is not a map"));
    assert_eq!(played.error(), "in flow.yaml: Failed: merge_state: source is not a map");
    let unfailed =
        ending_in(json!({"type": "error", "message": "Failed: ${error.message}"})).play();
    assert_eq!(unfailed.error(), "in flow.yaml: Failed: ${error.message}");
}

#[test]
fn ending_message_that_cannot_be_evaluated_fails_agent() {
    let ending = json!({"type": "success", "message": "it has ${computed.list.length > 'x'}"});
    let played = ending_in(ending).play();
    assert!(played.error().contains("flow.yaml: node end: WF403 "), "{}", played.error());
}

#[test]
fn entry_gate_fails_at_first_false_precondition() {
    let entry = json!([
        {"type": "config_exists"},
        {"type": "tool_available", "tool": "git", "error_message": "Git is not installed"},
        {"type": "file_exists", "path": "never asked"},
    ]);
    let stage = Stage::doing(json!([])).with("entry_preconditions", entry);
    let stage = stage.world(|operation| Ok((operation.name() == "config_exists").into()));
    let played = stage.play();
    assert_eq!(played.error(), "in flow.yaml: WF401 Entry gate failed: Git is not installed");
    assert_eq!(played.shown, ["Entry gate failed: Git is not installed"]);
    assert_eq!((played.visits.len(), stage.log().operations.len()), (0, 2));
}

#[test]
fn entry_gate_passes_when_all_preconditions_hold() {
    let entry = json!([{"type": "config_exists"}, {"type": "flag_not_set", "flag": "x"}]);
    let stage = Stage::doing(json!([])).with("entry_preconditions", entry);
    assert_eq!(stage.world(|_| Ok(true.into())).play().route(), ["start success"]);
}

#[test]
fn entry_gate_error_message_names_entry_gate() {
    let entry = json!([{"type": "source_has_updates", "id": "react"}]);
    let stage = Stage::doing(json!([])).with("entry_preconditions", entry);
    let played = stage.world(|_| Err("no network".into())).play();
    let expected = "in flow.yaml: entry gate: source_has_updates: no network";
    assert_eq!(played.error(), expected);
}

#[test]
fn entry_gate_progress_is_not_recorded() {
    let write = json!({"type": "write_file", "path": "a", "content": ""});
    let entry = json!([{"type": "config_exists"}]);
    let stage = Stage::doing(json!([write])).with("entry_preconditions", entry);
    let (program, around) = (stage.program(), stage.around());
    let mut machine = GraphInterpreter::begin(&program, around);
    assert_eq!(
        machine.next(None, NOW),
        GraphYield::Operation(packed(json!({"type": "config_exists"})))
    );
    assert!(!machine.is_worth_keeping() && !machine.is_recorded());
    let next = machine.next(Some(WaitResult::Done(json!(true))), NOW);
    assert!(matches!(next, GraphYield::Operation(Operation::WriteFile { .. })), "{next:?}");
    assert!(machine.is_worth_keeping());
}
