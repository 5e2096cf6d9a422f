//! What no case reaches: states, transitions, ways of graphs and programs.

use serde_json::json;

use super::test_of;
use crate::support::{RaymondOutcome, Test};

const GRAPH: &str = "name: g
version: '1'
start_node: check
initial_state: { flags: { ok: true }, computed: {} }
nodes:
  check:
    type: conditional
    condition: { type: file_exists, path: given.md }
    branches: { true: fine, false: fix }
  fine:
    type: action
    actions: [{ type: set_flag, flag: seen, value: true }]
    on_success: good
    on_failure: bad
  fix:
    type: action
    actions: [{ type: set_flag, flag: fixed, value: true }]
    on_success: fine
    on_failure: bad
endings:
  good: { type: success, message: fine }
  bad: { type: error, message: not fine }
";

/// A program that passes `second` within one record, on one of two ways that look the same.
const PROGRAM: &str = r#"(workflow p
  (state first
    (branch (on (signal jump) (goto third)))
    (branch (on (signal long) (goto second)))
    (goto fourth))
  (state second (goto third))
  (state third (terminal :result "third"))
  (state fourth (goto fifth))
  (state fifth (branch (on (signal back) (goto first))))
  (state sixth (terminal :result "sixth")))
"#;

fn coverage(test: &Test) -> RaymondOutcome {
    test_of(test, &["--coverage"])
}

#[test]
fn untaken_transitions_of_a_graph_are_listed() {
    let case = |name: &str, files: &str| {
        format!("  - name: {name}\n    {files}\n    expect: {{ agents: 1 }}\n")
    };
    let given = case("given", "files: { given.md: x }");
    let test = Test::new()
        .file("workflow.yaml", GRAPH.as_bytes())
        .file("tests/ways.yaml", format!("cases:\n{given}").as_bytes());
    let outcome = coverage(&test);
    outcome.ok().stdout_has("2 of 3 states, 2 of 6 transitions");
    for route in [
        "check → fix (false)",
        "fix → fine (success)",
        "fix → bad (failure)",
        "fine → bad (failure)",
    ] {
        outcome.stdout_has(&format!("never taken: workflow.yaml#{route}"));
    }
    let both = format!("cases:\n{given}{}", case("missing", "files: {}"));
    let outcome = coverage(&test.file("tests/ways.yaml", both.as_bytes()));
    outcome.ok().stdout_has("3 of 3 states, 4 of 6 transitions");
}

#[test]
fn transitions_of_a_program_are_found_in_its_records() {
    let case = |name: &str, facts: &str, end: &str| {
        format!("  - name: {name}\n    facts: {{ {facts} }}\n    expect: {{ result: {end} }}\n")
    };
    let cases = format!("cases:\n{}", case("long", "long: x", "third"));
    let test = Test::new()
        .file("workflow.lisp", PROGRAM.as_bytes())
        .file("tests/ways.yaml", cases.as_bytes());
    let outcome = coverage(&test);
    outcome.ok().stdout_has("3 of 6 states, 2 of 7 transitions");
    for route in
        ["first → third", "first → fourth", "fourth → fifth", "fifth → first", "fifth → sixth"]
    {
        outcome.stdout_has(&format!("never taken: workflow.lisp#{route}"));
    }
    let cases = format!("{cases}{}", case("none", "", "sixth"));
    let test = test.file("tests/ways.yaml", cases.as_bytes());
    let json = test_of(&test, &["--json"]).ok().json();
    let missed = &json["coverage"][0]["missed_transitions"];
    assert_eq!(missed, &json!(["workflow.lisp#first → third", "workflow.lisp#fifth → first"]));
    assert_eq!(json["coverage"][0]["missed_states"], json!([]));
}
