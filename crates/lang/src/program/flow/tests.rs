//! Programs as Mermaid, and as SVG that parses.

use std::collections::BTreeMap;

use super::*;
use crate::drawing::{mermaid, svg};
use crate::program::read::read;

/// The example of the language's own description.
const SEED: &str = include_str!("../tests/planner-worker-review.lisp");

fn drawn(text: &str) -> Flow {
    let source = BTreeMap::from([("TRY.md".to_owned(), "x".to_owned())]);
    let reading = read("p.lisp", text, &source);
    let program = reading.program.unwrap_or_else(|| panic!("{:#?}", reading.diagnostics));
    flow(&program, "p.lisp")
}

#[test]
fn states_roles_and_signals_are_drawn_with_their_edges() {
    let expected = r#"%% p.lisp
flowchart TD
    n0((" ")):::begins
    n1["start"]
    n2["handoff"]
    n3["review"]
    n4(["complete"])
    n5("planner<br/>agent-a")
    n6("implementer<br/>agent-b")
    n7>"plan/ready"]
    n8>"plan/summary"]
    n0 --> n1
    n7 -.- n1
    n1 --> n2
    n2 -.->|"handoff-request"| n5
    n8 -.- n2
    n5 -.-> n2
    n2 --> n3
    n3 -.->|"review-request"| n5
    n5 -.-> n3
    n3 -->|"review/satisfied"| n4
    n3 -.->|"implementer-fix"| n6
    n6 -.-> n3
    n3 -->|"loop"| n3
    classDef begins fill:#64748b,stroke:#64748b
    linkStyle 3,5,7,8,10,11 stroke:#8b5cf6
"#;
    assert_eq!(mermaid::write(&drawn(SEED)), expected);
}

#[test]
fn branch_timeout_and_failure_edges_have_distinct_labels() {
    let drawing = drawn(
        r#"
(workflow w
  (roles (worker :agent-kind "claude-code"))
  (state ask
    (action
      (send-prompt :agent worker :template "do it" :request-id work)
      (assert work/begun :key @workflow-id :value "x"))
    (await (transcript-response :request-id work :on-error broken) :timeout "90m" :on-timeout late)
    (branch
      (on (matches (response work) "x")
        (branch (on (signal ok :equals "yes") (goto tried)) (otherwise (terminal :status failed))))
      (on (and (signal a :key k) (not (signal b))) (terminal))
      (on (matches (response work) "(?i)all of this is as good as it can be, done") (goto tried))))
  (state tried
    (action (run-folder :agent worker :start "TRY.md" :request-id try))
    (await (transcript-response :request-id try)))
  (state late (goto ask))
  (state broken (terminal :status failed)))
"#,
    );
    let text = mermaid::write(&drawing);
    for line in [
        "n4([\"broken\"]):::wrong",
        "n1 -.->|\"work\"| n5",
        "n1 -.-|\"asserts\"| n6",
        "n5 -.-> n1",
        "n1 -->|\"work fails\"| n4",
        "n1 -->|\"after 90m\"| n3",
        "n1 -->|\"response work ~ /(?i)all of this is as g…\"| n2",
        "n1 -->|\"ok = yes\"| n2",
        "n1 -->|\"otherwise\"| n7",
        "n7([\"failed\"]):::wrong",
        "n8(((\"end\")))",
        "n1 -->|\"a k and not b\"| n8",
        "n9[[\"TRY.md\"]]",
        "n5 -->|\"run-folder\"| n9",
        "n2 --> n3",
        "n3 --> n1",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    assert!(!text.contains("n4 -->"), "an end leads nowhere\n{text}");
    let svg = svg::write(&drawing);
    assert!(roxmltree::Document::parse(&svg).is_ok(), "{svg}");
}

#[test]
fn started_program_has_a_separate_node() {
    let text = mermaid::write(&drawn(
        "(workflow w (state s (action (start-workflow nightly :on-error t))) (state t (terminal)))",
    ));
    for line in [
        "n3[[\"nightly\"]]",
        "n1 -->|\"start-workflow\"| n3",
        "n1 -->|\"nightly is not started\"| n2",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn last_state_without_goto_leads_to_end() {
    let text = mermaid::write(&drawn("(workflow w (state only (action (log \"x\"))))"));
    assert!(text.contains("n2(((\"end\")))\n") && text.contains("n1 --> n2\n"), "{text}");
}
