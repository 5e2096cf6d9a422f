//! The example that the language was designed for, completed.

use serde_json::json;

use super::site::site;
use super::{payload, route, run, test, text, trace};
use crate::support::Test;

fn add_source() -> Test {
    test(&json!({})).file("workflow.yaml", include_bytes!("add-source.yaml"))
}

fn corpus() -> Test {
    add_source().file("data/config.yaml", b"# a corpus\nsources: []\n")
}

#[test]
fn source_is_added_from_given_url() {
    let place = corpus();
    let site = site();
    let outcome = run(&place, &["--var", &format!("source_url={site}")]);
    let expected = json!({
        "ending": "success", "type": "success", "message": "Source 'web-1' added to corpus",
        "summary": {"source_id": "web-1", "source_type": "web"},
    });
    assert_eq!(payload(outcome.ok(), "main"), expected);
    outcome
        .stderr_has("Source 'web-1' added to corpus\n    source_id: web-1\n    source_type: web\n");
    assert_eq!(text(&place, ".cache/web/web-1/index.html"), "<h1>Docs</h1>");
    let config = text(&place, "data/config.yaml");
    assert!(config.starts_with("# a corpus\n") && config.contains("web-1"), "{config}");
    assert!(!trace(&place).exists(), "Claude Code was started");
}

#[test]
fn missing_config_is_reported() {
    let outcome = run(&corpus(), &["--var", "source_url=http://127.0.0.1:1"]);
    outcome.code(1).stdout_has("No config.yaml found");
    outcome.stdout_has("Try running: /hiivmind-corpus-init");
    run(&add_source(), &[]).code(1).stdout_has("Entry gate failed: config_exists does not hold");
}

#[test]
fn missing_url_asks_for_source_type_and_waits() {
    let place = corpus();
    run(&place, &[]).code(2);
    assert_eq!(route(&place, "main"), ["locate_corpus success", "check_url_provided false"]);
    let asked = place.events("graph_advanced")[0]["next_action"]["question"].clone();
    assert_eq!(asked["options"][0]["label"], json!("Git repository"));
    assert_eq!(asked["text"], json!("What type of documentation source would you like to add?"));
}

#[test]
fn answer_given_ahead_adds_source_without_asking() {
    let place = corpus();
    let outcome = run(&place, &["--answer", "ask_source_type=Local files"]);
    let summary = payload(outcome.ok(), "main")["summary"].clone();
    assert_eq!(summary, json!({"source_id": "local", "source_type": "local"}));
}
