//! The paths that conditions and parameters read, and the paths of files: what `check` finds in them.

use super::super::profile::GraphProfile;
use super::{acting, asking, assert_diagnostic, diagnostics};

const NOTHING: &str = "nothing writes it; write it before, or put it into `initial_state`";
const ALWAYS_NULL: &str =
    "nothing writes it, so it is always null; put it into `initial_state`; did you mean `known`?";

#[test]
fn misspelt_path_of_condition_is_error_at_its_place() {
    for condition in [
        "state_equals, value: 1, field: knwon",
        "count_equals, count: 1, field: knwon",
        "count_above, min: 1, field: knwon",
        "count_below, max: 1, field: knwon.further",
        "state_check, operator: equals, value: 1, field: knwon",
        "state_check, operator: not_true, field: knwon",
        "fetch_succeeded, from: knwon",
        "fetch_returned_content, from: knwon.further",
    ] {
        let (before, path) = condition.rsplit_once(": ").expect("a path");
        let column = "      { type: ".len() + before.len() + ": ".len() + 1;
        let expected =
            format!("12:{column}: WF330 variable `{path}`: {NOTHING}; did you mean `known`?");
        assert_diagnostic(&asking(&format!("      {{ type: {condition} }}")), &expected);
    }
    let nested =
        "      { type: any_of, conditions: [{ type: count_above, min: 0, field: computed.lsit }] }";
    assert_diagnostic(
        &asking(nested),
        &format!("12:72: WF330 variable `computed.lsit`: {NOTHING}"),
    );
}

#[test]
fn path_that_may_be_missing_is_warned_of() {
    for (condition, column) in [
        ("state_is_null, field: knwon", 37),
        ("state_not_null, field: .knwon", 38),
        ("state_check, operator: not_null, field: knwon", 55),
        ("state_equals, value: null, field: knwon", 49),
    ] {
        assert_diagnostic(
            &asking(&format!("      {{ type: {condition} }}")),
            &format!("12:{column}: warning: WF330 variable `knwon`: {ALWAYS_NULL}"),
        );
    }
    for flag in ["redy", "flags.redy"] {
        let found = diagnostics(
            &asking(&format!("      {{ type: flag_set, flag: {flag} }}")),
            GraphProfile::Lenient,
        );
        let [only] = &found[..] else { panic!("{found:?}") };
        assert!(only.contains("warning: WF330 variable `flags.redy`"), "{only}");
        assert!(only.ends_with("did you mean `ready`?"), "{only}");
    }
}

#[test]
fn known_or_open_path_of_condition_is_fine() {
    for condition in [
        "state_equals, value: 1, field: known",
        "state_equals, value: 1, field: state.known",
        "state_equals, value: true, field: flags.ready",
        "state_equals, value: a, field: current_node",
        "state_equals, value: 1, field: 'computed.${known}'",
        "count_above, min: 0, field: 'known[0].x'",
        "flag_set, flag: ready",
    ] {
        let found =
            diagnostics(&asking(&format!("      {{ type: {condition} }}")), GraphProfile::Seed);
        assert!(found.is_empty(), "{condition}: {found:?}");
    }
}

#[test]
fn misspelt_path_of_parameter_is_error_unless_outputs_may_write_it() {
    for (action, path) in [
        ("compute_hash, store_as: x, from: computed.pgae", "computed.pgae"),
        ("cache_web_content, dest: d, from: computed.pgae", "computed.pgae"),
        ("spawn_agents_parallel, prompt: p, store_as: x, foreach: computed.pgae", "computed.pgae"),
    ] {
        let column = "      - { type: ".len() + action.len() - path.len() + 1;
        let line = format!("      - {{ type: {action} }}");
        let found = diagnostics(&acting(&line), GraphProfile::Lenient);
        let [only] = &found[..] else { panic!("{action}: {found:?}") };
        let expected = format!("12:{column}: WF330 variable `{path}`: {NOTHING}");
        assert!(only.starts_with(&expected), "{only}");
        let merging = format!("      - {{ type: invoke_pattern, path: lib/git.md }}\n{line}");
        let found = diagnostics(&acting(&merging), GraphProfile::Lenient);
        let expected = format!(
            "13:{column}: warning: WF330 variable `{path}`: nothing writes it by this name, but something might"
        );
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{found:?}");
    }
    let asking = super::graph(
        "  a:\n    type: user_prompt\n    prompt: { question: Q?, header: H, options_from_state: computed.pgae }\n    on_response:\n      other: { next_node: done }",
    );
    let found = diagnostics(&asking, GraphProfile::Lenient);
    let expected = format!("WF330 variable `computed.pgae`: {NOTHING}");
    assert!(
        found.iter().any(|text| text.starts_with("11:60: ") && text.contains(&expected)),
        "{found:?}"
    );
    let looping = "      - { type: foreach, items: [1], actions: [{ type: compute_hash, from: item.a, store_as: x }] }";
    assert!(diagnostics(&acting(looping), GraphProfile::Lenient).is_empty());
}

#[test]
fn absolute_path_is_warned_of_and_path_that_leads_up_is_error() {
    let up = |name: &str, kind: &str, path: &str| {
        format!("WF304 `{name}` of `{kind}` leads out of the workspace: `{path}`")
    };
    let absolute = |name: &str, kind: &str, path: &str| {
        format!(
            "warning: WF304 `{name}` of `{kind}` is absolute, and is refused unless the workspace has it: `{path}`; name it below the workspace"
        )
    };
    let any = "any_file_exists_check, store_as: x, paths";
    for (action, expected) in [
        ("read_file, store_as: x, path: /etc/x", absolute("path", "read_file", "/etc/x")),
        (&*format!("{any}: [a, ../b]"), up("paths", "any_file_exists_check", "../b")),
        (&*format!("{any}: [/etc/x]"), absolute("paths", "any_file_exists_check", "/etc/x")),
        ("write_log, filename: ../../../x", up("filename", "write_log", "../../../x")),
        (
            "write_log, location: logs, filename: a/../../../x",
            up("filename", "write_log", "a/../../../x"),
        ),
        ("write_log, path: ../x", up("path", "write_log", "../x")),
        ("write_log, location: /var/log", absolute("location", "write_log", "/var/log")),
        (
            "apply_log_retention, strategy: none, location: ../logs",
            up("location", "apply_log_retention", "../logs"),
        ),
    ] {
        let found =
            diagnostics(&acting(&format!("      - {{ type: {action} }}")), GraphProfile::Lenient);
        assert!(found.len() == 1 && found[0].ends_with(&expected), "{action}: {found:?}");
    }
    for fine in ["filename: ../x", "filename: /x", "location: '${known}', filename: ../../../x"] {
        let text = acting(&format!("      - {{ type: write_log, {fine} }}"));
        assert!(diagnostics(&text, GraphProfile::Lenient).is_empty(), "{fine}");
    }
}

#[test]
fn boolean_parameter_is_read_from_text_and_may_be_filled_in() {
    for action in [
        "bash_exec, command: ls, once: 'true'",
        "bash_exec, command: ls, idempotent: '${known}', once: '${known}'",
        "run_command, command: ls, idempotent: 'false', once: 'true'",
        "spawn_agent, subagent_type: a, prompt: p, store_as: x, run_in_background: '${known}'",
        "discover_installed_corpora, store_as: x, user: 'false'",
        "spawn_agents_parallel, foreach: known, prompt: p, store_as: x, join: '2'",
    ] {
        let found =
            diagnostics(&acting(&format!("      - {{ type: {action} }}")), GraphProfile::Lenient);
        assert!(found.is_empty(), "{action}: {found:?}");
    }
    assert_diagnostic(
        &acting("      - { type: bash_exec, command: ls, once: sometimes }"),
        "12:47: WF303 `once` of `bash_exec` takes `true`, `false` or a `${…}`, not a text",
    );
    let both = acting("      - { type: bash_exec, command: ls, once: 'true', idempotent: true }");
    let found = diagnostics(&both, GraphProfile::Lenient);
    assert!(found[0].contains("has `idempotent` and `once`"), "{found:?}");
}

#[test]
fn part_that_no_result_of_a_command_has_is_reported() {
    let shows = |before: &str, message: &str| {
        acting(&format!(
            "{before}      - {{ type: bash_exec, command: ls, store_as: out }}\n      - {{ type: display_message, message: '{message}' }}"
        ))
    };
    let why = "the result of a command has no `output`; it has `exit_code`, `stdout` and `stderr`, and is its output where a text is used";
    let found = |text: &str| diagnostics(text, GraphProfile::Lenient);
    let plain = found(&shows("", "${computed.out.output}"));
    assert!(
        plain.len() == 1
            && plain[0].ends_with(&format!("WF330 variable `computed.out.output`: {why}")),
        "{plain:?}"
    );
    let bare = found(&shows("", "${out.output + 1}"));
    assert!(
        bare.len() == 1 && bare[0].contains(": warning: WF330 variable `out.output`"),
        "{bare:?}"
    );
    for sound in ["out.stdout", "computed.out.exit_code", "out.length", "out.trim()", "out"] {
        assert!(found(&shows("", &format!("${{{sound}}}"))).is_empty(), "{sound}");
    }
    let other = "      - { type: compute, expression: \"{output: 1}\", store_as: computed.out }\n";
    assert!(found(&shows(other, "${computed.out.output}")).is_empty());
}
