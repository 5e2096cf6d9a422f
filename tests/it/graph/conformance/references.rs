//! References: what Claude Code is given, how it has to answer, and where the outputs go.

use serde_json::{Value, json};

use super::super::{graph, payload, route, test};
use crate::support::{RaymondOutcome, Test, when};

/// The rows below, each asserted by name.
pub(super) const NAMES: [&str; 20] = [
    "the section is given up to the next heading of its level",
    "a heading below the section belongs to it",
    "a heading in a code fence is none",
    "the context is given as JSON",
    "the contract is given",
    "the turn has a fresh session",
    "outputs merge into computed",
    "outputs keep their types",
    "next_node follows ok",
    "on_failure follows error",
    "the error is in last_error",
    "without on_failure the agent fails",
    "a wrong form is reminded",
    "three reminders are the most",
    "a document without a section is given whole",
    "a document is looked for in the graph's folder",
    "a document is looked for in the plugin",
    "a document is looked for in the workspace",
    "a missing document is an error at load",
    "the cost is charged",
];

const DOC: &[u8] = b"# Guide\n\nINTRO\n\n## Part\n\nIN PART\n\n```\n## Fence\n```\n\n### Below\n\nIN BELOW\n\n## Next\n\nIN NEXT\n";
const OK: &str = r#"<result>{"status":"ok","outputs":{"path":"p","n":[1]}}</result>"#;
const ERROR: &str = r#"<result>{"status":"error","error":"no network","outputs":{}}</result>"#;

fn named(name: &str, holds: bool) {
    assert!(NAMES.contains(&name), "no row {name}");
    assert!(holds, "{name}");
}

fn referring(on_failure: bool) -> Value {
    let mut start = json!({
        "type": "reference", "doc": "docs/guide.md", "section": "part", "context": {"url": "${url}"},
        "next_node": "done",
    });
    if on_failure {
        start["on_failure"] = json!("failed");
    }
    let mut all = graph(json!({"start": start}));
    all["initial_state"] = json!({"url": "https://x/", "computed": {"path": "none", "n": null}});
    all["endings"]["done"]["summary"] = json!({"path": "${computed.path}", "n": "${computed.n}"});
    all
}

fn scripted(graph: &Value, replies: Value) -> (Test, RaymondOutcome) {
    let replies = json!({"workflow.yaml#start": replies}).to_string();
    let place = test(graph).file("docs/guide.md", DOC).file("replies.yaml", replies.as_bytes());
    let outcome = place.run(&["workflow.yaml", "--agent", "scripted"]);
    (place, outcome)
}

#[test]
fn prompt_has_section_context_and_contract() {
    let place = Test::new()
        .file("workflow.yaml", referring(true).to_string().as_bytes())
        .file("docs/guide.md", DOC)
        .rule(when("IN PART").reply(OK).cost(0.25));
    place.run(&["workflow.yaml"]).ok();
    let calls = place.calls();
    let prompt = &calls[0].prompt;
    let ends = !prompt.contains("IN NEXT") && !prompt.contains("INTRO");
    named("the section is given up to the next heading of its level", ends);
    named("a heading below the section belongs to it", prompt.contains("IN BELOW"));
    named("a heading in a code fence is none", prompt.contains("## Fence"));
    named("the context is given as JSON", prompt.contains("\"url\": \"https://x/\""));
    named("the contract is given", prompt.contains("<result>{\"status\":\"ok\""));
    calls[0].assert_fresh();
    named("the turn has a fresh session", calls.len() == 1);
    named("the cost is charged", place.status()["total_cost_usd"] == json!(0.25));
}

#[test]
fn answer_decides_where_it_goes_and_what_is_stored() {
    let (_, outcome) = scripted(&referring(true), json!([OK]));
    let summary = payload(outcome.ok(), "main")["summary"].clone();
    named("outputs merge into computed", summary["path"] == "p");
    named("outputs keep their types", summary["n"] == json!([1]));
    named("next_node follows ok", outcome.stdout.contains("\"ending\":\"done\""));
    let (place, outcome) = scripted(&referring(true), json!([ERROR]));
    named("on_failure follows error", route(&place, "main") == ["start failure"]);
    named("the error is in last_error", outcome.stdout.contains("no network"));
    let (place, outcome) = scripted(&referring(false), json!([ERROR]));
    let failed = outcome.code(1).failed("main").contains("no network");
    named("without on_failure the agent fails", failed && route(&place, "main").is_empty());
    let (place, outcome) = scripted(&referring(true), json!(["no tag", "<result>x</result>", OK]));
    outcome.ok();
    named("a wrong form is reminded", place.events("turn_rejected").len() == 2);
    let wrong = json!([{"reply": "no tag", "repeat": true}]);
    let (place, outcome) = scripted(&referring(true), wrong);
    let most = outcome.code(1).stdout.contains("still so after 3 reminders");
    named("three reminders are the most", most && place.events("turn_rejected").len() == 3);
}

#[test]
fn document_is_looked_for_in_folder_plugin_and_workspace() {
    let mut whole = referring(true);
    whole["nodes"]["start"].as_object_mut().expect("a map").remove("section");
    let place = Test::new()
        .file("workflow.yaml", whole.to_string().as_bytes())
        .file("docs/guide.md", DOC)
        .rule(when("IN NEXT").reply(OK));
    place.run(&["workflow.yaml"]).ok();
    let prompt = &place.calls()[0].prompt;
    named("a document without a section is given whole", prompt.contains("INTRO"));
    named("a document is looked for in the graph's folder", prompt.contains("IN PART"));

    let replies = json!({"workflow.yaml#start": [OK]}).to_string();
    let elsewhere = |more: &[(&str, &[u8])]| {
        let place = Test::new()
            .file("inner/workflow.yaml", whole.to_string().as_bytes())
            .file("inner/replies.yaml", replies.as_bytes());
        let place = more.iter().fold(place, |place, (name, text)| place.file(name, text));
        place.run(&["inner/workflow.yaml", "--agent", "scripted"])
    };
    let plugin: &[(&str, &[u8])] = &[("plugin.json", b"{}"), ("docs/guide.md", DOC)];
    let found = elsewhere(plugin).status.code() == Some(0);
    named("a document is looked for in the plugin", found);
    let workspace: &[(&str, &[u8])] = &[("docs/guide.md", DOC)];
    let found = elsewhere(workspace).status.code() == Some(0);
    named("a document is looked for in the workspace", found);
    let missing = elsewhere(&[]);
    let said = format!("{}{}", missing.stdout, missing.stderr);
    let is_error = missing.status.code() == Some(65) && said.contains("WF320");
    named("a missing document is an error at load", is_error);
}
