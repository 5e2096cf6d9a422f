//! One bad graph for each mistake: the place and the words.

use super::super::read::{Profile, read};
use super::super::vocabulary::Vocabulary;
use super::{acting, asking, graph, said, source};

/// The graph has this one mistake.
fn assert_one(text: &str, expected: &str) {
    assert_eq!(said(text, Profile::Lenient), [expected], "{text}");
}

/// The strict rules refuse what the others remark.
fn assert_lenient(text: &str, place: &str, rest: &str) {
    assert_eq!(said(text, Profile::Lenient), [format!("{place}: warning: {rest}")], "{text}");
    assert_eq!(said(text, Profile::Seed), [format!("{place}: {rest}")], "{text}");
}

const LEAVE: &str = "  a: { type: action, actions: [], on_success: done, on_failure: failed }";

#[test]
fn what_is_no_yaml() {
    let table = [
        ("a: [1", "WF001 this is not YAML: "),
        ("a: b: c", "WF001 this is not YAML: "),
        ("a: *b", "WF001 this is not YAML: "),
        ("a: &x [*x]", "1:8: WF001 this alias stands in what it stands for; write it out"),
        ("a: 1\n---\nb: 1", "3:1: WF001 a second document begins here; a graph is one document"),
        ("a: !thing 1", "WF001 the tag `!thing` means nothing here; leave it out"),
        ("? [a]\n: b", "WF001 a key has to be a text that is written out"),
    ];
    for (text, expected) in table {
        let said = said(text, Profile::Lenient);
        assert!(said[0].contains(expected), "{text}: {said:?}");
    }
}

#[test]
fn all_keys_that_stand_twice_are_found() {
    let text = graph(
        "  a: { type: action, type: action, actions: [], on_success: done, on_failure: failed }\n  a: {}",
    );
    assert_eq!(
        said(&text, Profile::Lenient),
        [
            "9:22: WF002 the key `type` stands in line 9 already",
            "10:3: WF002 the key `a` stands in line 9 already"
        ]
    );
}

#[test]
fn what_a_graph_has_to_have() {
    let needs = |key: &str| format!("1:1: WF101 a graph needs `{key}`");
    let ought = |key: &str| format!("1:1: warning: WF101 a graph should have `{key}`; add it");
    let mut expected: Vec<String> = ["endings", "name", "nodes", "start_node"].map(needs).into();
    expected.extend(["description", "entry_preconditions", "initial_state", "version"].map(ought));
    let mut found = said("model: opus", Profile::Lenient);
    found.sort_by_key(|said| said.contains("warning"));
    assert_eq!(found, expected);
    assert!(said("model: opus", Profile::Seed).iter().all(|said| !said.contains("warning")));
    assert_eq!(
        said("", Profile::Lenient),
        ["1:1: WF102 a graph is a mapping such as `key: value`, not nothing"]
    );
}

#[test]
fn what_is_of_the_wrong_kind_or_unknown() {
    let with = |line: &str| format!("{line}\n{}", graph(LEAVE));
    assert_one(
        &with("modle: opus"),
        "1:1: WF102 unknown key `modle` in a graph; did you mean `model`?",
    );
    assert_one(
        &with("model: gpt"),
        "1:8: WF102 unknown model `gpt`; use one of opus, sonnet, haiku",
    );
    assert_one(&with("max_steps: -1"), "1:12: WF102 `max_steps` is a whole number greater than 0");
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
            "9:45: WF102 `on_success` is a text, and nothing stands here",
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
        let said = said(&graph(LEAVE).replace(from, to), Profile::Lenient);
        assert!(said.iter().any(|said| said == expected), "{expected}: {said:#?}");
    }
}

#[test]
fn the_name_is_that_of_the_directory() {
    let named = |directory, profile| {
        let text = graph(LEAVE);
        let read = read("g.yaml", Some(directory), &text, &Vocabulary::new(), &source(), profile);
        read.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mismatch =
        "WF103 Workflow name mismatch: the name is `g`, the directory is `h`; give both the same";
    assert_eq!(named("h", Profile::Lenient), [format!("g.yaml:1:7: warning: {mismatch}")]);
    assert_eq!(named("h", Profile::Seed), [format!("g.yaml:1:7: {mismatch}")]);
    assert!(named("plugin-g", Profile::Lenient).is_empty());
    assert_eq!(named("plugin-g", Profile::Seed).len(), 1);
    assert!(named("g", Profile::Seed).is_empty());
}

#[test]
fn every_target_is_there() {
    assert_one(
        &graph(LEAVE).replace("start_node: a", "start_node: ab"),
        "6:13: WF201 Start node not found: no node is called `ab`; did you mean `a`?",
    );
    assert_one(
        &graph(LEAVE).replace("on_failure: failed", "on_failure: faild"),
        "9:65: WF202 Invalid transition target: no node or ending is called `faild`; did you mean `failed`?",
    );
    assert_one(
        &asking("      type: config_exists").replace("true: done", "true: nowhere"),
        "13:23: WF203 Invalid branch target: no node or ending is called `nowhere`; add it or name another",
    );
    assert_one(
        &graph("  a: { type: reference, doc: lib/git.md, next_node: zzz }"),
        "9:53: WF204 Invalid next_node target: no node or ending is called `zzz`; add it or name another",
    );
    let yes = asking("      type: config_exists").replace("true: done", "yes: done");
    assert_eq!(
        said(&yes, Profile::Lenient),
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
fn what_a_question_has_to_have() {
    let ask = |from: &str, to: &str| graph(&ASK.replace(from, to));
    assert_one(
        &ask("      web: { next_node: failed }", ""),
        "16:17: WF205 Missing response handler: `on_response` has no `web`; say where it leads",
    );
    assert_one(
        &ask("      web: {", "      wep: { next_node: done }\n      web: {"),
        "19:7: WF206 orphan handler: no option has the id `wep`; did you mean `web`?",
    );
    assert_lenient(
        &ask("      web: {", "      other: { next_node: done }\n      web: {"),
        "19:7",
        "WF206 `other` is no option: it takes any text of a person's own",
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
    assert_one(
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
fn what_nodes_are_called_and_reached_by() {
    let two = |more: &str| graph(&format!("{LEAVE}\n{more}"));
    assert_one(
        &graph("  a: { type: acton }"),
        "9:14: WF210 unknown node type `acton`; did you mean `action`?",
    );
    assert_one(
        &two(&LEAVE.replace("a:", "b:")),
        "10:3: warning: WF211 no way leads to the node `b`; remove it or lead to it",
    );
    assert_one(
        &two(&LEAVE.replace("a:", "done:")),
        "12:3: WF212 `done` is a node in line 10 already; rename one of them",
    );
    let loops = LEAVE.replace("on_success: done", "on_success: a");
    assert!(said(&graph(&loops), Profile::Seed).is_empty());
}

#[test]
fn types_and_their_parameters() {
    assert_one(
        &asking("      type: file_exist\n      path: x"),
        "12:13: WF301 Unknown precondition type: `file_exist`; did you mean `file_exists`?",
    );
    assert_one(
        &acting("      - type: set_flagg"),
        "12:15: WF302 Unknown consequence type: `set_flagg`; did you mean `set_flag`?",
    );
    let table = [
        ("type: set_flag, flag: f", "12:17: WF303 `set_flag` needs `value`"),
        (
            "type: set_flag, flag: f, value: maybe",
            "12:43: WF303 `value` of `set_flag` takes `true`, `false` or a `${…}`, not a text",
        ),
        (
            "type: read_file, path: '', store_as: x",
            "12:34: WF303 `path` of `read_file` takes a text, not an empty text",
        ),
        (
            "type: read_config, store: x",
            "12:30: WF303 `read_config` has no parameter `store`; did you mean `store_as`?",
        ),
        (
            "type: run_command, command: x, interpreter: perl",
            "12:55: WF303 `interpreter` of `run_command` cannot be `perl`; use one of auto, bash, sh",
        ),
        (
            "type: mutate_state, operation: seet, field: x",
            "12:42: WF303 `operation` of `mutate_state` cannot be `seet`; use one of set, append, clear, merge; did you mean `set`?",
        ),
        (
            "type: compute_hash, from: 'a ${b}', store_as: x",
            "12:37: WF303 `from` of `compute_hash` is the path of one value",
        ),
    ];
    for (action, expected) in table {
        let said = said(&acting(&format!("      - {{ {action} }}")), Profile::Lenient);
        assert!(said.iter().any(|said| said == expected), "{expected}: {said:#?}");
    }
}

#[test]
fn the_later_checks_know_what_they_can_ask() {
    let table = [
        (
            "type: state_check, field: x, operator: equals",
            "12:15: WF303 `state_check` needs `value` to see what it equals",
        ),
        (
            "type: state_check, field: x, operator: nul",
            "12:48: WF303 `operator` of `state_check` cannot be `nul`; use one of equals, not_equals, null, is_null, not_null, true, false, not_true; did you mean `null`?",
        ),
        (
            "type: path_check, path: x, check: contains_text",
            "12:43: WF303 `check` of `path_check` cannot be `contains_text`; use one of exists, is_file, is_directory",
        ),
        (
            "type: tool_check, tool: x, capability: version_gte",
            "12:48: WF303 `capability` of `tool_check` cannot be `version_gte`; use one of available",
        ),
        (
            "type: all_of, conditions: x",
            "12:35: WF303 `conditions` of `all_of` takes a list of preconditions, not a text",
        ),
        (
            "type: config_exists, error_message: 1",
            "12:45: WF102 `error_message` is a text, not a number; put quotes around it",
        ),
    ];
    for (condition, expected) in table {
        assert_one(&asking(&format!("      {{ {condition} }}")), expected);
    }
}

#[test]
fn expressions_have_their_place_in_the_text() {
    let compute = |expression: &str| {
        acting(&format!(
            "      - {{ type: compute, store_as: computed.x, expression: {expression} }}"
        ))
    };
    let table = [
        (compute("'1 +* 2'"), "12:64: WF310 "),
        (compute("\"frobnicate(1)\""), "12:61: WF311 "),
        (compute("'# whatever is right'"), "12:61: WF312 "),
        (
            acting("      - { type: display_message, message: 'ab ${frobnicate(1)}' }"),
            "12:49: WF311 ",
        ),
        (
            acting(
                "      - type: display_message\n        message: |\n          ab ${frobnicate(1)}",
            ),
            "14:16: WF311 ",
        ),
    ];
    for (text, expected) in table {
        let said = said(&text, Profile::Lenient);
        assert!(said.len() == 1 && said[0].starts_with(expected), "{expected}: {said:#?}");
    }
}

#[test]
fn documents_and_sections_are_there() {
    let refer = |rest: &str| graph(&format!("  a: {{ type: reference, next_node: done, {rest} }}"));
    let missing = said(&refer("doc: lib/gti.md"), Profile::Lenient);
    assert_eq!(
        missing,
        [
            "9:47: WF320 the document is missing: lib/gti.md: there is no such file in the workflow; did you mean lib/git.md?"
        ]
    );
    let outside = said(&refer("doc: ../secret"), Profile::Lenient);
    assert!(outside[0].contains("WF320 the document is missing: ../secret: this leads out of"));
    assert_one(
        &refer("doc: '${x}'"),
        "9:47: WF320 a document is read before the graph begins, so its path is written out",
    );
    assert_one(
        &refer("doc: lib/git.md, section: Clone"),
        "9:68: WF321 the document `lib/git.md` has no section `Clone`; did you mean `Clone Repository`?",
    );
    assert_one(
        &acting("      - { type: invoke_pattern, path: lib/git.md, section: Zzz }"),
        "12:60: WF321 the document `lib/git.md` has no section `Zzz`; it has Git, Clone Repository, Fetch",
    );
}

#[test]
fn variables_have_to_come_from_somewhere() {
    let show = |message: &str| {
        acting(&format!(
            "      - {{ type: set_state, field: computed.config, value: 1 }}\n      - {{ type: display_message, message: '{message}' }}"
        ))
    };
    for known in
        ["known", "config", "computed.config.x", "flags.ready", "ready", "PWD", "current_node"]
    {
        assert!(said(&show(&format!("${{{known}}}")), Profile::Seed).is_empty(), "{known}");
    }
    let nothing = "nothing writes it; write it before, or put it into `initial_state`";
    assert_one(
        &show("so ${conifg}"),
        &format!("13:49: WF330 variable `conifg`: {nothing}; did you mean `config`?"),
    );
    assert_one(
        &show("${flags.redy}"),
        &format!("13:46: WF330 variable `flags.redy`: {nothing}; did you mean `ready`?"),
    );
    let merging = show("${computed.zzz}").replace(
        "      - { type: set_state",
        "      - { type: invoke_pattern, path: lib/git.md }\n      - { type: set_state",
    );
    assert_one(
        &merging,
        "14:46: warning: WF330 variable `computed.zzz`: nothing writes it by this name, but something may",
    );
    assert_one(
        &asking("      { type: evaluate_expression, expression: 'zzz == 1' }"),
        "12:49: warning: WF330 variable `zzz`: nothing writes it, so it is always null; put it into `initial_state`",
    );
}

#[test]
fn all_mistakes_are_found_at_once() {
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
    let found = said(&graph(nodes).replace("type: success", "type: won"), Profile::Lenient);
    let codes: Vec<_> = found.iter().map(|said| said.split(' ').nth(1).expect("a code")).collect();
    let expected = [
        "WF303", "WF302", "WF302", "WF202", "WF102", "WF301", "WF101", "warning:", "WF210", "WF102",
    ];
    assert_eq!(codes, expected, "{found:#?}");
}
