//! References, which Claude Code carries out for a graph: the document, the result, the cost.

use serde_json::{Value, json};

use super::{graph, node, payload, route, test, text};
use crate::support::{Test, when};

const DOC: &[u8] = b"# Guide\n\n## Clone\n\nClone CAREFULLY.\n\n## Other\n\nNever mind.\n";

fn reference(next: &str) -> Value {
    json!({
        "type": "reference", "doc": "docs/guide.md", "section": "Clone",
        "context": {"url": "${url}"}, "next_node": next, "on_failure": "failed",
    })
}

fn referring(replies: Value) -> Test {
    let mut referring = graph(json!({
        "start": reference("then"),
        "then": node(json!([{"type": "write_file", "path": "made", "content": "${computed.path}"}]), "done"),
    }));
    referring["initial_state"] = json!({"url": "https://x/", "computed": {"path": "none"}});
    let replies = json!({"workflow.yaml#start": replies});
    test(&referring).file("docs/guide.md", DOC).file("replies.yaml", replies.to_string().as_bytes())
}

fn run(place: &Test) -> crate::support::RaymondOutcome {
    place.run(&["workflow.yaml", "--agent", "scripted"])
}

const OK: &str = r#"<result>{"status":"ok","outputs":{"path":"p"}}</result>"#;

#[test]
fn reference_outputs_are_stored_and_turn_is_charged() {
    let place = referring(json!([{"reply": OK, "cost": 0.25}]));
    run(&place).ok();
    assert_eq!(text(&place, "made"), "p");
    assert_eq!(place.status()["total_cost_usd"], json!(0.25));
    let paid: Vec<Value> =
        place.events("graph_advanced").iter().map(|walk| walk["task"]["prompt"].clone()).collect();
    assert_eq!(paid.iter().filter(|prompt| **prompt == "workflow.yaml#start").count(), 1);
}

#[test]
fn reply_of_wrong_form_gets_reminder_with_expected_form() {
    let place = referring(json!(["no tag", "<result>done</result>", "<goto>A.md</goto>", OK]));
    run(&place).ok();
    let rejected = place.events("turn_rejected");
    assert_eq!(rejected.len(), 3);
    let reminder = rejected[1]["reminder"].as_str().unwrap_or_default();
    assert!(reminder.contains(r#"{"status":"ok","outputs":{…}}"#), "{reminder}");
    let place = referring(json!([{"reply": "no tag", "repeat": true}]));
    let outcome = run(&place);
    outcome.code(1).stdout_has("still so after 3 reminders");
}

#[test]
fn error_result_takes_on_failure_branch() {
    let said = r#"<result>{"status":"error","error":"no network","outputs":{}}</result>"#;
    let place = referring(json!([said]));
    let outcome = run(&place);
    outcome.code(1).stdout_has("It failed").stdout_has("no network");
    assert_eq!(route(&place, "main"), ["start failure"]);
}

#[test]
fn spent_budget_blocks_next_turn_but_not_other_nodes() {
    let mut two = graph(json!({
        "start": reference("between"),
        "between": node(json!([{"type": "append_to_file", "path": "log", "content": "x"}]), "more"),
        "more": reference("done"),
    }));
    two["initial_state"] = json!({"url": "u"});
    let replies = json!({
        "workflow.yaml#start": [{"reply": OK, "cost": 0.05}],
        "workflow.yaml#more": [{"reply": OK, "cost": 0.05}],
    });
    let place =
        test(&two).file("docs/guide.md", DOC).file("replies.yaml", replies.to_string().as_bytes());
    place.run(&["workflow.yaml", "--agent", "scripted", "--budget", "0.02"]).code(75);
    assert_eq!(route(&place, "main"), ["start success", "between success"]);
    place.resume(&["--budget", "1"]).ok();
    assert_eq!(text(&place, "log"), "x");
    assert_eq!(place.status()["total_cost_usd"], json!(0.1));
}

#[test]
fn reference_sends_section_and_context_in_fresh_session() {
    let mut two = graph(json!({
        "start": reference("again"),
        "again": node(json!([{
            "type": "invoke_pattern", "path": "docs/guide.md", "section": "Other", "store_as": "other",
        }]), "done"),
    }));
    two["initial_state"] = json!({"url": "https://x/y"});
    two["endings"]["done"]["summary"] = json!({"other": "${computed.other}"});
    let place = Test::new()
        .file("workflow.yaml", two.to_string().as_bytes())
        .file("docs/guide.md", DOC)
        .rule(when("CAREFULLY").reply(OK).cost(0.01))
        .rule(when("Never mind").reply(r#"<result>{"status":"ok","outputs":{"n":2}}</result>"#));
    let outcome = super::run(&place, &[]);
    assert_eq!(payload(outcome.ok(), "main")["summary"]["other"], json!({"n": 2}));
    let calls = place.calls();
    assert_eq!(calls.len(), 2);
    for call in &calls {
        call.assert_fresh();
    }
    assert!(calls[0].prompt.contains("\"url\": \"https://x/y\""), "{}", calls[0].prompt);
    assert!(!calls[0].prompt.contains("Never mind"), "{}", calls[0].prompt);
}
