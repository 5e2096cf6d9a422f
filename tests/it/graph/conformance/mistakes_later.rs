//! The diagnostics of the content of a graph: types, parameters, expressions, documents, variables.

use raymond::language::graph::profile::GraphProfile;

use super::mistakes::{MistakeRow, assert_found};

const CONDITION: &str = "{ type: flag_set, flag: ready }";
const ACTION: &str = "{ type: compute, expression: \"known + 1\", store_as: computed.more }";

/// Returns a row with another condition; its place is that of the condition's type.
fn condition(name: &'static str, by: &'static str, found: &'static [&'static str]) -> MistakeRow {
    MistakeRow { name, of: CONDITION, by, found }
}

/// Returns a row with an action more, at the beginning of line 12.
fn action(name: &'static str, by: &'static str, found: &'static [&'static str]) -> MistakeRow {
    MistakeRow { name, of: "      - { type: set_flag, flag: ready, value: true }\n", by, found }
}

fn expression(name: &'static str, by: &'static str, found: &'static [&'static str]) -> MistakeRow {
    MistakeRow { name, of: "\"known + 1\"", by, found }
}

const NEEDS: &[&str] = &["17:24: WF303 "];

fn condition_rows() -> Vec<MistakeRow> {
    vec![
        condition(
            "WF301 an unknown precondition",
            "{ type: flag_sat, flag: ready }",
            &["17:24: WF301 Unknown precondition type"],
        ),
        condition(
            "WF301 names a similar one",
            "{ type: flag_sat, flag: ready }",
            &["17:24: WF301 Unknown precondition type: `flag_sat`; did you mean `flag_set`?"],
        ),
        condition(
            "a consequence is no precondition",
            "{ type: set_flag, flag: ready, value: true }",
            &["17:24: WF301 "],
        ),
        condition("file_exists needs path", "{ type: file_exists }", NEEDS),
        condition("directory_exists needs path", "{ type: directory_exists }", NEEDS),
        condition("source_exists needs id", "{ type: source_exists }", NEEDS),
        condition("source_cloned needs id", "{ type: source_cloned }", NEEDS),
        condition("source_has_updates needs id", "{ type: source_has_updates }", NEEDS),
        condition("tool_available needs tool", "{ type: tool_available }", NEEDS),
        condition(
            "python_module_available needs module",
            "{ type: python_module_available }",
            NEEDS,
        ),
        condition("flag_set needs flag", "{ type: flag_set }", NEEDS),
        condition("flag_not_set needs flag", "{ type: flag_not_set }", NEEDS),
        condition("state_equals needs field", "{ type: state_equals, value: 1 }", NEEDS),
        condition("state_equals needs value", "{ type: state_equals, field: known }", NEEDS),
        condition("state_not_null needs field", "{ type: state_not_null }", NEEDS),
        condition("state_is_null needs field", "{ type: state_is_null }", NEEDS),
        condition("count_equals needs count", "{ type: count_equals, field: known }", NEEDS),
        condition("count_above needs min", "{ type: count_above, field: known }", NEEDS),
        condition("count_below needs max", "{ type: count_below, field: known }", NEEDS),
        condition("fetch_succeeded needs from", "{ type: fetch_succeeded }", NEEDS),
        condition("fetch_returned_content needs from", "{ type: fetch_returned_content }", NEEDS),
        condition("all_of needs conditions", "{ type: all_of }", NEEDS),
        condition("any_of needs conditions", "{ type: any_of }", NEEDS),
        condition("none_of needs conditions", "{ type: none_of }", NEEDS),
        condition("evaluate_expression needs expression", "{ type: evaluate_expression }", NEEDS),
        condition(
            "config_exists takes nothing",
            "{ type: config_exists, path: x }",
            &["17:39: WF303 "],
        ),
        condition(
            "index_exists takes nothing",
            "{ type: index_exists, path: x }",
            &["17:38: WF303 "],
        ),
        condition(
            "index_is_placeholder takes nothing",
            "{ type: index_is_placeholder, path: x }",
            &["17:46: WF303 "],
        ),
        condition("a path is a text", "{ type: file_exists, path: [x] }", &["17:43: WF303 "]),
        condition(
            "a count is a number",
            "{ type: count_equals, field: known, count: many }",
            &["17:59: WF303 "],
        ),
        condition(
            "conditions are a list",
            "{ type: all_of, conditions: { type: config_exists } }",
            &["17:44: WF303 "],
        ),
        condition(
            "a mistake in a condition of all_of",
            "{ type: all_of, conditions: [{ type: file_exists }] }",
            &["17:53: WF303 "],
        ),
        condition(
            "error_message is a text",
            "{ type: flag_set, flag: ready, error_message: 1 }",
            &["17:62: WF102 "],
        ),
    ]
}

fn action_rows() -> Vec<MistakeRow> {
    vec![
        action(
            "WF302 an unknown consequence",
            "      - { type: set_flagg }\n",
            &["11:17: WF302 Unknown consequence type"],
        ),
        action(
            "a type of another engine is named as it is here",
            "      - { type: local_file_ops, operation: read }\n",
            &[
                "11:17: WF302 Unknown consequence type: `local_file_ops`; write `read_file`, `write_file`",
            ],
        ),
        action(
            "a precondition is no consequence",
            "      - { type: flag_set, flag: ready }\n",
            &["11:17: WF302 "],
        ),
        action(
            "set_flag needs value",
            "      - { type: set_flag, flag: ready }\n",
            &["11:17: WF303 "],
        ),
        action(
            "set_flag takes a truth value",
            "      - { type: set_flag, flag: ready, value: maybe }\n",
            &["11:47: WF303 "],
        ),
        action(
            "set_state needs value",
            "      - { type: set_state, field: known }\n",
            &["11:17: WF303 "],
        ),
        action(
            "read_file needs store_as",
            "      - { type: read_file, path: x }\n",
            &["11:17: WF303 "],
        ),
        action(
            "write_file needs content",
            "      - { type: write_file, path: x }\n",
            &["11:17: WF303 "],
        ),
        action(
            "clone_repo needs url and dest",
            "      - { type: clone_repo }\n",
            &["11:17: WF303 ", "11:17: WF303 "],
        ),
        action(
            "web_fetch needs url",
            "      - { type: web_fetch, store_as: x }\n",
            &["11:17: WF303 "],
        ),
        action(
            "spawn_agent needs prompt",
            "      - { type: spawn_agent, subagent_type: x, store_as: y }\n",
            &["11:17: WF303 "],
        ),
        action(
            "an unknown parameter",
            "      - { type: read_config, store: x }\n",
            &["11:17: WF303 ", "11:30: WF303 "],
        ),
        action(
            "foreach needs items",
            "      - { type: foreach, actions: [] }\n",
            &["11:17: WF303 "],
        ),
        action(
            "a foreach with an unknown parameter is one mistake",
            "      - type: foreach\n        items: \"${computed.list}\"\n        item_name: source\n        actions:\n          - { type: compute, expression: source.id, store_as: computed.more }\n          - { type: display_message, message: \"${source.id} ${source.url}\" }\n          - { type: set_state, field: computed.list, value: [1] }\n      - { type: display_message, message: \"${computed.list}\" }\n",
            &["13:9: WF303 `foreach` has no parameter `item_name`"],
        ),
        action(
            "a path that is written out stays inside",
            "      - { type: delete_file, path: a/../../x }\n",
            &["11:36: WF304 "],
        ),
        MistakeRow {
            name: "a wrong store_as keeps its readers",
            of: ACTION,
            by: "{ type: compute, expresion: 1, store_as: computed.more }",
            found: &["12:17: WF303 ", "12:26: WF303 "],
        },
    ]
}

fn content_rows() -> Vec<MistakeRow> {
    vec![
        expression("WF310 has the column inside the text", "\"known + * 1\"", &["12:47: WF310 "]),
        expression("WF311 an unknown function", "\"lenn(known)\"", &["12:39: WF311 "]),
        expression("WF311 an unknown method", "\"known.trimm()\"", &["12:45: WF311 "]),
        expression("WF312 prose", "\"Count all the files\"", &["12:45: WF312 "]),
        expression("WF312 a form of a shell", "\"${known:-0}\"", &["12:"]),
        expression("WF312 a form of jq", "\"known | length\"", &["12:"]),
        expression(
            "WF312 prose after a # is a warning",
            "\"# count them\"",
            &["12:39: warning: WF312 "],
        ),
        expression(
            "WF310 a function without return",
            "\"[1].map(x => { x += 1; })\"",
            &["12:62: WF310 the function ends here without a value"],
        ),
        expression("WF310 a chained comparison", "\"1 < known < 3\"", &["12:"]),
        expression("WF310 a regular expression of its own", "\"/a/.test(known)\"", &["12:"]),
        MistakeRow {
            name: "WF320 a missing document",
            of: "lib/doc.md",
            by: "lib/dok.md",
            found: &["38:10: WF320 the document is missing"],
        },
        MistakeRow {
            name: "WF321 a missing section",
            of: "section: Part",
            by: "section: Parts",
            found: &["39:14: warning: WF321 "],
        },
        MistakeRow {
            name: "WF321 a heading in code is none",
            of: "section: Part",
            by: "section: Code",
            found: &["39:14: warning: WF321 "],
        },
        MistakeRow {
            name: "WF330 a variable nothing writes",
            of: "${computed.more}",
            by: "${flags.reddy}",
            found: &["40:25: WF330 variable `flags.reddy`: nothing writes it"],
        },
        MistakeRow {
            name: "WF330 is a warning where a reference may write it",
            of: "${computed.more}",
            by: "${computed.moar}",
            found: &[
                "40:25: warning: WF330 variable `computed.moar`: nothing writes it by this name, but something might",
            ],
        },
        MistakeRow {
            name: "the answer of another engine is named as it is here",
            of: "${computed.more}",
            by: "${flags.ready} ${response.text}",
            found: &[
                "40:40: warning: WF330 variable `response.text`: nothing writes it by this name, but something might; the answer to a question is `user_responses.NODE`",
            ],
        },
        MistakeRow {
            name: "two dollars are no reading",
            of: "message: done",
            by: "message: \"$${gone}\"",
            found: &[],
        },
    ]
}

fn rows() -> Vec<MistakeRow> {
    let mut rows = condition_rows();
    rows.extend(action_rows());
    rows.extend(content_rows());
    rows
}

pub(super) fn names() -> Vec<&'static str> {
    rows().into_iter().map(|row| row.name).collect()
}

#[test]
fn mistakes_in_the_content_are_found_at_their_places() {
    assert_found(&rows(), GraphProfile::Lenient);
}
