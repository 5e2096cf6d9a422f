//! Agents that work at the same time: their results, and a kill in the middle of it.

use raymond::fault::POINTS;
use serde_json::{Value, json};

use super::{git, graph, node, payload, text};
use crate::support::{Test, wait_until, when};

fn flow(join: Value) -> Value {
    let branch = |name: &str| json!({"name": name, "prompt": format!("LOOK at {name}")});
    let mut flow = graph(json!({
        "start": {
            "type": "parallel", "join": join, "on_success": "scan", "on_failure": "failed",
            "branches": [branch("one"), branch("two"), {"name": "three", "state": "three.yaml"}],
        },
        "scan": node(
            json!([{
                "type": "spawn_agents_parallel", "foreach": "sources", "agent_type": "scout",
                "prompt_template": "SCAN ${item.id}", "collect_as": "computed.scans",
            }]),
            "done",
        ),
    }));
    flow["initial_state"] = json!({"sources": [{"id": "a"}, {"id": "b"}]});
    flow["endings"]["done"]["summary"] = json!({
        "one": "${computed.one}", "two": "${computed.two.n}", "three": "${computed.three.ending}",
        "scans": "${computed.scans}",
    });
    flow
}

fn place() -> Test {
    let write = json!([{"type": "append_to_file", "path": "log.txt", "content": "three\n"}]);
    Test::new()
        .file("workflow.yaml", flow(json!("all")).to_string().as_bytes())
        .file("three.yaml", graph(json!({"start": node(write, "done")})).to_string().as_bytes())
        .rule(when("LOOK at one").reply("<result>first</result>").cost(0.01))
        .rule(when("LOOK at two").reply("<result>n: 2</result>").cost(0.01))
        .rule(when("SCAN a").reply("<result>{\"id\":\"a\"}</result>").cost(0.01))
        .rule(when("SCAN b").reply("<result>plain</result>").cost(0.01))
}

/// Returns the prompts that were asked, sorted.
fn asked(test: &Test) -> Vec<String> {
    let mut asked: Vec<String> = test.calls().iter().map(|call| call.agent().to_owned()).collect();
    asked.sort();
    asked
}

#[test]
fn branches_and_list_give_their_results() {
    let test = place();
    let outcome = test.run(&["workflow.yaml"]);
    outcome.ok();
    let expected =
        json!({"one": "first", "two": 2, "three": "done", "scans": [{"id": "a"}, "plain"]});
    assert_eq!(payload(&outcome, "main")["summary"], expected);
    assert_eq!(text(&test, "log.txt"), "three\n");
    assert_eq!(asked(&test), ["main.1", "main.2", "main.4", "main.5"]);
}

#[test]
fn parallel_killed_at_any_point_resumes_without_losing_or_repeating_an_agent() {
    let whole = place();
    let outcome = whole.run(&["workflow.yaml"]);
    outcome.ok();
    let result = payload(&outcome, "main").to_string();
    let mut deaths = 0;
    let points = ["append.before", "sync.after", "operation.before", "operation.after"];
    assert!(points.iter().all(|point| POINTS.contains(point)), "{POINTS:?}");
    for point in points {
        for count in [1, 3, 4, 6, 9, 12] {
            let context = format!("killed at {point}, time {count}");
            let test = place().env("RAYMOND_FAILPOINT", format!("{point}:{count}"));
            let first = test.run(&["workflow.yaml"]);
            deaths += usize::from(first.killed());
            let test = test.env("RAYMOND_FAILPOINT", "none:1");
            let last = if !first.killed() {
                first
            } else if test.run_dir().exists() {
                test.resume(&[])
            } else {
                test.run(&["workflow.yaml"])
            };
            last.assert(last.stdout.contains(&result), &format!("{context}: {result}"));
            assert_eq!(asked(&test), asked(&whole), "{context}");
            assert_eq!(text(&test, "log.txt"), "three\n", "{context}");
            wait_until(&format!("{context}: no process is left"), || test.survivors().is_empty());
        }
    }
    assert!(deaths > 12, "{deaths}");
}

#[test]
fn any_branch_is_enough_and_the_rest_is_stopped() {
    let mut flow = flow(json!("any"));
    flow["nodes"]["start"]["rest"] = json!("stop");
    flow["nodes"]["start"]["on_success"] = json!("done");
    flow["nodes"]["start"]["branches"] = json!([
        {"name": "one", "prompt": "LOOK at one"},
        {"name": "two", "state": "ask.yaml"},
    ]);
    flow["endings"]["done"]["summary"] =
        json!({"one": "${computed.one}", "two": "${computed.two}"});
    let option = json!({"id": "a", "label": "a", "description": "a"});
    let ask = graph(json!({"start": {
        "type": "user_prompt",
        "prompt": {"question": "Which?", "header": "W", "options": [option]},
        "on_response": {"a": {"next_node": "done"}},
    }}));
    let test = place()
        .file("workflow.yaml", flow.to_string().as_bytes())
        .file("ask.yaml", ask.to_string().as_bytes());
    let outcome = test.run(&["workflow.yaml"]);
    outcome.ok();
    assert_eq!(payload(&outcome, "main")["summary"], json!({"one": "first", "two": null}));
    assert_eq!(test.events("joined")[0]["stopped"][0]["agent"], json!("main.2"));
}

#[test]
fn graph_with_worktree_works_on_a_separate_branch() {
    let commit = "echo mine > mine && git add mine && git -c user.name=a -c user.email=a@b commit -q -m mine";
    let actions = json!([
        {"type": "bash_exec", "command": commit},
        {"type": "write_file", "path": "where", "content": "${PWD}"},
    ]);
    let mut flow = graph(json!({"start": node(actions, "done")}));
    flow["worktree"] = json!(true);
    let test = Test::new().file("workflow.yaml", flow.to_string().as_bytes());
    git(&test.flow(), &["init", "-q", "-b", "main"]);
    git(&test.flow(), &["add", "."]);
    git(&test.flow(), &["commit", "-q", "-m", "one"]);
    test.run(&["workflow.yaml"]).ok();
    let tree = test.dir().join("worktrees/t/main");
    assert!(!test.flow().join("mine").exists() && tree.join("mine").exists());
    let within = std::fs::read_to_string(tree.join("where")).expect("written");
    assert_eq!(Some(within.as_str()), tree.canonicalize().expect("there").to_str());
    assert_eq!(git(&tree, &["log", "--format=%s"]), "mine\none");
    assert_eq!(git(&test.flow(), &["log", "--format=%s"]), "one");
}
