//! A retry of a graph or a program does nothing again that had succeeded before the failure.

use serde_json::{Value, json};

use crate::graph::{graph, node};
use crate::support::{Test, always};

const ONCE: &str = "echo ran >> ran.txt";

/// Returns a test whose graph does these actions, and fails if one of them does.
fn actions(actions: &Value) -> Test {
    let mut flow = graph(json!({ "start": node(actions.clone(), "done") }));
    flow["nodes"]["start"]["on_failure"] = "failed".into();
    let test = Test::new().file("workflow.yaml", flow.to_string().as_bytes());
    test.env("RAYMOND_TRUST", "true")
}

/// Returns the lines of a file in the run's directory.
fn lines(test: &Test, file: &str) -> usize {
    std::fs::read_to_string(test.flow().join(file)).unwrap_or_default().lines().count()
}

/// Runs until the failure, mends the reason, and retries; the command may have run once.
fn fails_then_succeeds(test: &Test, entry: &str) {
    test.run(&[entry]).code(1).failed("main");
    assert_eq!(lines(test, "ran.txt"), 1);
    test.raymond(&["retry", "t"]).code(1).failed("main");
    assert_eq!(lines(test, "ran.txt"), 1, "only what failed is done again");
    std::fs::write(test.flow().join("there.txt"), "3").expect("written");
    test.raymond(&["retry", "t"]).ok();
    assert_eq!(lines(test, "ran.txt"), 1);
    test.assert_no_survivors();
}

#[test]
fn command_before_a_read_that_failed_is_not_repeated() {
    let test = actions(&json!([
        {"type": "bash_exec", "command": ONCE, "once": true},
        {"type": "read_file", "path": "there.txt", "store_as": "text"},
    ]));
    fails_then_succeeds(&test, "workflow.yaml");
}

#[test]
fn command_before_a_command_that_failed_is_not_repeated() {
    let test = actions(&json!([
        {"type": "bash_exec", "command": ONCE, "store_as": "first"},
        {"type": "set_state", "field": "more", "value": "${computed.first.exit_code}"},
        {"type": "bash_exec", "command": "test -e there.txt", "idempotent": true},
    ]));
    fails_then_succeeds(&test, "workflow.yaml");
}

#[test]
fn command_before_an_expression_that_failed_is_not_repeated() {
    let test = actions(&json!([
        {"type": "bash_exec", "command": format!("{ONCE}; cat there.txt || true"), "store_as": "first"},
        {"type": "compute", "expression": "parseInt(computed.first.stdout) / 0 > 1 ? missing.path.here : 1", "store_as": "x"},
    ]));
    test.run(&["workflow.yaml"]).code(1).failed("main");
    test.raymond(&["retry", "t"]).code(1).failed("main");
    assert_eq!(lines(&test, "ran.txt"), 1);
}

#[test]
fn answer_before_an_action_that_failed_is_not_asked_for_again() {
    let test = actions(&json!([
        {"type": "compute", "expression": "# guess a number", "store_as": "guess"},
        {"type": "read_file", "path": "there.txt", "store_as": "text"},
    ]))
    .rule(always().reply("<result>7</result>").cost(0.5));
    test.run(&["workflow.yaml"]).code(1).failed("main");
    std::fs::write(test.flow().join("there.txt"), "3").expect("written");
    test.raymond(&["retry", "t"]).ok();
    assert_eq!(test.calls().len(), 1, "{:?}", test.prompts());
    assert_eq!(test.status()["total_cost_usd"], 0.5, "the turn is charged once");
}

#[test]
fn command_of_a_program_before_a_failure_is_not_repeated() {
    let test = Test::new().env("RAYMOND_TRUST", "true").file(
        "p.lisp",
        format!(
            "(workflow w (state s (action (run :command \"{ONCE}\")) (action (run :command \"test -e there.txt\"))
               (terminal :result done)))"
        )
        .as_bytes(),
    );
    fails_then_succeeds(&test, "p.lisp");
}

#[test]
fn command_of_a_program_before_its_failure_is_not_repeated() {
    for metadata in ["", "(metadata (publish-state true))"] {
        let test = Test::new().env("RAYMOND_TRUST", "true").file(
            "p.lisp",
            format!(
                "(workflow w {metadata} (state s (action (run :command \"{ONCE}\")) (terminal :status failed :result no)))"
            )
            .as_bytes(),
        );
        test.run(&["p.lisp"]).code(1).failed("main");
        test.raymond(&["retry", "t"]).code(1).failed("main");
        assert_eq!(lines(&test, "ran.txt"), 1, "{metadata}");
    }
}

#[test]
fn program_that_published_its_failure_publishes_its_state_again() {
    let test = Test::new().env("RAYMOND_TRUST", "true").file(
        "p.lisp",
        b"(workflow w (metadata (publish-state true))
           (state s (action (log \"hello\") (run :command \"test -e there.txt\")) (terminal :result done)))",
    );
    test.run(&["p.lisp"]).code(1).failed("main");
    std::fs::write(test.flow().join("there.txt"), "").expect("written");
    test.raymond(&["retry", "t"]).ok().ended("main", "done");
    let published = |record: &Value| {
        let fact = &record["position"]["activity"]["assert"];
        let is_state = fact["label"] == "workflow/state";
        is_state.then(|| fact["value"].as_str().unwrap_or_default().to_owned())
    };
    let told: Vec<String> = test.events("program_advanced").iter().filter_map(published).collect();
    assert_eq!(told, ["running s", "failed", "running s", "completed"]);
}
