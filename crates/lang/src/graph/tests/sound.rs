//! Good graphs, and the results of reading them.

use serde_json::json;

use super::super::checked_graph::{ConditionTest, GraphNode, ReferenceText};
use super::super::profile::GraphProfile;
use super::super::read::read;
use super::super::vocabulary::GraphVocabulary;
use super::{asking, diagnostics, graph, program, source};

/// The example of the specification, with the nodes it leaves out.
const EXAMPLE: &str = include_str!("add-source.yaml");

#[test]
fn example_graph_is_valid_in_every_profile() {
    for profile in [GraphProfile::Seed, GraphProfile::Lenient] {
        let vocabulary = GraphVocabulary::new();
        let read = read("g.yaml", Some("add-source"), EXAMPLE, &vocabulary, &source(), profile);
        assert_eq!(read.diagnostics, [], "{profile:?}");
        let program = read.graph.expect("sound");
        assert_eq!((program.name.as_str(), &*program.start), ("add-source", "locate_corpus"));
        assert_eq!(program.max_steps, 10_000);
        assert_eq!(program.initial["flags"]["manifest_detected"], json!(false));
        assert!(program.hash.starts_with("sha256:") && program.hash.len() == 71);
        let GraphNode::UserPrompt(prompt) = &program.nodes["ask_source_type"] else {
            panic!("asks")
        };
        assert_eq!(prompt.options.len(), 3);
        assert_eq!(&*prompt.responses["git"].next, "clone_source");
        assert_eq!(prompt.responses["git"].consequence.len(), 1);
        let GraphNode::Reference { reference, .. } = &program.nodes["clone_source"] else {
            panic!()
        };
        let ReferenceText::Document { text, section, .. } = &reference.text else { panic!() };
        assert_eq!(text, "## Clone Repository\n\nClone it.");
        assert_eq!(section.as_deref(), Some("Clone Repository"));
    }
}

#[test]
fn initial_state_has_declared_fields_and_empty_computed() {
    let leave = "  a: { type: action, actions: [], on_success: done, on_failure: failed }";
    let program = program(&graph(leave));
    assert_eq!(program.initial["computed"], json!({}));
    assert_eq!(program.initial["known"], json!(1));
}

#[test]
fn branch_keys_may_be_booleans_or_strings() {
    for branches in [
        "true: done, false: failed",
        "\"true\": done, 'false': failed",
        "True: done, on_false: failed",
    ] {
        let text =
            asking("      type: config_exists").replace("true: done, false: failed", branches);
        let program = program(&text);
        let GraphNode::Conditional { when_true, when_false, .. } = &program.nodes["a"] else {
            panic!()
        };
        assert_eq!((&**when_true, &**when_false), ("done", "failed"));
    }
}

#[test]
fn comments_are_allowed_anywhere() {
    let (head, rest) = EXAMPLE.split_once("entry_preconditions:").expect("it has some");
    let rest = format!("entry_preconditions:{rest}");
    let lines = rest.lines().map(|line| format!("# above\n{line}\n"));
    let text = format!("{head}{}", lines.collect::<String>()).replace(
        "start_node: locate_corpus",
        &format!("start_node: locate_corpus # first\n{}", "# again\n".repeat(200)),
    );
    assert!(text.contains("# first"));
    assert_eq!(diagnostics(&text, GraphProfile::Lenient), Vec::<String>::new());
}

#[test]
fn section_with_variable_is_chosen_at_run_time() {
    let text = graph(
        "  a: { type: reference, doc: lib/git.md, section: '${known}', next_node: done, on_failure: failed }",
    );
    let program = program(&text);
    let GraphNode::Reference { reference, on_failure, .. } = &program.nodes["a"] else { panic!() };
    let ReferenceText::Document { section, choose, text, .. } = &reference.text else { panic!() };
    assert!(section.is_none() && choose.is_some() && text.starts_with("# Git"));
    assert_eq!(on_failure.as_deref(), Some("failed"));
}

#[test]
fn newer_check_types_parse_as_seed_preconditions() {
    let test = |condition: &str| {
        let program = program(&asking(&format!("      {{ {condition} }}")));
        let Some(GraphNode::Conditional { condition, .. }) = program.nodes.get("a") else {
            panic!()
        };
        condition.test.clone()
    };
    let state = |rest: &str| test(&format!("type: state_check, field: known, operator: {rest}"));
    assert!(matches!(state("equals, value: 1"), ConditionTest::Equals { .. }));
    assert!(matches!(state("not_equals, value: 1"), ConditionTest::None(_)));
    assert!(matches!(state("not_null"), ConditionTest::Null { null: false, .. }));
    assert!(matches!(state("null"), ConditionTest::Null { null: true, .. }));
    assert!(matches!(state("true"), ConditionTest::Equals { .. }));
    let path = |rest: &str| test(&format!("type: path_check, path: x{rest}"));
    assert!(
        matches!(path(", check: is_file"), ConditionTest::World(work) if work.kind == "file_exists")
    );
    assert!(matches!(path(""), ConditionTest::Any(either) if either.len() == 2));
    let tool = test("type: tool_check, tool: git, capability: available");
    assert!(matches!(tool, ConditionTest::World(work) if work.kind == "tool_available"));
}

#[test]
fn named_loop_variable_replaces_item() {
    let text = |name: &str| {
        super::acting(&format!(
            "      - type: foreach\n        items: '${{known}}'\n        as: file\n        actions:\n          - {{ type: display_message, message: '${{{name}}}' }}"
        ))
    };
    assert!(diagnostics(&text("file.path"), GraphProfile::Seed).is_empty());
    assert_eq!(diagnostics(&text("item"), GraphProfile::Seed).len(), 1);
}
