//! Graphs and the outside: a changed file, a stop, a wait.

use serde_json::json;

use super::{graph, node, route, run, test, text};
use crate::support::wait_until;

#[test]
fn interrupted_shell_command_is_run_again_on_resume() {
    let actions = json!([
        {"type": "write_file", "path": "one", "content": "x"},
        {"type": "bash_exec", "command": "echo begun >> log; while [ ! -e go ]; do sleep 0.1; done; echo ended >> log"},
    ]);
    let place = test(&graph(json!({"start": node(actions, "done")})));
    let mut live = place.spawn(&["workflow.yaml"]);
    live.wait_for("the command runs", |test| test.flow().join("log").exists());
    live.interrupt();
    live.wait().code(130);
    wait_until("the command has ended", || place.survivors().is_empty());
    let place = place.file("go", b"");
    place.resume(&[]).ok();
    let log = text(&place, "log");
    assert!(log.ends_with("ended\n") && log.matches("begun").count() == 2, "{log}");
    assert_eq!(route(&place, "main"), ["start success"]);
}

#[test]
fn edited_graph_is_used_only_with_migrate() {
    let wait = json!([{"type": "bash_exec", "command": "while [ ! -e go ]; do sleep 0.1; done"}]);
    let last = |content: &str| {
        node(json!([{"type": "write_file", "path": "made", "content": content}]), "done")
    };
    let flow =
        |content: &str| graph(json!({"start": node(wait.clone(), "last"), "last": last(content)}));
    for (options, made) in [(&[][..], "old"), (&["--migrate"][..], "new")] {
        let place = test(&flow("old"));
        let mut live = place.spawn(&["workflow.yaml"]);
        live.wait_for("it waits", |test| !test.events("graph_advanced").is_empty());
        live.interrupt();
        live.wait().code(130);
        let place = place.file("go", b"").file("workflow.yaml", flow("new").to_string().as_bytes());
        let outcome = place.resume(options);
        outcome.ok().stderr_has("workflow.yaml: changed since the run began");
        assert_eq!(text(&place, "made"), made);
    }
}

#[test]
fn unanswered_question_leaves_run_waiting() {
    let option = |id: &str| json!({"id": id, "label": id, "description": id});
    let ask = json!({
        "type": "user_prompt",
        "prompt": {"question": "Which one?", "header": "One", "options": [option("a"), option("b")]},
        "on_response": {"a": {"next_node": "done"}, "b": {"next_node": "done"}},
    });
    let place = test(&graph(json!({"start": ask})));
    run(&place, &[]).code(2);
    let walked = place.events("graph_advanced");
    assert_eq!(walked[0]["next_action"]["question"]["node"], json!("start"));
    assert!(!super::trace(&place).exists(), "Claude Code was started");
    place.resume(&[]).code(2);
    assert_eq!(place.events("graph_advanced").len(), 1);
}
