//! The preconditions. All may have an `error_message`.
//!
//! The last three are how later graphs write the others: `state_check` is `state_equals`,
//! `state_not_null` and `state_is_null`, `path_check` is `file_exists` and `directory_exists`,
//! `tool_check` is `tool_available`.

use super::{Parameter, Takes, Type, may, need, of};

const FIELD: Parameter = need("field", Takes::Filled);
const PATH: Parameter = need("path", Takes::Filled);
const ID: Parameter = need("id", Takes::Filled);
const TOOL: Parameter = need("tool", Takes::Filled);
const FLAG: Parameter = need("flag", Takes::Filled);
const FROM: Parameter = need("from", Takes::Filled);
const CONDITIONS: Parameter = need("conditions", Takes::Conditions);

/// How many of them come from later graphs.
#[cfg(test)]
pub(super) const LATER: usize = 3;

pub(super) const TABLE: &[Type] = &[
    of("config_exists", &[]),
    of("index_exists", &[]),
    of("index_is_placeholder", &[]),
    of("file_exists", &[PATH]),
    of("directory_exists", &[PATH]),
    of("source_exists", &[ID]),
    of("source_cloned", &[ID]),
    of("source_has_updates", &[ID]),
    of("tool_available", &[TOOL]),
    of("python_module_available", &[need("module", Takes::Filled)]),
    of("flag_set", &[FLAG]),
    of("flag_not_set", &[FLAG]),
    of("state_equals", &[FIELD, need("value", Takes::Any)]),
    of("state_not_null", &[FIELD]),
    of("state_is_null", &[FIELD]),
    of("count_equals", &[FIELD, need("count", Takes::Number)]),
    of("count_above", &[FIELD, need("min", Takes::Number)]),
    of("count_below", &[FIELD, need("max", Takes::Number)]),
    of("fetch_succeeded", &[FROM]),
    of("fetch_returned_content", &[FROM]),
    of("all_of", &[CONDITIONS]),
    of("any_of", &[CONDITIONS]),
    of("none_of", &[CONDITIONS]),
    of("evaluate_expression", &[need("expression", Takes::Expression)]),
    of("state_check", &[FIELD, need("operator", Takes::Word), may("value", Takes::Any)]),
    of("path_check", &[PATH, may("check", Takes::Word)]),
    of("tool_check", &[TOOL, may("capability", Takes::Word)]),
];
