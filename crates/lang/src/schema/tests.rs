//! Tests that the schemas know each key that the readers know, and that wrong samples fail.

use jsonschema::Validator;
use serde_json::{Value, json};

use super::*;
use crate::graph::keys::{self, NODE_TYPES};
use crate::graph::vocabulary::TypeRole;
use crate::manifest::STATE_KEYS;
use crate::turn_options;
use crate::yaml::tree::{self, YamlFileKind};

fn schema(of: FileSchema) -> Value {
    of.schema(&GraphVocabulary::new())
}

fn validator(of: FileSchema) -> Validator {
    jsonschema::validator_for(&schema(of)).expect("it is a schema")
}

fn json_of(yaml: &str) -> Value {
    tree::parse(YamlFileKind::GRAPH, yaml).0.expect(yaml).json()
}

/// Returns the keys of a mapping's schema, each of which has a description.
fn keys_of(mapping: &Value) -> Vec<&str> {
    let properties = mapping["properties"].as_object().expect("a mapping");
    for (key, shape) in properties {
        assert_ne!(
            shape["description"].as_str().unwrap_or_default(),
            "",
            "{key} has no description"
        );
    }
    properties.keys().map(String::as_str).collect()
}

#[test]
fn frontmatter_and_manifest_schemas_have_every_parsed_key() {
    let files = [
        (FileSchema::Frontmatter, RawFrontmatter::KEYS, ""),
        (FileSchema::Manifest, RawManifest::KEYS, "output"),
    ];
    for (file, names, refused) in files {
        let schema = schema(file);
        let known = keys_of(&schema);
        let names = names.iter().map(|key| key.name).filter(|key| *key != refused);
        for key in names.chain(turn_options::KEYS) {
            assert!(known.contains(&key), "{key}");
        }
        assert!(!known.contains(&"output") || refused != "output");
        assert_eq!(schema["additionalProperties"], false);
    }
}

#[test]
fn state_keys_are_those_that_a_manifest_lacks() {
    let is_of_manifest = |name| RawManifest::KEYS.iter().any(|key| key.name == name);
    let mut only: Vec<&str> = RawFrontmatter::KEYS.iter().map(|key| key.name).collect();
    only.retain(|name| !is_of_manifest(*name));
    only.sort_unstable();
    assert_eq!(only, STATE_KEYS);
}

#[test]
fn graph_schema_has_every_parsed_key_and_type() {
    let schema = schema(FileSchema::Graph);
    for key in keys::GRAPH {
        assert!(keys_of(&schema).contains(&key.name), "{}", key.name);
    }
    let vocabulary = GraphVocabulary::new();
    for (role, name) in
        [(TypeRole::Precondition, "precondition"), (TypeRole::Consequence, "consequence")]
    {
        let cases = schema["definitions"][name]["allOf"].as_array().expect("cases");
        assert_eq!(cases.len(), vocabulary.names(role).len());
        for (case, kind) in cases.iter().zip(vocabulary.names(role)) {
            assert_eq!(case["if"]["properties"]["type"]["const"], kind);
            let known = case["then"]["properties"].as_object().expect("parameters");
            for parameter in vocabulary.parameters(role, kind).expect("known") {
                assert!(known.contains_key(parameter.name), "{kind}: {}", parameter.name);
                let required = case["then"]["required"].as_array().expect("a list");
                assert_eq!(required.contains(&json!(parameter.name)), parameter.required);
            }
        }
    }
    let nodes = schema["definitions"]["node"]["allOf"].as_array().expect("cases");
    for (case, node) in nodes.iter().zip(NODE_TYPES) {
        for key in node.keys {
            assert!(keys_of(&case["then"]).contains(&key.name), "{}: {}", node.name, key.name);
        }
    }
}

#[test]
fn valid_samples_pass_schema_validation() {
    let table = [
        (
            FileSchema::Frontmatter,
            "allowed_transitions:\n  - { tag: goto, target: A.md, count: 3 }\n  - { tag: result }\n  - { tag: ask, next: A.md }\n  - { tag: call, target: A.md, return: B.md, when: { a: 1 } }\noutput: v.json\nmodel: haiku\nbudget: $2.50\nsupervision: { restart: transient, max_restarts: 3/10m, backoff: { min: 1s, factor: 2, jitter: '0.2' } }\njoin: 7\ntimeout: 2h\non_timeout: LATE.md\nrest: stop\nforks: many\nmax_fan_out: 20\nstagger: 1500ms\nworktree: true\nsnapshots: false\neffort: xhigh\ntools: []\nallowed_tools: Read\nmcp_config: [a.json, { mcpServers: {} }]\nenv: [A, { B: 1, C: }]\nsettings: { model: x }\nmax_turns: 3\nstartup: lean\n",
        ),
        (FileSchema::Frontmatter, "evaluator: { pattern: x, else: { tag: result } }\nmodel:\n"),
        (FileSchema::Frontmatter, "evaluator: { prompt: CHECK.md, model: haiku }\njoin: all\n"),
        (
            FileSchema::Manifest,
            "name: x\nentry: A.md\nbudget: 2\nmax_procs: auto\non_limit: pause\non_budget: end\npermission_mode: plan\nclaude_args: [--effort, low]\nplugins:\n  - ./a b\n  - { command: [./a, b], required: true, deadline: 5s }\n",
        ),
        (FileSchema::Manifest, "max_procs: 4\nsupervision:\nplugins: []\n"),
        (
            FileSchema::Replies,
            "A.md:\n  - text\n  - { reply: x, cost: 0.1, delay: 2s, repeat: true }\n",
        ),
    ];
    for (file, yaml) in table {
        let json = json_of(yaml);
        let validator = validator(file);
        let errors: Vec<String> = validator.iter_errors(&json).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{yaml}: {errors:?}");
    }
}

#[test]
fn invalid_samples_fail_schema_validation() {
    let graph = |node: &str| {
        format!(
            "name: g\nstart_node: a\nnodes:\n  a: {node}\nendings:\n  z: {{ type: success, message: m }}\n"
        )
    };
    let table = [
        (FileSchema::Frontmatter, "modle: opus\n".to_owned()),
        (FileSchema::Frontmatter, "model: a b\n".to_owned()),
        (FileSchema::Frontmatter, "effort: lots\n".to_owned()),
        (FileSchema::Frontmatter, "worktree: yes\n".to_owned()),
        (FileSchema::Frontmatter, "rest: kill\n".to_owned()),
        (FileSchema::Frontmatter, "supervision: { restrt: x }\n".to_owned()),
        (FileSchema::Frontmatter, "supervision: { timeout: soon }\n".to_owned()),
        (FileSchema::Frontmatter, "allowed_transitions: [{ target: A.md }]\n".to_owned()),
        (FileSchema::Frontmatter, "allowed_transitions: [{ tag: goto }]\n".to_owned()),
        (
            FileSchema::Frontmatter,
            "allowed_transitions: [{ tag: jump, target: A.md }]\n".to_owned(),
        ),
        (
            FileSchema::Frontmatter,
            "allowed_transitions: [{ tag: result, target: A.md }]\n".to_owned(),
        ),
        (FileSchema::Frontmatter, "evaluator: { pattern: x }\n".to_owned()),
        (
            FileSchema::Frontmatter,
            "evaluator: { prompt: A.md, then: { tag: result } }\n".to_owned(),
        ),
        (FileSchema::Frontmatter, "env: { RAYMOND_X: 1 }\n".to_owned()),
        (FileSchema::Manifest, "output: a.json\n".to_owned()),
        (FileSchema::Manifest, "max_procs: 0\n".to_owned()),
        (FileSchema::Manifest, "budget: -1\n".to_owned()),
        (FileSchema::Manifest, "permission_mode: bypassPermissions\n".to_owned()),
        (FileSchema::Manifest, "plugins: [{ name: x }]\n".to_owned()),
        (FileSchema::Manifest, "allowed_transitions: []\n".to_owned()),
        (FileSchema::Replies, "A.md: true\n".to_owned()),
        (FileSchema::Replies, "A.md: [5]\n".to_owned()),
        (FileSchema::Replies, "A.md: [{ reply: x, costs: 1 }]\n".to_owned()),
        (FileSchema::Replies, "A.md: [{ reply: x, cost: -1 }]\n".to_owned()),
        (FileSchema::Graph, "name: g\n".to_owned()),
        (FileSchema::Graph, graph("{ type: acton }")),
        (FileSchema::Graph, graph("{ type: action, actions: [], on_success: z }")),
        (
            FileSchema::Graph,
            graph("{ type: action, actions: [{ type: set_flg }], on_success: z, on_failure: z }"),
        ),
        (
            FileSchema::Graph,
            graph(
                "{ type: action, actions: [{ type: read_file, path: a }], on_success: z, on_failure: z }",
            ),
        ),
        (
            FileSchema::Graph,
            graph(
                "{ type: conditional, condition: { type: flag_set, flag: f, x: 1 }, branches: { true: z, false: z } }",
            ),
        ),
        (
            FileSchema::Graph,
            graph(
                "{ type: conditional, condition: { type: flag_set, flag: f }, branches: { true: z } }",
            ),
        ),
    ];
    for (file, yaml) in table {
        assert!(!validator(file).is_valid(&json_of(&yaml)), "{yaml}");
    }
    let sound = graph(
        "{ type: conditional, condition: { type: flag_set, flag: f }, branches: { true: z, on_false: z } }",
    );
    assert!(validator(FileSchema::Graph).is_valid(&json_of(&sound)));
}
