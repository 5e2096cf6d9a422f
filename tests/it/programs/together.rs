//! Programs, prompts and graphs that lead to each other, and several executions in one run.

use serde_json::json;

use super::{ask, logged, outcome, route, signal};
use crate::support::{Test, when};

/// Returns a program that asks about `@context/item`.
fn asks() -> String {
    format!(
        "(workflow w (roles (a)) (state s {} (terminal :result (response r))))",
        "(action (send-prompt :agent a :template \"look at ~a\" :args (@context/item) :request-id r))
         (await (transcript-response :request-id r))"
    )
}

fn place() -> Test {
    Test::new()
        .prompt("START.md", "start")
        .prompt("BACK.md", "back with {{result}}")
        .file("p.lisp", asks().as_bytes())
        .rule(when("look at bees").reply("honey"))
        .rule(when("look at cows").reply("milk"))
        .rule(when("back with honey").reply("<result>sweet</result>"))
}

#[test]
fn call_function_and_goto_each_run_a_program() {
    for tag in [
        r#"<call return="BACK.md" item="bees">p.lisp</call>"#,
        r#"<function return="BACK.md" item="bees">p.lisp</function>"#,
    ] {
        let test = place().rule(when("start").reply(tag));
        test.run(&["START.md"]).ok().ended("main", "sweet");
        let back = &test.calls_with("back with honey")[0];
        back.assert_resumes(&test.calls_with("start")[0]);
    }
    let test = place().rule(when("start").reply(r#"<goto item="bees">p.lisp</goto>"#));
    test.run(&["START.md"]).ok().ended("main", "honey");
}

#[test]
fn caller_is_notified_of_failed_program() {
    let test = place()
        .file("p.lisp", b"(workflow w (state s (terminal :status failed :result \"no bees\")))")
        .rule(when("start").reply(r#"<call return="BACK.md">p.lisp</call>"#))
        .rule(when("no bees").reply("<result>a pity</result>"));
    test.run(&["START.md"]).ok().ended("main", "a pity");
    let back = test.prompts().pop().expect("asked");
    assert!(
        back.contains(r#""status":"failed""#) && back.contains("p.lisp:1:22: no bees"),
        "{back}"
    );
}

#[test]
fn two_instances_of_a_program_run_independently() {
    let program = "(workflow w (roles (a))
        (state s (wait (signal go :key @context/item))
            (action (send-prompt :agent a :template \"look at ~a\" :args (@context/item) :request-id r))
            (await (transcript-response :request-id r)) (terminal :result (response r))))";
    let test = place()
        .file("p.lisp", program.as_bytes())
        .prompt("MORE.md", "more")
        .prompt("END.md", "end")
        .rule(when("start").reply(r#"<fork next="MORE.md" item="bees">p.lisp</fork>"#))
        .rule(when("more").reply(r#"<fork next="END.md" item="cows">p.lisp</fork>"#))
        .rule(when("end").reply("<result>over</result>"));
    signal(&test, "go", "cows", "");
    let mut live = test.spawn(&["START.md"]);
    live.wait_for("one has ended", |test| {
        route(test, "main.2").last().is_some_and(|last| last == "s completed")
    });
    assert_eq!(route(&test, "main.1"), ["s waiting (signal go :key bees)"]);
    signal(&test, "go", "bees", "");
    let ended = live.wait();
    ended.ok().ended("main", "over").ended("main.1", "honey").ended("main.2", "milk");
    assert_eq!(test.events("program_defined").len(), 1, "the text is kept once");
}

#[test]
fn program_runs_a_folder_a_graph_and_a_program() {
    let folder = |start: &str, id: &str| {
        format!(
            "(action (run-folder :agent a :start \"{start}\" :input \"the {id}\" :request-id {id}))
             (await (transcript-response :request-id {id})) (action (log \"~a\" (response {id})))"
        )
    };
    let program = format!(
        "(workflow w (roles (a)) (state s {} {} {}))",
        folder("sub/FIRST.md", "folder"),
        folder("flow.yaml", "graph"),
        folder("q.lisp", "program"),
    );
    let graph = json!({
        "name": "flow", "version": "1.0.0", "description": "a flow", "start_node": "one",
        "initial_state": {"input": ""}, "entry_preconditions": [],
        "nodes": {"one": {
            "type": "action", "on_success": "done", "on_failure": "done",
            "actions": [{"type": "compute", "expression": "1 + 1", "store_as": "n"}],
        }},
        "endings": {"done": {"type": "success", "message": "two"}},
    });
    let test = Test::new()
        .file("p.lisp", program.as_bytes())
        .file("q.lisp", b"(workflow q (state s (terminal :result @context/input)))")
        .file("flow.yaml", graph.to_string().as_bytes())
        .prompt("sub/FIRST.md", "first {{input}}")
        .prompt("sub/SECOND.md", "second")
        .rule(when("first the folder").reply("<goto>SECOND.md</goto>"))
        .rule(when("second").reply("<result>of the folder</result>"));
    test.run(&["p.lisp"]).ok();
    let logged = logged(&test);
    assert_eq!(logged[0], "of the folder");
    assert!(logged[1].contains("\"ending\":\"done\""), "{logged:?}");
    assert_eq!(logged[2], "the program");
}

#[test]
fn graph_runs_a_program() {
    let graph = json!({
        "name": "flow", "version": "1.0.0", "description": "a flow", "start_node": "one",
        "initial_state": {"got": ""}, "entry_preconditions": [],
        "nodes": {"one": {
            "type": "action", "on_success": "done", "on_failure": "failed",
            "actions": [{"type": "run_state", "state": "p.lisp", "variables": {"item": "bees"}, "store_as": "got"}],
        }},
        "endings": {
            "done": {"type": "success", "message": "${got}"},
            "failed": {"type": "error", "message": "failed: ${computed.last_error}"},
        },
    });
    let test = place().file("flow.yaml", graph.to_string().as_bytes());
    let ended = test.run(&["flow.yaml"]);
    ended.ok();
    assert_eq!(outcome(&ended, "main")["message"], "honey");
}

#[test]
fn roles_with_one_handle_share_one_session() {
    let program = format!(
        "(workflow w (roles (writer :handle-ref one) (critic :handle-ref one) (other))
            (state s {} {} {}))",
        ask("writer", "write", "r1"),
        ask("critic", "judge", "r2"),
        ask("other", "look", "r3")
    );
    let test = Test::new()
        .file("p.lisp", program.as_bytes())
        .rule(when("write").reply("written"))
        .rule(when("judge").reply("judged"))
        .rule(when("look").reply("seen"));
    test.run(&["p.lisp"]).ok();
    let calls = test.calls();
    calls[1].assert_resumes(&calls[0]);
    calls[2].assert_fresh();
    test.raymond(&["costs", "t"]).ok().stdout_has("p.lisp#critic").stdout_has("p.lisp#writer");
}
