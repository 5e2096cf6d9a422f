//! Prompts and graphs in one workflow: each calls the other and gets its result.

use serde_json::{Value, json};

use super::{graph, node, test, text};
use crate::support::Test;

/// Returns a graph that writes a greeting, or fails without a name.
fn greeting() -> Value {
    let mut greeting = graph(json!({
        "start": {
            "type": "conditional", "condition": {"type": "state_not_null", "field": "who"},
            "branches": {"true": "greet", "false": "failed"},
        },
        "greet": node(json!([{"type": "write_file", "path": "${who}.txt", "content": "Hello"}]), "done"),
    }));
    greeting["initial_state"] = json!({"who": null});
    greeting["endings"]["done"]["summary"] = json!({"who": "${who}"});
    greeting
}

/// Returns a test with the graph, a prompt that replies with this, and a prompt that repeats the result.
fn asking(reply: &str) -> Test {
    let replies = json!({"START.md": [reply], "BACK.md": ["<result>got {{result}}</result>"]});
    test(&json!({}))
        .prompt("START.md", "start")
        .prompt("BACK.md", "{{result}}")
        .file("greet.yaml", greeting().to_string().as_bytes())
        .file("replies.yaml", replies.to_string().as_bytes())
}

fn run(test: &Test) -> crate::support::RaymondOutcome {
    test.run(&["START.md", "--agent", "scripted"])
}

/// Returns the result that the prompt got.
fn got(outcome: &crate::support::RaymondOutcome) -> Value {
    let start = "Agent main terminated with result: got ";
    let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(start));
    outcome.assert(line.is_some(), start);
    serde_json::from_str(line.unwrap_or_default()).expect("JSON")
}

#[test]
fn prompt_calling_graph_gets_its_ending_as_result() {
    for tag in ["call", "function"] {
        let place = asking(&format!(r#"<{tag} return="BACK.md" who="Ada">greet.yaml</{tag}>"#));
        let outcome = run(&place);
        let expected = json!({
            "ending": "done", "type": "success", "message": "done", "summary": {"who": "Ada"},
        });
        assert_eq!(got(outcome.ok()), expected, "{tag}");
        assert_eq!(text(&place, "Ada.txt"), "Hello");
    }
}

#[test]
fn error_ending_of_called_graph_is_returned_to_caller() {
    let place = asking(r#"<call return="BACK.md">greet.yaml</call>"#);
    let outcome = run(&place);
    let ending = got(outcome.ok());
    assert_eq!((&ending["type"], &ending["recovery"]), (&json!("error"), &json!("flow-repair")));
}

#[test]
fn prompt_forks_graph_and_continues() {
    let place = asking(r#"<fork next="BACK.md" who="Ada">greet.yaml</fork>"#);
    let outcome = run(&place);
    outcome.ok().ended("main", "got {{result}}");
    outcome.ended(
        "main.1",
        r#"{"ending":"done","type":"success","message":"done","summary":{"who":"Ada"}}"#,
    );
}

#[test]
fn goto_or_reset_from_prompt_enters_graph() {
    for tag in ["goto", "reset"] {
        let place = asking(&format!(r#"<{tag} who="Ada">greet.yaml</{tag}>"#));
        run(&place).ok().stdout_has(r#""summary":{"who":"Ada"}"#);
    }
}

/// Returns a test with a graph that has these actions, which start agents.
fn working(actions: Value) -> Test {
    let start = node(actions, "then");
    let shown = json!([{"type": "set_state", "field": "got", "value": "${got}"}]);
    let mut working = graph(json!({"start": start, "then": node(shown, "done")}));
    working["initial_state"] = json!({"got": null});
    working["endings"]["done"]["summary"] = json!({"got": "${got}"});
    test(&working)
        .prompt("sub/START.md", "{{item}} of {{input}}")
        .prompt("sub/NEXT.md", "next")
        .prompt("ASK.md", "{{item}}")
        .file("sub/inner.yaml", greeting().to_string().as_bytes())
        .file(
            "replies.yaml",
            json!({
                "sub/START.md": ["<goto>NEXT.md</goto>"],
                "sub/NEXT.md": [{"reply": "<result>{\"n\": 1}</result>", "cost": 0.02}],
                "ASK.md": [{"reply": "<result>asked {{item}}</result>", "cost": 0.01}],
                "workflow.yaml#start": [{"reply": "<result>spawned</result>", "cost": 0.03}],
            })
            .to_string()
            .as_bytes(),
        )
}

fn got_by(actions: Value, cost: f64) -> Value {
    let place = working(actions);
    let outcome = place.run(&["workflow.yaml", "--agent", "scripted"]);
    outcome.ok();
    assert_eq!(place.status()["total_cost_usd"], json!(cost));
    super::payload(&outcome, "main")["summary"]["got"].clone()
}

#[test]
fn graph_waits_for_folders_states_and_agents_it_runs() {
    let folder = json!({"type": "run_folder", "path": "sub", "variables": {"item": "one"}, "input": "two", "store_as": "got"});
    assert_eq!(got_by(json!([folder]), 0.02), json!({"n": 1}));
    let state = json!({"type": "run_state", "state": "ASK.md", "variables": {"item": "it"}, "store_as": "got"});
    assert_eq!(got_by(json!([state]), 0.01), json!("asked it"));
    let agent = json!({"type": "spawn_agent", "subagent_type": "scout", "prompt": "Look", "store_as": "got"});
    assert_eq!(got_by(json!([agent]), 0.03), json!("spawned"));
    let inner = json!({"type": "run_folder", "path": "sub", "state": "inner.yaml", "variables": {"who": "Bo"}, "store_as": "got"});
    let inner = got_by(json!([inner]), 0.0);
    assert_eq!((&inner["type"], &inner["summary"]), (&json!("success"), &json!({"who": "Bo"})));
}

#[test]
fn graph_does_not_wait_for_background_agent() {
    let agent = json!({
        "type": "spawn_agent", "subagent_type": "general-purpose", "prompt": "Look",
        "store_as": "got", "run_in_background": true,
    });
    let place = working(json!([agent]));
    let outcome = place.run(&["workflow.yaml", "--agent", "scripted"]);
    outcome.ok().ended("main.1", "spawned");
    assert_eq!(super::payload(&outcome, "main")["summary"]["got"], json!("main.1"));
}

#[test]
fn failed_agent_fails_node_waiting_for_it() {
    let inner =
        json!({"type": "run_folder", "path": "sub", "state": "inner.yaml", "store_as": "got"});
    let place = working(json!([inner]));
    let outcome = place.run(&["workflow.yaml", "--agent", "scripted"]);
    let message = outcome.code(1).failed("main");
    outcome.assert(message.contains("run_folder: in sub/inner.yaml: It failed"), "the reason");
}

#[test]
fn failure_handled_by_graph_does_not_fail_run() {
    let inner =
        json!({"type": "run_folder", "path": "sub", "state": "inner.yaml", "store_as": "got"});
    let mut place = graph(json!({"start": node(json!([inner]), "done")}));
    place["nodes"]["start"]["on_failure"] = json!("done");
    let place = test(&place).file("sub/inner.yaml", greeting().to_string().as_bytes());
    let outcome = super::run(&place, &[]);
    outcome.ok().failed("main.1");
    assert_eq!(super::payload(&outcome, "main")["type"], json!("success"));
    place.resume(&[]).ok();
}
