//! Tests of the tool calls that need approval.

use serde_json::json;

use super::*;
use crate::claude::stream::StreamParser;
use raymond_model::approval::RuleScope;

fn ask(call: &str) -> String {
    let suggestions = json!([
        { "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "touch a *" }],
          "behavior": "allow", "destination": "localSettings" },
        { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
    ]);
    let request = json!({
        "subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": call,
        "input": { "command": "touch a", "n": 1.0 }, "blocked_path": "/w/a",
        "permission_suggestions": suggestions,
    });
    json!({ "type": "control_request", "request_id": format!("r-{call}"), "request": request })
        .to_string()
}

fn result(denied: &[&str]) -> String {
    let denials: Vec<Value> =
        denied.iter().map(|id| json!({ "tool_name": "Bash", "tool_use_id": id })).collect();
    json!({ "type": "result", "is_error": false, "result": "done", "permission_denials": denials })
        .to_string()
}

fn after(lines: &[String]) -> StreamParser {
    let mut stream = StreamParser::default();
    for line in lines {
        stream.feed(format!("{line}\n").as_bytes()).expect("a short line");
    }
    stream
}

#[test]
fn request_is_read_with_its_rule_and_its_reason() {
    let stream = after(&[ask("t1"), ask("t1"), "{\"type\":\"control_request\"}".into()]);
    let asked: Vec<&ApprovalRequest> = stream.progress.approvals.asked_since(0).collect();
    assert_eq!(asked.len(), 1, "the same call is asked once");
    assert_eq!((asked[0].tool.as_str(), asked[0].call.as_str()), ("Bash", "t1"));
    assert_eq!(asked[0].reason.as_deref(), Some("/w/a"));
    assert_eq!(asked[0].rules[0].to_string(), "Bash(touch a *)");
    assert_eq!(stream.progress.approvals.asked_since(1).count(), 0);
    assert_eq!(stream.progress.approvals.unanswered(), ["t1"]);
}

#[test]
fn answer_has_the_input_as_it_came_and_rules_for_the_process_only() {
    let stream = after(&[ask("t1")]);
    let line = |verdict| {
        let line = answer_line(&stream.progress.approvals, "t1", &verdict).expect("a line");
        assert!(line.ends_with("}\n") && line.contains("\"n\":1.0"), "{line}");
        serde_json::from_str::<Value>(&line).expect("JSON")["response"].clone()
    };
    let rules = stream.progress.approvals.asked_since(0).next().expect("asked").rules.clone();
    let always = line(ApprovalVerdict::AllowAlways { rules, scope: RuleScope::Run });
    assert_eq!(always["request_id"], "r-t1");
    assert_eq!(always["response"]["behavior"], "allow");
    let added = &always["response"]["updatedPermissions"];
    assert_eq!(added[0]["destination"], "session");
    assert_eq!(added[0]["rules"][0], json!({ "toolName": "Bash", "ruleContent": "touch a *" }));
    let once = line(ApprovalVerdict::Allow);
    assert_eq!(once["response"].get("updatedPermissions"), None);
    let denied = |reason: &str| {
        let verdict = ApprovalVerdict::Deny { reason: reason.into() };
        answer_line(&stream.progress.approvals, "t1", &verdict).expect("a line")
    };
    assert!(denied("no\nway").contains(r#""message":"no\nway""#));
    assert!(denied("").contains(DENIED));
    assert_eq!(answer_line(&stream.progress.approvals, "t2", &ApprovalVerdict::Allow), None);
}

#[test]
fn call_that_nobody_answered_is_left_at_the_end_of_the_turn() {
    let stream = after(&[ask("t1"), ask("t2"), ask("t3"), result(&["t1", "t3"])]);
    assert_eq!(stream.progress.approvals.unanswered(), ["t1", "t3"], "t2 was not refused");
    assert!(stream.progress.refused.refusals().is_empty(), "they are not refused for good");
    let echo = json!({ "type": "control_response",
        "response": { "subtype": "success", "request_id": "r-t1", "response": { "behavior": "deny" } } });
    let stream = after(&[ask("t1"), echo.to_string(), result(&["t1"])]);
    assert!(stream.progress.approvals.unanswered().is_empty());
    assert_eq!(stream.progress.refused.refusals().count(), 1, "a person has refused it");
}

#[test]
fn call_that_ran_or_was_given_up_needs_no_answer() {
    let cancel = |call: &str| {
        json!({ "type": "control_cancel_request", "request_id": format!("r-{call}") }).to_string()
    };
    let stream = after(&[ask("t1"), cancel("t1")]);
    assert!(stream.progress.approvals.unanswered().is_empty());
    let mut stream = after(&[ask("t1")]);
    stream.progress.cut_off();
    stream.feed(format!("{}\n", cancel("t1")).as_bytes()).expect("a short line");
    assert_eq!(
        stream.progress.approvals.unanswered(),
        ["t1"],
        "it was raymond that ended the turn"
    );
    let called = json!({ "type": "assistant", "message": { "content": [
        { "type": "tool_use", "id": "t1", "name": "Bash", "input": {} }] } });
    let ran = json!({ "type": "user", "message": { "content": [
        { "type": "tool_result", "tool_use_id": "t1", "content": "done" }] } });
    let stream = after(&[called.to_string(), ask("t1"), ran.to_string()]);
    assert!(stream.progress.approvals.unanswered().is_empty());
}
