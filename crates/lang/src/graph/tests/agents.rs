//! Further agents: the states in which they begin, and whether they need Claude Code.

use std::collections::BTreeMap;

use super::super::asks::asks_claude;
use super::super::profile::GraphProfile;
use super::super::read::read;
use super::super::vocabulary::GraphVocabulary;
use super::{acting, diagnostics, graph};

#[test]
fn missing_state_or_folder_of_agent_is_error() {
    let table = [
        ("run_state, state: B.md", "12:35", "B.md", "there is no such file"),
        ("run_folder, path: x, state: B.md", "12:45", "B.md", "there is no such file"),
        ("run_folder, path: y", "12:35", "y", ""),
        ("run_folder, path: lib", "12:35", "START.md", "there is no such file"),
    ];
    for (text, place, name, why) in table {
        let found =
            diagnostics(&acting(&format!("      - {{ type: {text} }}")), GraphProfile::Lenient);
        let expected = format!("{place}: WF214 no agent can begin in `{name}`: {why}");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}, {expected}");
    }
    for sound in ["run_state, state: A.md", "run_folder, path: x", "run_state, state: '${known}'"] {
        let found =
            diagnostics(&acting(&format!("      - {{ type: {sound} }}")), GraphProfile::Lenient);
        assert_eq!(found, Vec::<String>::new(), "{sound}");
    }
}

#[test]
fn missing_state_of_branch_is_error_with_its_place() {
    let branches = |branch: &str| {
        graph(&format!(
            "  a:\n    type: parallel\n    branches:\n      - {{ name: one, {branch} }}\n    on_success: done\n    on_failure: failed"
        ))
    };
    let found = diagnostics(&branches("state: GONE.md"), GraphProfile::Lenient);
    let expected = "12:29: WF214 no agent can begin in `GONE.md`: there is no such file";
    assert!(found[0].starts_with(expected), "{found:?}");
    let found = diagnostics(&branches("folder: gone"), GraphProfile::Lenient);
    assert!(found[0].starts_with("12:30: WF214 no agent can begin in `gone`: "), "{found:?}");
    assert_eq!(diagnostics(&branches("folder: x"), GraphProfile::Lenient), Vec::<String>::new());
}

#[test]
fn graph_asks_claude_only_if_an_agent_does() {
    let deterministic = acting("      - { type: set_state, field: known, value: 2 }");
    let files = |inner: &str, more: &[(&str, &str)]| -> BTreeMap<String, String> {
        let files = [("inner.yaml", inner), ("work.sh", "#!/bin/sh\necho '<result>x</result>'")];
        let files = files.iter().chain(more);
        files.map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    };
    let asks = |text: &str, source: &BTreeMap<String, String>| {
        let vocabulary = GraphVocabulary::new();
        let reading = read("g.yaml", None, text, &vocabulary, source, GraphProfile::Lenient);
        let graph = reading.graph.unwrap_or_else(|| panic!("{:?}", reading.diagnostics));
        asks_claude(&graph, source, &vocabulary)
    };
    let run = |state: &str| acting(&format!("      - {{ type: run_state, state: {state} }}"));
    let plain = files(&deterministic, &[("P.md", "Do it.")]);
    assert!(!asks(&deterministic, &plain));
    assert!(!asks(&run("inner.yaml"), &plain));
    assert!(!asks(&run("work.sh"), &plain));
    assert!(asks(&run("P.md"), &plain));
    assert!(asks(&run("'${known}'"), &plain), "what is not known may ask");
    let deep = files(&run("P.md"), &[("P.md", "Do it.")]);
    assert!(asks(&run("inner.yaml"), &deep));
    let circle = files(&run("inner.yaml"), &[]);
    assert!(!asks(&run("inner.yaml"), &circle));
    let branch = |branch: &str| {
        graph(&format!(
            "  a:\n    type: parallel\n    branches: [{{ name: one, {branch} }}]\n    on_success: done\n    on_failure: failed"
        ))
    };
    assert!(!asks(&branch("state: work.sh"), &plain));
    assert!(asks(&branch("prompt: Do it"), &plain));
}
