//! Definitions and executions as facts, and programs that react to them.

use super::{holds, written};
use crate::support::{Test, wait_until};

/// The example of the reference.
const REACTS: &str = r#"(workflow on-feature
  (state watch
    (loop
      (wait (signal workflow-instance :consume true :as instance))
      (branch
        (on (matches @instance ":definition feature ")
          (action (start-workflow "review.lisp" :label "review-~a" :args (@instance/key) :on-error watch)))))))"#;

const FEATURE: &str =
    "(workflow feature (metadata (publish-state true)) (state s (wait (signal go :key @label))))";

fn status(test: &Test, run: &str) -> String {
    let status = test.raymond(&["status", run, "--json"]);
    if status.stdout.is_empty() { String::new() } else { status.json()["status"].to_string() }
}

#[test]
fn program_reacts_to_each_new_execution_once() {
    let reference = include_str!("../../../docs/reference/programs.md");
    assert!(reference.contains(REACTS), "the reference has this program");
    let test = written(REACTS)
        .file("feature.lisp", FEATURE.as_bytes())
        .file("other.lisp", FEATURE.replace("feature", "other").as_bytes())
        .file("review.lisp", b"(workflow review (state s (terminal :result done)))");
    let reacts = test.spawn(&["p.lisp"]);
    for (file, label) in [("other.lisp", "one"), ("feature.lisp", "two"), ("feature.lisp", "three")]
    {
        test.raymond(&["run", file, "--label", label, "--on-wait", "exit"]).code(2);
    }
    for label in ["review-two", "review-three"] {
        wait_until("its review", || status(&test, label).contains("completed"));
    }
    reacts.kill9();
    let runs = test.raymond(&["list", "--json"]).ok().json_items();
    assert_eq!(runs.len(), 6, "no review of the other one: {runs:?}");
    assert!(
        !holds(&test).iter().any(|fact| fact.starts_with("workflow-instance")),
        "all are taken"
    );
}

#[test]
fn definition_is_a_fact_that_programs_wait_for() {
    let test = written(
        "(workflow w (state s (wait (signal workflow/definition :key feature)) (terminal :result (signal workflow/definition :key feature))))",
    )
    .file("feature.lisp", FEATURE.as_bytes());
    let mut live = test.spawn(&["p.lisp"]);
    live.wait_event("program_advanced", 1);
    let path = test.flow().join("feature.lisp");
    let file = path.to_str().expect("a path");
    let defined = test.raymond(&["workflow", "define", file, "--json"]).ok().json();
    let checksum = defined["program"].as_str().expect("a checksum").to_owned();
    live.wait().ok().ended("main", &checksum);
    assert_eq!(holds(&test), [format!("workflow/definition feature={checksum}")]);
}

#[test]
fn execution_that_publishes_is_a_fact_with_its_label_branch_and_context() {
    let test = written(FEATURE);
    let arguments = [
        "run",
        "p.lisp",
        "--label",
        "f-1",
        "--branch",
        "main",
        "--input",
        "the sea",
        "--on-wait",
        "exit",
    ];
    test.raymond(&arguments).code(2);
    assert_eq!(
        holds(&test),
        [
            "workflow-instance f-1=(workflow-instance :definition feature :label f-1 :branch main :context ((input \"the sea\")))",
            "workflow/state f-1=running s"
        ]
    );
}
