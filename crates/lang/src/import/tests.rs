//! Workflows in one file, taken apart.

use super::*;
use crate::prompt::document;

const REVIEW: &str = "id: review
name: Review
default_budget: 5.0
requires_human_input: auto
states:
  1_START:
    prompt: |
      Review {{input}}.

      If there are problems: <goto>FIX.md</goto>
    allowed_transitions:
      - tag: goto
        target: FIX.md
      - { tag: result, payload: \"YES\" }
    model: sonnet
    timeout: 120
  FIX: Fix them. <result>done</result>
  BUILD:
    sh: make
    bat: make
    timeout: 9
";

fn files(text: &str) -> Vec<(String, String)> {
    let folder = import("x.yaml", text).expect("imported");
    folder.files.into_iter().map(|(name, text)| (name.to_string(), text)).collect()
}

#[test]
fn each_state_becomes_a_file_with_its_head() {
    let start = "---
allowed_transitions:
  - { tag: goto, target: FIX.md }
  - { tag: result, payload: \"YES\" }
model: sonnet
supervision: { timeout: 120s }
---
Review {{input}}.

If there are problems: <goto>FIX.md</goto>
";
    let found = files(REVIEW);
    let expected = [
        ("raymond.yaml", "name: Review\nbudget: 5.0\nsupervision: { timeout: 9s }\n"),
        ("1_START.md", start),
        ("FIX.md", "---\nsupervision: { timeout: 1800s }\n---\nFix them. <result>done</result>\n"),
        ("BUILD.sh", "make\n"),
        ("BUILD.bat", "make\n"),
    ];
    let expected: Vec<(String, String)> =
        expected.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    assert_eq!(found, expected);
    assert!(document::parse(&found[1].1).is_ok());
    let notes = import("x.yaml", REVIEW).expect("imported").notes;
    assert_eq!(
        notes,
        [
            "`id`: raymond.yaml has no such key; ignored",
            "`requires_human_input`: raymond.yaml has no such key; ignored",
            "BUILD.bat: this is not a state, because scripts here end in .sh, .py, .bash, .js, .mjs, .pl, .rb, .ts; it is kept as a file beside them",
        ]
    );
}

#[test]
fn timeout_of_scripts_moves_to_the_workflow_and_prompts_keep_theirs() {
    let text = "name: x\nstates:\n  A: { sh: x, timeout: 4000 }\n  B: { sh: x, timeout: 2000.5 }\n  C: { prompt: x, timeout: 60 }\n  D: x\n";
    let found = files(text);
    assert_eq!(found[0].1, "name: x\nsupervision: { timeout: 4000s }\n");
    assert_eq!(found[3].1, "---\nsupervision: { timeout: 60s }\n---\nx\n");
    assert_eq!(found[4].1, "---\nsupervision: { timeout: 1800s }\n---\nx\n");
    let notes = |text: &str| import("x.yaml", text).expect("imported").notes;
    let note = "states.B: a script cannot have its own `timeout` (2000.5s); `supervision.timeout` of raymond.yaml holds for all scripts";
    assert_eq!(notes(text), [note]);
    let supervised = format!("supervision: {{ timeout: 3h }}\n{text}");
    assert_eq!(files(&supervised)[0].1.matches("timeout").count(), 1);
    assert_eq!(notes(&supervised).len(), 2);
    let short = "states:\n  A: { sh: x, timeout: 9 }\n";
    assert_eq!(
        (files(short)[0].1.as_str(), notes(short)),
        ("supervision: { timeout: 9s }\n", vec![])
    );
    let mixed = "states:\n  A: { sh: x, timeout: 9 }\n  B: { sh: x, timeout: 0 }\n";
    assert_eq!((files(mixed).len(), notes(mixed).len()), (2, 2));
}

#[test]
fn file_without_usable_states_is_refused_with_its_place() {
    let error = |text: &str| import("x.yaml", text).expect_err("refused").to_string();
    for text in ["[a]", "name: x", "states: [x]"] {
        assert!(error(text).starts_with("x.yaml:1:1: RF007 a workflow in one file has"), "{text}");
    }
    for (state, why) in [
        ("../A: x", "are not allowed"),
        ("a/b: x", "are not allowed"),
        ("A: [x]", "states.A: a state is a text"),
        ("A: { model: opus }", "states.A: a state needs a `prompt`"),
        ("A: { prompt: x, sh: y }", "not both"),
        ("{ A: x, a.md: y }", "two states would be this file"),
    ] {
        let text = format!("states:\n  {state}\n");
        assert!(error(&text).contains(why), "{state}: {}", error(&text));
    }
    assert!(error("states:\n  A: x\n  A: y\n").starts_with("x.yaml:3:3: RF007 "));
    assert!(error("states: {").starts_with("x.yaml:1:"), "{}", error("states: {"));
}

#[test]
fn values_are_written_so_that_yaml_reads_the_same() {
    for text in ["yes", "NO", "1", "a: b", "# x", "é", "", "null", "A.md", "two\nlines", "~"] {
        let line = format!("x: {}\n", written_text(text));
        let read = yaml::sound_tree(YamlFileKind::MANIFEST, &line).expect("YAML");
        assert_eq!(read.json(), serde_json::json!({ "x": text }), "{line}");
    }
}
