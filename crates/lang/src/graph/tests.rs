//! Tests of reading graphs, good ones and bad ones.

use std::collections::BTreeMap;

use super::checked_graph::{ActionKind, Graph, GraphNode};
use super::profile::GraphProfile;
use super::read::{ParsedGraph, read};
use super::vocabulary::GraphVocabulary;

mod agents;
mod bombs;
mod meanings;
mod mistakes;
mod reads;
mod sound;
mod types;

/// Returns the documents that the graphs here refer to.
fn source() -> BTreeMap<String, String> {
    let document = "# Git\n\n## Clone Repository\n\nClone it.\n\n## Fetch\n\nFetch it.\n";
    let files = [("lib/git.md", document), ("A.md", "Do it."), ("x/START.md", "Do it.")];
    files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
}

fn reading(text: &str, profile: GraphProfile) -> ParsedGraph {
    read("g.yaml", None, text, &GraphVocabulary::new(), &source(), profile)
}

/// Returns the diagnostics of a graph, without its path.
fn diagnostics(text: &str, profile: GraphProfile) -> Vec<String> {
    let found = reading(text, profile).diagnostics;
    let diagnostics = found.iter().map(ToString::to_string);
    diagnostics
        .map(|diagnostics| diagnostics.strip_prefix("g.yaml:").unwrap_or(&diagnostics).to_owned())
        .collect()
}

/// Returns a graph of these nodes; the first of them is in line 9.
fn graph(nodes: &str) -> String {
    format!(
        "name: g\nversion: \"1\"\ndescription: d\nentry_preconditions: []\ninitial_state: {{ known: 1, flags: {{ ready: false }} }}\nstart_node: a\nnodes:\n\n{nodes}\nendings:\n  done: {{ type: success, message: Done }}\n  failed: {{ type: error, message: Failed }}\n"
    )
}

/// Returns a graph of one node with these actions; the first of them begins at 12:9.
fn acting(actions: &str) -> String {
    graph(&format!(
        "  a:\n    type: action\n    actions:\n{actions}\n    on_success: done\n    on_failure: failed\n"
    ))
}

/// Returns a graph of one node with this condition, which begins at 12:7.
fn asking(condition: &str) -> String {
    graph(&format!(
        "  a:\n    type: conditional\n    condition:\n{condition}\n    branches: {{ true: done, false: failed }}\n"
    ))
}

fn program(text: &str) -> Graph {
    let reading = reading(text, GraphProfile::Lenient);
    let found: Vec<String> = reading.diagnostics.iter().map(ToString::to_string).collect();
    reading.graph.unwrap_or_else(|| panic!("{found:#?}\n{text}"))
}

/// Returns the only action of a graph.
fn act(action: &str) -> ActionKind {
    let program = program(&acting(action));
    let Some(GraphNode::Action { actions, .. }) = program.nodes.get("a") else {
        panic!("{action}")
    };
    actions[0].act.clone()
}

/// Asserts that the graph has this one mistake.
fn assert_diagnostic(text: &str, expected: &str) {
    assert_eq!(diagnostics(text, GraphProfile::Lenient), [expected], "{text}");
}
