//! What graphs of other people have: described values, sections without a heading, texts with paths in expressions, and
//! agents that need no Claude Code.

use serde_json::json;

use super::{graph, node, payload, run, test, text, trace};
use crate::support::Test;

#[test]
fn graph_of_scripts_and_graphs_runs_without_claude_code() {
    let mut flow = graph(json!({
        "start": {
            "type": "parallel", "on_success": "then", "on_failure": "failed",
            "branches": [{"name": "one", "state": "one.sh"}, {"name": "two", "state": "two.yaml"}],
        },
        "then": node(json!([{"type": "run_state", "state": "two.yaml", "store_as": "again"}]), "done"),
    }));
    flow["endings"]["done"]["summary"] = json!({"one": "${computed.one}", "two": "${computed.two.ending}", "again": "${computed.again.ending}"});
    let write = json!([{"type": "append_to_file", "path": "log.txt", "content": "two\n"}]);
    let place = test(&flow)
        .file("one.sh", b"#!/bin/sh\necho '<result>first</result>'\n")
        .file("two.yaml", graph(json!({"start": node(write, "done")})).to_string().as_bytes())
        .env("RAYMOND_CLAUDE", "/no/such/claude");
    let outcome = run(&place, &["--trust"]);
    outcome.ok();
    let expected = json!({"one": "first", "two": "done", "again": "done"});
    assert_eq!(payload(&outcome, "main")["summary"], expected);
    assert_eq!(text(&place, "log.txt"), "two\ntwo\n");
}

#[test]
fn missing_state_of_branch_is_refused_before_anything_runs() {
    let flow = graph(json!({
        "start": {
            "type": "parallel", "on_success": "done", "on_failure": "failed",
            "branches": [{"name": "one", "state": "GONE.md"}],
        },
    }));
    let place = test(&flow);
    let outcome = run(&place, &[]);
    outcome.code(65).stderr_has("WF214 no agent can begin in `GONE.md`: there is no such file");
    assert!(!trace(&place).exists());
}

#[test]
fn described_value_and_unnamed_section_are_asked() {
    let described = "# Find all corpora.\n# Return: [{ name }]\n";
    let mut flow = graph(json!({
        "start": node(
            json!([
                {"type": "compute", "expression": described, "store_as": "computed.found"},
                {"type": "compute", "expression": "computed.found.reduce((acc, one) => { acc[one.kind] ||= []; acc[one.kind].push(one.name); return acc; }, {})", "store_as": "computed.by_kind"},
                {"type": "compute", "expression": "'${PWD}/docs'", "store_as": "computed.docs"},
                {"type": "set_state", "field": "computed.of", "value": {"${computed.found[0].name}": 1}},
            ]),
            "read",
        ),
        "read": {"type": "reference", "doc": "docs/git.md", "section": "Research", "next_node": "done"},
    }));
    flow["endings"]["done"]["summary"] = json!({"by_kind": "${computed.by_kind}", "docs": "${computed.docs == PWD + '/docs'}", "of": "${computed.of}"});
    let found =
        json!([{"name": "a", "kind": "x"}, {"name": "b", "kind": "y"}, {"name": "c", "kind": "x"}]);
    let replies = json!({
        "workflow.yaml#start": [{"reply": format!("<result>{found}</result>")}],
        "workflow.yaml#read": [{"reply": "<result>{\"status\":\"ok\",\"outputs\":{}}</result>"}],
    });
    let place = Test::new()
        .file("workflow.yaml", flow.to_string().as_bytes())
        .file("docs/git.md", b"# Git\n\n## Clone\n\nClone it.\n")
        .file("replies.yaml", replies.to_string().as_bytes());
    let outcome = place.run(&["workflow.yaml", "--agent", "scripted"]);
    outcome.ok();
    let expected = json!({"by_kind": {"x": ["a", "c"], "y": ["b"]}, "docs": true, "of": {"a": 1}});
    assert_eq!(payload(&outcome, "main")["summary"], expected);
}

#[test]
fn check_tells_a_wrong_join_and_nothing_that_follows_from_it() {
    let mut flow = graph(json!({
        "start": {
            "type": "parallel", "on_success": "done", "on_failure": "failed", "join": "most",
            "branches": [{"name": "style", "state": "STYLE.md"}, {"name": "two", "prompt": "Look"}],
        },
    }));
    flow["endings"]["done"]["summary"] =
        json!({"style": "${computed.style}", "two": "${computed.two}"});
    let place = test(&flow).file("STYLE.md", b"Look at it. <result>ok</result>");
    let said = place.raymond(&["check", "."]).stdout.clone();
    let told: Vec<&str> =
        said.lines().filter(|line| line.contains(": WF") || line.contains(": RF")).collect();
    assert_eq!(told.len(), 1, "{said}");
    assert!(told[0].contains("WF102 `join` is `all`, `any`, a number from 1"), "{said}");
}

#[test]
fn branch_has_its_own_scripted_replies_and_name() {
    let flow = graph(json!({
        "start": {
            "type": "parallel", "on_success": "done", "on_failure": "failed",
            "branches": [
                {"name": "one", "prompt": "First"}, {"name": "two", "prompt": "Second"},
                {"name": "three", "prompt": "Third"},
            ],
        },
    }));
    let mut flow = flow;
    flow["endings"]["done"]["summary"] =
        json!(["${computed.one}", "${computed.two}", "${computed.three}"]);
    let replies = b"workflow.yaml#start.one: [<result>1</result>]\nworkflow.yaml#start: [<result>any</result>]\nworkflow.yaml#start.four: [x]\n";
    let place = test(&flow).file("replies.yaml", replies);
    let said = place.raymond(&["check", "."]);
    let unknown =
        "RF005 unknown node workflow.yaml#start.four; did you mean workflow.yaml#start.one?";
    said.assert(said.stdout.contains("unknown node workflow.yaml#start.four"), unknown);
    said.assert(!said.stdout.contains("no node workflow.yaml#start.one"), "one is known");
    let outcome = run(&place, &["--agent", "scripted"]);
    assert_eq!(payload(outcome.ok(), "main")["summary"], json!(["1", "any", "any"]));
    outcome.stderr_has("starts an agent at workflow.yaml#start.one");
    let tree = place.raymond(&["tree", "t", "--all"]).ok().stdout.clone();
    let costs = place.status()["finished"].to_string();
    assert!(costs.contains("workflow.yaml#start.two"), "{costs}\n{tree}");
}
