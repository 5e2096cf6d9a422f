//! The built-in preconditions. All may have an `error_message`.
//!
//! The last three are names that later graphs use for the others: `state_check` is `state_equals`, `state_not_null`
//! and `state_is_null`, `path_check` is `file_exists` and `directory_exists`, `tool_check` is `tool_available`.

use super::{BuiltinParameter, BuiltinType, ParameterKind, may, need, of};

const FIELD: BuiltinParameter = need("field", ParameterKind::Path);
const PATH: BuiltinParameter = need("path", ParameterKind::Filled);
const ID: BuiltinParameter = need("id", ParameterKind::Filled);
const TOOL: BuiltinParameter = need("tool", ParameterKind::Filled);
const FLAG: BuiltinParameter = need("flag", ParameterKind::Path);
const FROM: BuiltinParameter = need("from", ParameterKind::Path);
const CONDITIONS: BuiltinParameter = need("conditions", ParameterKind::Conditions);

/// The number of types that come from later graphs.
#[cfg(test)]
pub(super) const LATER: usize = 3;

pub(super) const TABLE: &[BuiltinType] = &[
    of("config_exists", &[]),
    of("index_exists", &[]),
    of("index_is_placeholder", &[]),
    of("file_exists", &[PATH]),
    of("directory_exists", &[PATH]),
    of("source_exists", &[ID]),
    of("source_cloned", &[ID]),
    of("source_has_updates", &[ID]),
    of("tool_available", &[TOOL]),
    of("python_module_available", &[need("module", ParameterKind::Filled)]),
    of("flag_set", &[FLAG]),
    of("flag_not_set", &[FLAG]),
    of("state_equals", &[FIELD, need("value", ParameterKind::Any)]),
    of("state_not_null", &[FIELD]),
    of("state_is_null", &[FIELD]),
    of("count_equals", &[FIELD, need("count", ParameterKind::Number)]),
    of("count_above", &[FIELD, need("min", ParameterKind::Number)]),
    of("count_below", &[FIELD, need("max", ParameterKind::Number)]),
    of("fetch_succeeded", &[FROM]),
    of("fetch_returned_content", &[FROM]),
    of("all_of", &[CONDITIONS]),
    of("any_of", &[CONDITIONS]),
    of("none_of", &[CONDITIONS]),
    of("evaluate_expression", &[need("expression", ParameterKind::Expression)]),
    of(
        "state_check",
        &[FIELD, need("operator", ParameterKind::Word), may("value", ParameterKind::Any)],
    ),
    of("path_check", &[PATH, may("check", ParameterKind::Word)]),
    of("tool_check", &[TOOL, may("capability", ParameterKind::Word)]),
];
