//! One bad graph for each mistake in its structure: the place and the words.

use super::super::profile::GraphProfile;
use super::super::read::read;
use super::super::vocabulary::GraphVocabulary;
use super::{acting, asking, assert_diagnostic, diagnostics, graph, source};

/// Asserts an error under the strict rules, and a warning under the others.
fn assert_lenient(text: &str, place: &str, rest: &str) {
    assert_eq!(
        diagnostics(text, GraphProfile::Lenient),
        [format!("{place}: warning: {rest}")],
        "{text}"
    );
    assert_eq!(diagnostics(text, GraphProfile::Seed), [format!("{place}: {rest}")], "{text}");
}

const LEAVE: &str = "  a: { type: action, actions: [], on_success: done, on_failure: failed }";

#[test]
fn invalid_yaml_is_error_with_reason() {
    let table = [
        ("a: [1", "WF001 this is not YAML: "),
        ("a: b: c", "WF001 this is not YAML: "),
        ("a: *b", "WF001 this is not YAML: "),
        ("a: &x [*x]", "1:8: WF001 this alias contains itself; write it out"),
        ("a: 1\n---\nb: 1", "3:1: WF001 a second document begins here; a graph is one document"),
        ("a: !thing 1", "WF001 the tag `!thing` has no meaning here; leave it out"),
        ("? [a]\n: b", "WF001 expected a key, a plain text"),
    ];
    for (text, expected) in table {
        let diagnostics = diagnostics(text, GraphProfile::Lenient);
        assert!(diagnostics.iter().any(|line| line.contains(expected)), "{text}: {diagnostics:?}");
    }
}

#[test]
fn workflow_in_one_file_has_hint_to_import() {
    assert_eq!(
        diagnostics("states:\n  START: x\n", GraphProfile::Lenient),
        [
            "1:1: WF102 `states` belongs to a workflow in one file; create a folder from it with `raymond import FILE`, and check that"
        ]
    );
}

#[test]
fn all_duplicate_keys_are_reported() {
    let text = graph(
        "  a: { type: action, type: action, actions: [], on_success: done, on_failure: failed }\n  a: {}",
    );
    assert_eq!(
        diagnostics(&text, GraphProfile::Lenient),
        [
            "9:22: WF002 the key `type` is already on line 9",
            "10:3: WF002 the key `a` is already on line 9"
        ]
    );
}

#[test]
fn missing_graph_keys_are_reported() {
    let needs = |key: &str| format!("1:1: WF101 a graph needs `{key}`");
    let ought = |key: &str| format!("1:1: warning: WF101 a graph should have `{key}`; add it");
    let mut expected: Vec<String> = ["endings", "name", "nodes", "start_node"].map(needs).into();
    expected.extend(["description", "entry_preconditions", "initial_state", "version"].map(ought));
    let mut found = diagnostics("model: opus", GraphProfile::Lenient);
    found.sort_by_key(|diagnostics| diagnostics.contains("warning"));
    assert_eq!(found, expected);
    assert!(
        diagnostics("model: opus", GraphProfile::Seed)
            .iter()
            .all(|diagnostics| !diagnostics.contains("warning"))
    );
    assert_eq!(
        diagnostics("", GraphProfile::Lenient),
        ["1:1: WF102 a graph is a mapping such as `key: value`, not nothing"]
    );
}

#[test]
fn unknown_key_or_wrong_type_is_error_with_hint() {
    let with = |line: &str| format!("{line}\n{}", graph(LEAVE));
    assert_diagnostic(
        &with("modle: opus"),
        "1:1: WF102 unknown key `modle` in a graph; did you mean `model`?",
    );
    assert_diagnostic(
        &with("model: gpt"),
        "1:8: warning: WF104 `gpt` is not a known model alias; raymond passes it to Claude Code unchanged",
    );
    assert_diagnostic(
        &with("max_steps: -1"),
        "1:12: WF102 `max_steps` is a whole number greater than 0",
    );
    let table = [
        (
            "version: \"1\"",
            "version: 1.5",
            "2:10: WF102 `version` is a text, not a number; put quotes around it",
        ),
        (
            "flags: { ready: false }",
            "flags: 7",
            "5:35: WF102 `flags` of `initial_state` is a mapping",
        ),
        (
            "actions: []",
            "actions: x",
            "9:31: WF102 `actions` is a list: put `- ` before each, not a text",
        ),
        (
            "on_success: done",
            "on_success:",
            "9:45: WF102 `on_success` is a text, but nothing is here",
        ),
        (
            "on_success: done",
            "on_succes: done",
            "9:35: WF102 unknown key `on_succes` in the node `a`; did you mean `on_success`?",
        ),
        (
            "type: success",
            "type: won",
            "11:17: WF102 an ending is a `success` or an `error`, not `won`",
        ),
        ("type: success,", "", "11:3: WF101 the ending `done` needs `type`"),
    ];
    for (from, to, expected) in table {
        let diagnostics = diagnostics(&graph(LEAVE).replace(from, to), GraphProfile::Lenient);
        assert!(
            diagnostics.iter().any(|diagnostics| diagnostics == expected),
            "{expected}: {diagnostics:#?}"
        );
    }
}

#[test]
fn name_that_differs_from_directory_is_reported() {
    let named = |directory, profile| {
        let text = graph(LEAVE);
        let read =
            read("g.yaml", Some(directory), &text, &GraphVocabulary::new(), &source(), profile);
        read.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mismatch =
        "WF103 Workflow name mismatch: the name is `g`, the directory is `h`; give both the same";
    assert_eq!(named("h", GraphProfile::Lenient), [format!("g.yaml:1:7: warning: {mismatch}")]);
    assert_eq!(named("h", GraphProfile::Seed), [format!("g.yaml:1:7: {mismatch}")]);
    assert!(named("plugin-g", GraphProfile::Lenient).is_empty());
    assert_eq!(named("plugin-g", GraphProfile::Seed).len(), 1);
    assert!(named("g", GraphProfile::Seed).is_empty());
    assert!(named("hiivmind-corpus-g", GraphProfile::Seed).is_empty());
    assert_eq!(named("hiivmind-corpus-h", GraphProfile::Seed).len(), 1);
}

#[test]
fn missing_transition_target_is_error_with_suggestion() {
    assert_diagnostic(
        &graph(LEAVE).replace("start_node: a", "start_node: ab"),
        "6:13: WF201 Start node not found: no node is called `ab`; did you mean `a`?",
    );
    assert_diagnostic(
        &graph(LEAVE).replace("on_failure: failed", "on_failure: faild"),
        "9:65: WF202 Invalid transition target: no node or ending is called `faild`; did you mean `failed`?",
    );
    assert_diagnostic(
        &asking("      type: config_exists").replace("true: done", "true: nowhere"),
        "13:23: WF203 Invalid branch target: no node or ending is called `nowhere`; add it or name another",
    );
    assert_diagnostic(
        &graph("  a: { type: reference, doc: lib/git.md, next_node: zzz }"),
        "9:53: WF204 Invalid next_node target: no node or ending is called `zzz`; add it or name another",
    );
    let yes = asking("      type: config_exists").replace("true: done", "yes: done");
    assert_eq!(
        diagnostics(&yes, GraphProfile::Lenient),
        [
            "13:5: WF101 `branches` needs `true`",
            "13:17: WF102 unknown key `yes` in `branches`; it has `true` and `false`"
        ]
    );
}

const ASK: &str = "  a:
    type: user_prompt
    prompt:
      question: Which?
      header: Kind
      options:
        - { id: git, label: Git, description: d }
        - { id: web, label: Web, description: d }
    on_response:
      git: { next_node: done }
      web: { next_node: failed }";

#[test]
fn incomplete_or_inconsistent_question_is_reported() {
    let ask = |from: &str, to: &str| graph(&ASK.replace(from, to));
    assert_diagnostic(
        &ask("      web: { next_node: failed }", ""),
        "16:17: WF205 Missing response handler: `on_response` has no `web`; say where it leads",
    );
    assert_diagnostic(
        &ask("      web: {", "      wep: { next_node: done }\n      web: {"),
        "19:7: WF206 orphan handler: no option has the id `wep`; did you mean `web`?",
    );
    assert_lenient(
        &ask("      web: {", "      other: { next_node: done }\n      web: {"),
        "19:7",
        "WF206 `other` is not an option: it accepts any text that a person types",
    );
    assert_lenient(
        &ask("        - { id: web, label: Web, description: d }", "")
            .replace("      web: { next_node: failed }", ""),
        "14:7",
        "WF207 a question has 2 to 4 options, this one has 1",
    );
    assert_lenient(
        &ask("header: Kind", "header: \"A long header\""),
        "13:15",
        "WF208 a header has at most 12 characters, this one has 13",
    );
    assert_diagnostic(
        &ask("id: web", "id: git").replace("      web: { next_node: failed }", ""),
        "16:17: WF209 the id `git` is that of the option in line 15 already; give it another",
    );
    assert_lenient(
        &ask("label: Web, description: d", "label: Web"),
        "16:11",
        "WF101 an option should have `description`; add it",
    );
}

#[test]
fn unknown_type_unreachable_or_ambiguous_node_is_reported() {
    let two = |more: &str| graph(&format!("{LEAVE}\n{more}"));
    assert_diagnostic(
        &graph("  a: { type: acton }"),
        "9:14: WF210 unknown node type `acton`; did you mean `action`? There are action, conditional, user_prompt, validation_gate, parallel, reference",
    );
    assert_diagnostic(
        &two(&LEAVE.replace("a:", "b:")),
        "10:3: warning: WF211 the node `b` cannot be reached; remove it, or add a path to it",
    );
    assert_diagnostic(
        &two(&LEAVE.replace("a:", "done:")),
        "12:3: WF212 `done` is a node in line 10 already; rename one of them",
    );
    let loops = LEAVE.replace("on_success: done", "on_success: a");
    assert!(diagnostics(&graph(&loops), GraphProfile::Seed).is_empty());
}

#[test]
fn all_errors_are_reported_in_one_pass() {
    let nodes = "  a:
    type: action
    actions:
      - { type: set_flag, flag: f }
      - { type: read_confg, store_as: c }
      - { type: all_of }
    on_success: b
    on_failure: nowhere
    colour: red
  b:
    type: conditional
    condition: { type: flag_sat, flag: f }
    branches: { true: done }
  c: { type: actoin }";
    let found =
        diagnostics(&graph(nodes).replace("type: success", "type: won"), GraphProfile::Lenient);
    let codes: Vec<_> =
        found.iter().map(|diagnostics| diagnostics.split(' ').nth(1).expect("a code")).collect();
    let expected =
        ["WF303", "WF302", "WF302", "WF202", "WF102", "WF301", "WF101", "WF210", "WF102"];
    assert_eq!(codes, expected, "{found:#?}");
}

#[test]
fn invalid_or_unused_turn_options_of_node_are_reported() {
    let asking = |key: &str| {
        let spawn = "{ type: spawn_agent, subagent_type: x, prompt: p, store_as: computed.a }";
        graph(&format!(
            "  a:\n    {key}\n    type: action\n    actions: [{spawn}]\n    on_success: done\n    on_failure: failed\n"
        ))
    };
    let table = [
        ("efort: low", "10:5: WF102 unknown key `efort` in the node `a`; did you mean `effort`?"),
        ("on_denied: stop", "10:16: WF105 unknown value `stop` of `on_denied`; use continue, fail"),
    ];
    for (key, expected) in table {
        assert_diagnostic(&asking(key), expected);
    }
    let idle = LEAVE.replace("actions: []", "actions: [], effort: low");
    assert_diagnostic(
        &graph(&idle),
        "9:3: warning: WF107 the node `a` does not run Claude Code, so its model and options have no effect; remove them",
    );
}

#[test]
fn invalid_output_schema_is_error_with_location() {
    let asking = |output: &str| {
        graph(&format!(
            "  a:\n    output: {output}\n    type: reference\n    doc: lib/git.md\n    next_node: done\n"
        ))
    };
    let table = [
        ("gone.json", "10:13: WF106 gone.json: there is no such file in the workflow"),
        (
            "{ type: object, propertes: {} }",
            "10:13: WF106 `propertes` is not a schema keyword; did you mean `properties`?",
        ),
        (
            "[a]",
            "10:13: WF106 `output` is a JSON schema: a file such as verdict.schema.json, or a mapping with `type: object`, not a list",
        ),
    ];
    for (output, expected) in table {
        assert_diagnostic(&asking(output), expected);
    }
}

#[test]
fn loop_without_ending_is_warning_that_names_its_nodes() {
    let node = |name: &str, next: &str, failure: &str| {
        format!(
            "  {name}: {{ type: action, actions: [], on_success: {next}, on_failure: {failure} }}\n"
        )
    };
    let text = graph(&[node("a", "b", "done"), node("b", "c", "c"), node("c", "b", "c")].concat());
    assert_diagnostic(
        &text,
        "10:3: warning: WF213 no path leads from `b`, `c` to an ending, so the graph never ends there; add a path out of the loop",
    );
    let text =
        graph(&[node("a", "b", "done"), node("b", "c", "c"), node("c", "b", "failed")].concat());
    assert!(diagnostics(&text, GraphProfile::Lenient).is_empty());
}

#[test]
fn written_path_that_leads_out_of_workspace_is_error() {
    let table = [
        ("../secret", true),
        ("a/../../b", true),
        ("../${known}", true),
        ("a/../b", false),
        ("/abs/../x", false),
        ("${known}/../..", false),
        ("..a/b", false),
    ];
    for (path, leads_out) in table {
        let text = acting(&format!("      - {{ type: delete_file, path: '{path}' }}"));
        let found = diagnostics(&text, GraphProfile::Lenient);
        let expected =
            format!("WF304 `path` of `delete_file` leads out of the workspace: `{path}`");
        assert_eq!(
            found.iter().any(|line| line.ends_with(&expected)),
            leads_out,
            "{path}: {found:?}"
        );
    }
    let text = asking("      type: file_exists\n      path: ../x");
    assert_diagnostic(
        &text,
        "13:13: WF304 `path` of `file_exists` leads out of the workspace: `../x`",
    );
}
