//! Tests that a YAML text means the same through every door: frontmatter, manifest, replies, schema, graph.

use serde_json::{Value, json};

use super::tree::{self, YamlFileKind};
use super::*;
use crate::output::OrderedJson;
use crate::prompt::frontmatter;
use crate::replies::ScriptedReplies;
use crate::{graph, manifest};

const KINDS: [YamlFileKind; 6] = [
    YamlFileKind::GRAPH,
    YamlFileKind::FRONTMATTER,
    YamlFileKind::MANIFEST,
    YamlFileKind::SCHEMA,
    YamlFileKind::ANSWERS,
    YamlFileKind::REPLIES,
];

/// Returns the first mistake that each door finds in a text, without the code that a graph's has.
fn first_mistakes(text: &str) -> [String; 5] {
    let sources = std::collections::BTreeMap::<String, String>::new();
    let vocabulary = graph::vocabulary::GraphVocabulary::new();
    let profile = graph::profile::GraphProfile::Lenient;
    let graph = graph::read::read("g", None, text, &vocabulary, &sources, profile);
    let of_yaml = |found: &&crate::diagnostic::Diagnostic| found.code.starts_with("WF00");
    let of_graph = graph.diagnostics.iter().find(of_yaml).map(|found| {
        let whole = found.to_string();
        whole.replacen(&format!(" {} ", found.code), " ", 1).replacen("g:", "", 1)
    });
    let schema: Result<OrderedJson, Error> = read(YamlFileKind::SCHEMA, text);
    let replies = ScriptedReplies::parse("r", text).expect_err("wrong").to_string();
    [
        frontmatter::parse(text).expect_err("wrong").to_string(),
        manifest::parse(text).expect_err("wrong").to_string(),
        replies.replacen("r:", "", 1),
        schema.expect_err("wrong").to_string(),
        of_graph.expect("a mistake in the YAML"),
    ]
}

#[test]
fn each_reader_reports_same_yaml_error_at_same_location() {
    let table = [
        ("a: 1\nb: 2\na: 3\n", "3:1: the key `a` is already on line 1"),
        ("a: { b: 1,\n  b: 2 }\n", "2:3: the key `b` is already on line 1"),
        ("a: !x 1\n", "1:7: the tag `!x` has no meaning here; leave it out"),
        ("a: !x [1]\n", "1:7: the tag `!x` has no meaning here; leave it out"),
        ("a: !!int one\n", "1:10: `one` is not what the tag `!!int` says"),
        ("a: *b\n", "1:4: this is not YAML: while parsing node, found unknown anchor"),
        ("a: &x [*x]\n", "1:8: this alias contains itself; write it out"),
        (
            "? [a]\n: 1\n",
            "1:3: expected a key, a plain text; put a text that begins with `{` or has `: ` in it in quotes",
        ),
    ];
    for (text, expected) in table {
        for (door, found) in first_mistakes(text).into_iter().enumerate() {
            assert_eq!(found, expected, "{text:?} through door {door}");
        }
    }
    for text in ["a: [1\n", "a: b: c\n", "a: 'b\n", "a: 1\n---\nb: 2\n"] {
        let [first, others @ ..] = first_mistakes(text);
        let place = |found: &str| found.split(": ").next().unwrap_or_default().to_owned();
        for other in others {
            assert_eq!(place(&other), place(&first), "{text:?}: {other}, {first}");
        }
    }
}

#[test]
fn scalar_has_same_value_in_every_file_kind() {
    let table = [
        ("yes", json!("yes")),
        ("No", json!("No")),
        ("on", json!("on")),
        ("y", json!("y")),
        ("True", json!(true)),
        ("'true'", json!("true")),
        ("~", Value::Null),
        ("", Value::Null),
        ("''", json!("")),
        ("017", json!(17)),
        ("0o17", json!(15)),
        ("1_000", json!("1_000")),
        ("0.50", json!(0.5)),
        (".5", json!(0.5)),
        ("!!str 5", json!("5")),
        ("! 5", json!("5")),
        ("!!int '5'", json!(5)),
        ("2024-01-02", json!("2024-01-02")),
        ("12:30:45", json!("12:30:45")),
        ("{ <<: { a: 1 }, b: 2 }", json!({"<<": {"a": 1}, "b": 2})),
        ("[&x { a: 1 }, *x]", json!([{"a": 1}, {"a": 1}])),
        ("|\n  a\n   b\n\n", json!("a\n b\n")),
        (">-\n  a\n  b\n\n  c\n", json!("a b\nc")),
        ("\"a\\tb\\u00e9\"", json!("a\tbé")),
        ("a\n  b", json!("a b")),
    ];
    for (written, expected) in table {
        let text = format!("k: {written}\n");
        let expected = json!({ "k": expected });
        for kind in KINDS {
            let (root, faults) = tree::parse(kind, &text);
            assert!(faults.is_empty(), "{text}: {faults:?}");
            let root = root.expect("a tree");
            assert_eq!(root.json(), expected, "{text}");
            let typed: OrderedJson = from_tree(&root).expect(&text);
            assert_eq!(serde_json::to_value(&typed).expect("JSON"), expected, "{text}");
        }
    }
}

#[test]
fn option_text_is_equal_in_frontmatter_and_manifest() {
    let table = [
        ("haiku", "haiku"),
        ("'haiku'", "haiku"),
        ("1.10", "1.10"),
        ("0x1F", "0x1F"),
        ("True", "True"),
        ("!!str 4", "4"),
    ];
    for (written, expected) in table {
        let text = format!("model: {written}\nappend_system_prompt: {written}\n");
        let head = frontmatter::parse(&text).expect("frontmatter");
        let manifest = manifest::parse(&text).expect("a manifest");
        assert_eq!(head.model, manifest.model, "{text}");
        assert_eq!(head.model.as_ref().map(ToString::to_string).as_deref(), Some(expected));
        assert_eq!(head.options, manifest.options, "{text}");
        assert_eq!(head.options.append_system_prompt.as_deref(), Some(expected));
    }
}

#[test]
fn wrong_value_type_is_error_that_names_expected_type() {
    let table = [
        ("supervision: 1\n", "1:14: a mapping is expected here, such as { key: value }"),
        (
            "supervision: { backoff: [] }\n",
            "1:25: a mapping is expected here, such as { key: value }",
        ),
        ("model: [a]\n", "1:8: expected text here"),
        ("model: { a: b }\n", "1:8: expected text here"),
    ];
    for (text, expected) in table {
        assert_eq!(frontmatter::parse(text).expect_err(text).to_string(), expected);
        assert_eq!(manifest::parse(text).expect_err(text).to_string(), expected);
    }
    let switch = frontmatter::parse("worktree: 'true'\n").expect_err("a text").to_string();
    assert_eq!(switch, "1:11: true or false is expected here");
    let number = ScriptedReplies::parse("r", "A.md: [5]\n").expect_err("a number").to_string();
    assert!(number.starts_with("r:1:8: a reply: a text, or a mapping"), "{number}");
}

#[test]
fn merge_key_is_treated_as_ordinary_key() {
    let text = "supervision:\n  <<: { restart: permanent }\n";
    let unknown = frontmatter::parse(text).expect_err("unknown").to_string();
    assert!(unknown.starts_with("2:3: unknown key `<<`"), "{unknown}");
    assert_eq!(manifest::parse(text).expect_err("unknown").to_string(), unknown);
}

#[test]
fn yaml_error_does_not_hide_other_errors() {
    let examined = manifest::examine("model: a b\nmodel: haiku\nentry: ''\n");
    let messages: Vec<String> = examined.errors.all().iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[0].starts_with("2:1: the key `model` is already on line 1"), "{messages:?}");
}

#[test]
fn file_over_size_limit_of_its_kind_is_error() {
    for kind in KINDS {
        let long = "#".repeat(kind.max_bytes + 1);
        let (root, faults) = tree::parse(kind, &long);
        assert!(root.is_none() && faults[0].message.contains("bytes long"), "{kind:?}");
    }
}
