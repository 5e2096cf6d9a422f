//! Hostile texts and random texts: all are read, none takes long.

use std::fmt::Write;

use proptest::prelude::*;

use super::super::profile::GraphProfile;
use super::{acting, asking, diagnostics, graph, reading};

fn first(text: &str) -> String {
    diagnostics(text, GraphProfile::Lenient).swap_remove(0)
}

#[test]
fn alias_expansion_is_limited() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let below = format!("*a{}, ", level - 1).repeat(10);
        let _ = writeln!(laughs, "a{level}: &a{level} [{below}]");
    }
    assert!(
        first(&laughs)
            .ends_with("WF001 the aliases up to here make the graph too large; write out less")
    );
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(500_000), "*a, ".repeat(100_000));
    assert!(first(&long).contains("WF001 the aliases up to here"));
    let keys = format!("a: &a {{ b: 1 }}\nc: {{ {} }}\n", "<<: *a, ".repeat(1000));
    assert!(first(&keys).contains("WF"));
}

#[test]
fn too_long_or_deeply_nested_yaml_is_error() {
    let diagnostics = first(&"a".repeat(1024 * 1024 + 1));
    assert_eq!(
        diagnostics,
        "1:1: WF001 this is 1048577 bytes long, a graph may have 1048576; divide it"
    );
    for (open, times) in
        [("[", 100), ("[", 500_000), ("{a: ", 100_000), ("- ", 100_000), ("? ", 100_000)]
    {
        assert!(first(&open.repeat(times)).contains("WF001"), "{open}");
    }
    let mut blocks = String::new();
    for level in 0..200 {
        let _ = writeln!(blocks, "{}a:", " ".repeat(level));
    }
    assert!(first(&blocks).contains("WF001"));
}

#[test]
fn condition_and_loop_nesting_is_limited() {
    let deep = |times: usize, open: &str, close: &str, inner: &str| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let all = |times| {
        asking(&format!(
            "      {}",
            deep(times, "{ type: all_of, conditions: [", "] }", "{ type: config_exists }")
        ))
    };
    assert!(reading(&all(16), GraphProfile::Seed).graph.is_some());
    assert!(first(&all(17)).ends_with("WF303 this is nested too deeply; 16 levels are allowed"));
    let each = |times| {
        acting(&format!(
            "      - {}",
            deep(times, "{ type: foreach, items: [], actions: [", "] }", "")
        ))
    };
    assert!(reading(&each(16), GraphProfile::Seed).graph.is_some());
    assert!(first(&each(17)).ends_with("WF303 this is nested too deeply; 16 levels are allowed"));
}

#[test]
fn errors_of_thousands_of_nodes_are_all_reported() {
    let nodes = |count: usize| {
        let node = |index| {
            format!(
                "  n{index}: {{ type: action, actions: [], on_success: m{index}, on_failure: failed }}\n"
            )
        };
        graph(&(0..count).map(node).collect::<String>())
    };
    let found = diagnostics(&nodes(5000), GraphProfile::Lenient);
    assert_eq!(found.iter().filter(|diagnostics| diagnostics.contains("WF202")).count(), 5000);
    assert!(
        first(&nodes(10_001))
            .contains("WF102 `nodes` has 10001 entries; it has to have 1 to 10000")
    );
    let long = graph(&format!("  {}: {{ type: actoin }}", "x".repeat(100_000)));
    assert!(
        diagnostics(&long, GraphProfile::Lenient).iter().all(|diagnostics| diagnostics.len() < 300)
    );
}

/// Generates pieces that graphs are made of.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("nodes:".to_owned()),
        Just("type: ".to_owned()),
        Just("action".to_owned()),
        Just("foreach".to_owned()),
        Just("user_prompt".to_owned()),
        Just("conditions: ".to_owned()),
        Just("on_response: ".to_owned()),
        Just("- ".to_owned()),
        Just("\n  ".to_owned()),
        Just("\n".to_owned()),
        Just("{ ".to_owned()),
        Just(" }".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("&a ".to_owned()),
        Just("*a ".to_owned()),
        Just("${computed.x}".to_owned()),
        Just("\"".to_owned()),
        Just(": ".to_owned()),
        "\\PC{0,3}",
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_parsed_without_panic(text in any::<String>()) {
        let _ = reading(&text, GraphProfile::Lenient);
    }

    #[test]
    fn mixed_fragments_give_program_or_diagnostics(text in pieces()) {
        let reading = reading(&text, GraphProfile::Seed);
        prop_assert_eq!(reading.graph.is_none(), !reading.diagnostics.is_empty());
    }

    #[test]
    fn edited_example_gives_located_diagnostics(at in 0..2000usize, piece in pieces()) {
        let mut text = include_str!("add-source.yaml").to_owned();
        let at = text.floor_char_boundary(at);
        text.insert_str(at, &piece);
        for found in reading(&text, GraphProfile::Seed).diagnostics {
            prop_assert!(found.line >= 1 && found.column >= 1 && !found.message.is_empty());
        }
    }
}
