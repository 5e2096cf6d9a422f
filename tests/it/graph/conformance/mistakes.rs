//! The diagnostics of the structure of a graph: each code with its place, and the strict profile.

use std::collections::BTreeMap;

use raymond::language::graph::profile::GraphProfile;
use raymond::language::graph::read::read;
use raymond::language::graph::vocabulary::GraphVocabulary;

/// A change of a good graph, and the beginning of what is then reported.
pub(super) struct MistakeRow {
    pub(super) name: &'static str,
    /// The part that is replaced.
    pub(super) of: &'static str,
    pub(super) by: &'static str,
    /// The beginnings of the findings, in order; all of them.
    pub(super) found: &'static [&'static str],
}

/// A good graph. Its lines are counted in the rows.
pub(super) const GOOD: &str = r#"name: good
version: "1.0.0"
description: a graph
entry_preconditions: []
initial_state: { known: 1, flags: { ready: false } }
start_node: first
nodes:
  first:
    type: action
    actions:
      - { type: set_flag, flag: ready, value: true }
      - { type: compute, expression: "known + 1", store_as: computed.more }
    on_success: second
    on_failure: failed
  second:
    type: conditional
    condition: { type: flag_set, flag: ready }
    branches: { true: third, false: failed }
  third:
    type: user_prompt
    prompt:
      question: Which?
      header: Which
      options:
        - { id: a, label: A, description: a }
        - { id: b, label: B, description: b }
    on_response:
      a: { next_node: fourth }
      b: { next_node: fourth }
  fourth:
    type: validation_gate
    validations:
      - { type: state_not_null, field: known, error_message: No }
    on_valid: fifth
    on_invalid: failed
  fifth:
    type: reference
    doc: lib/doc.md
    section: Part
    context: { more: "${computed.more}" }
    next_node: done
endings:
  done: { type: success, message: done }
  failed: { type: error, message: failed }
"#;

/// Returns the findings of a text, each as `LINE:COLUMN: CODE message`.
pub(super) fn findings(text: &str, profile: GraphProfile) -> Vec<String> {
    let documents: BTreeMap<String, String> =
        [("lib/doc.md".to_owned(), "# Doc\n\n## Part\n\nDo it.\n\n```\n## Code\n```\n".to_owned())]
            .into();
    let parsed = read("g.yaml", Some("good"), text, &GraphVocabulary::new(), &documents, profile);
    let said = parsed.diagnostics.iter().map(ToString::to_string);
    said.map(|said| said.strip_prefix("g.yaml:").unwrap_or(&said).to_owned()).collect()
}

/// Asserts what is found in each row.
#[track_caller]
pub(super) fn assert_found(rows: &[MistakeRow], profile: GraphProfile) {
    let mut wrong = Vec::new();
    for MistakeRow { name, of, by, found } in rows {
        assert_eq!(GOOD.matches(of).count(), 1, "{name}: {of}");
        let said = findings(&GOOD.replace(of, by), profile);
        let fits = said.len() == found.len()
            && said.iter().zip(*found).all(|(said, expected)| said.starts_with(expected));
        if !fits {
            wrong.push(format!("{name}: expected {found:#?}\n    found {said:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn row(
    name: &'static str,
    of: &'static str,
    by: &'static str,
    found: &'static [&'static str],
) -> MistakeRow {
    MistakeRow { name, of, by, found }
}

fn rows() -> Vec<MistakeRow> {
    vec![
        row("WF001 no YAML", "initial_state: {", "initial_state: [", &["5:"]),
        row(
            "WF002 a duplicate key",
            "start_node: first",
            "start_node: first\nname: twice",
            &["7:1: WF002 "],
        ),
        row("WF101 no name", "name: good\n", "", &["1:1: WF101 "]),
        row("WF101 no start_node", "start_node: first\n", "", &["1:1: WF101 "]),
        row("WF101 no on_success", "    on_success: second\n", "", &["8:3: WF101 "]),
        row(
            "WF101 no on_failure",
            "    on_success: second\n    on_failure: failed\n",
            "    on_success: second\n",
            &["8:3: WF101 "],
        ),
        row(
            "WF101 no condition",
            "    condition: { type: flag_set, flag: ready }\n",
            "",
            &["15:3: WF101 "],
        ),
        row(
            "WF101 no branch",
            "branches: { true: third, false: failed }",
            "branches: { true: third }",
            &["18:5: WF101 "],
        ),
        row("WF101 no question", "      question: Which?\n", "", &["21:5: WF101 "]),
        row(
            "WF101 no label",
            "{ id: a, label: A, description: a }",
            "{ id: a, description: a }",
            &["25:11: WF101 "],
        ),
        row(
            "WF101 no next_node of a response",
            "a: { next_node: fourth }",
            "a: {}",
            &["28:7: WF101 "],
        ),
        row(
            "WF101 no validations",
            "    validations:\n      - { type: state_not_null, field: known, error_message: No }\n",
            "",
            &["30:3: WF101 "],
        ),
        row("WF101 no doc", "    doc: lib/doc.md\n", "", &["36:3: WF101 "]),
        row(
            "WF101 no message of an ending",
            "{ type: success, message: done }",
            "{ type: success }",
            &["43:3: WF101 "],
        ),
        row(
            "WF101 no description is a warning",
            "description: a graph\n",
            "",
            &["1:1: warning: WF101 "],
        ),
        row(
            "WF101 no entry_preconditions is a warning",
            "entry_preconditions: []\n",
            "",
            &["1:1: warning: WF101 "],
        ),
        row(
            "WF102 a wrong type of a value",
            "actions:\n      - { type: set_flag, flag: ready, value: true }\n      - {",
            "actions:\n      a: {",
            &["11:7: WF102 "],
        ),
        row(
            "WF102 an unknown key",
            "start_node: first",
            "start_node: first\nstart: first",
            &["7:1: WF102 "],
        ),
        row(
            "WF102 an unknown key of a node",
            "    doc: lib/doc.md",
            "    doc: lib/doc.md\n    dco: x",
            &["39:5: WF102 "],
        ),
        row("WF102 another type of ending", "type: success,", "type: won,", &["43:17: WF102 "]),
        row(
            "WF103 a name mismatch is a warning",
            "name: good",
            "name: other",
            &["1:7: warning: WF103 Workflow name mismatch"],
        ),
        row(
            "WF201 start node not found",
            "start_node: first",
            "start_node: furst",
            &["6:13: WF201 Start node not found"],
        ),
        row(
            "WF202 invalid transition target",
            "on_success: second",
            "on_success: secund",
            &["13:17: WF202 Invalid transition target"],
        ),
        row(
            "WF202 of on_valid",
            "on_valid: fifth",
            "on_valid: fifht",
            &["34:15: WF202 Invalid transition target"],
        ),
        row(
            "WF203 invalid branch target",
            "false: failed }",
            "false: fialed }",
            &["18:37: WF203 Invalid branch target"],
        ),
        row(
            "WF204 invalid next_node target",
            "next_node: done",
            "next_node: doen",
            &["41:16: WF204 Invalid next_node target"],
        ),
        row(
            "WF204 of a response",
            "b: { next_node: fourth }",
            "b: { next_node: forth }",
            &["29:23: WF204 Invalid next_node target"],
        ),
        row(
            "WF205 missing response handler",
            "      b: { next_node: fourth }\n",
            "",
            &["26:17: WF205 Missing response handler"],
        ),
        row(
            "WF206 an orphan handler",
            "      a: { next_node: fourth }",
            "      c: { next_node: fourth }\n      a: { next_node: fourth }",
            &["28:7: WF206 "],
        ),
        row(
            "WF206 other is a warning",
            "      a: { next_node: fourth }",
            "      other: { next_node: fourth }\n      a: { next_node: fourth }",
            &["28:7: warning: WF206 "],
        ),
        row(
            "WF207 five options are a warning",
            "        - { id: a, label: A, description: a }\n",
            "        - { id: a, label: A, description: a }\n        - { id: c, label: C, description: c }\n        - { id: d, label: D, description: d }\n        - { id: e, label: E, description: e }\n",
            &["24:7: warning: WF207 ", "26:17: WF205 ", "27:17: WF205 ", "28:17: WF205 "],
        ),
        row(
            "WF208 a long header is a warning",
            "header: Which",
            "header: Which one is it?",
            &["23:15: warning: WF208 "],
        ),
        row(
            "WF209 two options of one id",
            "{ id: b, label: B, description: b }",
            "{ id: a, label: B, description: b }",
            &["26:17: WF209 ", "29:7: WF206 "],
        ),
        row("WF210 an unknown node type", "type: reference", "type: referense", &["37:11: WF210 "]),
        row(
            "WF211 an unreachable node is a warning",
            "on_valid: fifth",
            "on_valid: done",
            &["36:3: warning: WF211 "],
        ),
        row(
            "WF212 a node and an ending of one name",
            "  failed: { type: error, message: failed }",
            "  failed: { type: error, message: failed }\n  first: { type: error, message: x }",
            &["45:3: WF212 "],
        ),
        row(
            "several mistakes are told at once",
            "on_success: second\n    on_failure: failed",
            "on_success: x\n    on_failure: y",
            &["13:17: WF202 ", "14:17: WF202 "],
        ),
        row(
            "yes and no are texts",
            "branches: { true: third, false: failed }",
            "branches: { yes: third, no: failed }",
            &["18:5: WF101 ", "18:5: WF101 ", "18:17: WF102 ", "18:29: WF102 "],
        ),
        row(
            "keys of branches may be texts",
            "branches: { true: third, false: failed }",
            "branches: { \"true\": third, 'false': failed }",
            &[],
        ),
        row(
            "an alias is a value",
            "flags: { ready: false } }",
            "flags: &f { ready: false }, again: *f }",
            &[],
        ),
    ]
}

pub(super) fn names() -> Vec<&'static str> {
    rows().into_iter().chain(strict_rows()).map(|row| row.name).collect()
}

/// What only the strict profile refuses.
fn strict_rows() -> Vec<MistakeRow> {
    vec![
        row("strict: WF103 is an error", "name: good", "name: other", &["1:7: WF103 "]),
        row("strict: WF101 of description", "description: a graph\n", "", &["1:1: WF101 "]),
        row(
            "strict: WF206 of other",
            "      a: { next_node: fourth }",
            "      other: { next_node: fourth }\n      a: { next_node: fourth }",
            &["28:7: WF206 "],
        ),
        row(
            "strict: WF207 of one option",
            "        - { id: b, label: B, description: b }\n",
            "",
            &["24:7: WF207 ", "28:7: WF206 "],
        ),
        row(
            "strict: WF208 of a long header",
            "header: Which",
            "header: Which one is it?",
            &["23:15: WF208 "],
        ),
    ]
}

#[test]
fn mistakes_in_the_structure_are_found_at_their_places() {
    assert_eq!(findings(GOOD, GraphProfile::Seed), Vec::<String>::new(), "the good graph");
    assert_found(&rows(), GraphProfile::Lenient);
    assert_found(&strict_rows(), GraphProfile::Seed);
}
