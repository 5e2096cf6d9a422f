//! One bad graph for each mistake in its content: types, expressions, documents, variables.

use super::super::profile::GraphProfile;
use super::super::vocabulary::{GraphVocabulary, TypeRole};
use super::{acting, asking, assert_diagnostic, diagnostics, graph};

#[test]
fn unknown_type_or_invalid_parameter_is_error_with_hint() {
    let listed = |role| GraphVocabulary::new().listed(role);
    let text = asking("      type: file_exist\n      path: x");
    let nearest =
        "12:13: WF301 Unknown precondition type: `file_exist`; did you mean `file_exists`?";
    assert_diagnostic(&text, &format!("{nearest} There are {}", listed(TypeRole::Precondition)));
    let text = acting("      - type: set_flagg\n      - type: file_exists");
    let nearest = "12:15: WF302 Unknown consequence type: `set_flagg`; did you mean `set_flag`?";
    assert_eq!(
        diagnostics(&text, GraphProfile::Lenient),
        [
            format!("{nearest} There are {}", listed(TypeRole::Consequence)),
            "13:15: WF302 Unknown consequence type: `file_exists`; it is a precondition, which is not allowed here".to_owned(),
        ]
    );
    let run =
        diagnostics(&acting("      - { type: shell, command: echo hi }"), GraphProfile::Lenient);
    assert!(run[0].contains("`shell`; did you mean `bash_exec` (with `command`)?"), "{run:?}");
    assert!(
        listed(TypeRole::Consequence).contains("; git: clone_repo, get_sha, git_fetch, git_pull; ")
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
            "type: bash_exec, command: x, unless: y, once: true",
            "12:57: WF303 `bash_exec` has `unless` and `once`; keep the key that says what a repetition means",
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
        let diagnostics =
            diagnostics(&acting(&format!("      - {{ {action} }}")), GraphProfile::Lenient);
        assert!(
            diagnostics.iter().any(|diagnostics| diagnostics == expected),
            "{expected}: {diagnostics:#?}"
        );
    }
}

#[test]
fn invalid_check_parameter_is_error_with_allowed_values() {
    let table = [
        (
            "type: state_check, field: known, operator: equals",
            "12:15: WF303 `state_check` needs `value` to see what it equals",
        ),
        (
            "type: state_check, field: known, operator: nul",
            "12:52: WF303 `operator` of `state_check` cannot be `nul`; use one of equals, not_equals, null, is_null, not_null, true, false, not_true; did you mean `null`?",
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
        assert_diagnostic(&asking(&format!("      {{ {condition} }}")), expected);
    }
}

#[test]
fn expression_error_is_located_within_text() {
    let compute = |expression: &str| {
        acting(&format!(
            "      - {{ type: compute, store_as: computed.x, expression: {expression} }}"
        ))
    };
    let table = [
        (compute("'1 +* 2'"), "12:64: WF310 "),
        (compute("\"frobnicate(1)\""), "12:61: WF311 "),
        (compute("'Count all the files'"), "12:67: WF312 "),
        (compute("'# whatever is right'"), "12:61: warning: WF312 "),
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
        let diagnostics = diagnostics(&text, GraphProfile::Lenient);
        assert!(
            diagnostics.len() == 1 && diagnostics[0].starts_with(expected),
            "{expected}: {diagnostics:#?}"
        );
    }
}

#[test]
fn missing_document_is_error_and_missing_section_warning_with_suggestion() {
    let refer = |rest: &str| graph(&format!("  a: {{ type: reference, next_node: done, {rest} }}"));
    let missing = diagnostics(&refer("doc: lib/gti.md"), GraphProfile::Lenient);
    assert_eq!(
        missing,
        [
            "9:47: WF320 the document is missing: lib/gti.md: there is no such file in the workflow; did you mean lib/git.md?"
        ]
    );
    let outside = diagnostics(&refer("doc: ../secret"), GraphProfile::Lenient);
    assert!(outside[0].contains("WF320 the document is missing: ../secret: this leads out of"));
    assert_diagnostic(
        &refer("doc: '${x}'"),
        "9:47: WF320 a document is read before the graph begins, so its path is written out",
    );
    assert_diagnostic(
        &refer("doc: lib/git.md, section: Clone"),
        "9:68: warning: WF321 the document `lib/git.md` has no section `Clone`; did you mean `Clone Repository`? Until then Claude Code gets the whole document",
    );
    let strict = diagnostics(&refer("doc: lib/git.md, section: Clone"), GraphProfile::Seed);
    let error = "9:68: WF321 the document `lib/git.md` has no section `Clone`; did you mean `Clone Repository`?";
    assert!(strict.iter().any(|diagnostics| diagnostics == error), "{strict:#?}");
    assert_diagnostic(
        &acting("      - { type: invoke_pattern, path: lib/git.md, section: Zzz }"),
        "12:60: warning: WF321 the document `lib/git.md` has no section `Zzz`; it has Git, Clone Repository, Fetch; Claude Code gets the whole document",
    );
}

#[test]
fn variable_that_nothing_writes_is_reported() {
    let show = |message: &str| {
        acting(&format!(
            "      - {{ type: set_state, field: computed.config, value: 1 }}\n      - {{ type: display_message, message: '{message}' }}"
        ))
    };
    for known in
        ["known", "config", "computed.config.x", "flags.ready", "ready", "PWD", "current_node"]
    {
        assert!(
            diagnostics(&show(&format!("${{{known}}}")), GraphProfile::Seed).is_empty(),
            "{known}"
        );
    }
    let nothing = "nothing writes it; write it before, or put it into `initial_state`";
    assert_diagnostic(
        &show("so ${conifg}"),
        &format!("13:49: WF330 variable `conifg`: {nothing}; did you mean `config`?"),
    );
    assert_diagnostic(
        &show("${flags.redy}"),
        &format!("13:46: WF330 variable `flags.redy`: {nothing}; did you mean `ready`?"),
    );
    let merging = show("${computed.zzz}").replace(
        "      - { type: set_state",
        "      - { type: invoke_pattern, path: lib/git.md }\n      - { type: set_state",
    );
    assert_diagnostic(
        &merging,
        "14:46: warning: WF330 variable `computed.zzz`: nothing writes it by this name, but something might",
    );
    assert_diagnostic(
        &asking("      { type: evaluate_expression, expression: 'zzz == 1' }"),
        "12:49: warning: WF330 variable `zzz`: nothing writes it, so it is always null; put it into `initial_state`",
    );
}

#[test]
fn prose_in_place_of_expression_is_task_for_claude() {
    let prose = |kind: &str| {
        acting(&format!(
            "      - {{ type: {kind}, expression: \"# Read all files.\\n#\\n# Count ${{known}} words.\", store_as: x }}"
        ))
    };
    let why = "12:39: warning: WF312 this is prose, not an expression, so raymond asks Claude Code for the value; write an expression, or use `spawn_agent` to make that explicit";
    assert_diagnostic(&prose("compute"), why);
    assert_eq!(diagnostics(&prose("compute"), GraphProfile::Seed), [why.replace("warning: ", "")]);
    let found = diagnostics(&prose("evaluate"), GraphProfile::Lenient);
    assert!(found[0].contains("WF312 this is prose; write an expression"), "{found:?}");
    let mixed = |rest: &str| {
        let expression = format!("\"# Count.\\n{rest}\"");
        diagnostics(
            &acting(&format!("      - {{ type: compute, expression: {expression}, store_as: x }}")),
            GraphProfile::Lenient,
        )
    };
    assert_eq!(mixed("len(known)"), Vec::<String>::new());
    let found = mixed("count all words");
    assert!(found[0].contains(": WF312 this is prose; write an expression"), "{found:?}");
}
