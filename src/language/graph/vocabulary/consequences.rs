//! The consequences.
//!
//! After the seed's come those of later graphs. `mutate_state` is `set_state`, `append_state`,
//! `clear_state` and `merge_state` by its `operation`; `run_command` is `bash_exec`. `run_folder` and
//! `run_state` are this program's own: a further agent that begins with a prompt or a graph.

use super::{Parameter, Takes, Type, may, need, of};

const FIELD: Parameter = need("field", Takes::Filled);
const VALUE: Parameter = need("value", Takes::Any);
const PATH: Parameter = need("path", Takes::Filled);
const NAME: Parameter = need("name", Takes::Filled);
const FROM: Parameter = need("from", Takes::Filled);
const URL: Parameter = need("url", Takes::Filled);
const DEST: Parameter = need("dest", Takes::Filled);
const REPO: Parameter = need("repo_path", Takes::Filled);
const PATTERN: Parameter = need("pattern", Takes::Filled);
const CONTENT: Parameter = need("content", Takes::Text);
const COMMAND: Parameter = need("command", Takes::Filled);
const EXPRESSION: Parameter = need("expression", Takes::Expression);
const STORE: Parameter = need("store_as", Takes::Filled);
const MAY_STORE: Parameter = may("store_as", Takes::Filled);
const BACKGROUND: Parameter = may("run_in_background", Takes::Switch);
const VARIABLES: Parameter = may("variables", Takes::Map);

/// How many of them come from later graphs or are this program's own.
#[cfg(test)]
pub(super) const LATER: usize = 10;

pub(super) const TABLE: &[Type] = &[
    of("set_flag", &[need("flag", Takes::Filled), need("value", Takes::Boolean)]),
    of("set_state", &[FIELD, VALUE]),
    of("append_state", &[FIELD, VALUE]),
    of("clear_state", &[FIELD]),
    of("merge_state", &[FIELD, need("value", Takes::Map)]),
    of("evaluate", &[EXPRESSION, need("set_flag", Takes::Filled)]),
    of("compute", &[EXPRESSION, STORE]),
    of("read_config", &[STORE]),
    of("read_file", &[PATH, STORE]),
    of("write_file", &[PATH, CONTENT]),
    of("create_directory", &[PATH]),
    of("delete_file", &[PATH]),
    of("write_config_entry", &[PATH, VALUE]),
    of("add_source", &[need("spec", Takes::Map)]),
    of("update_source", &[need("id", Takes::Filled), need("fields", Takes::Map)]),
    of("clone_repo", &[URL, DEST, may("branch", Takes::Filled), may("depth", Takes::Number)]),
    of("get_sha", &[REPO, STORE]),
    of("git_pull", &[REPO]),
    of("git_fetch", &[REPO]),
    of(
        "web_fetch",
        &[URL, STORE, may("allow_failure", Takes::Boolean), may("prompt", Takes::Filled)],
    ),
    of("cache_web_content", &[FROM, DEST, may("store_path_as", Takes::Filled)]),
    of("display_message", &[need("message", Takes::Text)]),
    of(
        "display_table",
        &[may("title", Takes::Text), need("headers", Takes::List), need("rows", Takes::List)],
    ),
    of(
        "invoke_pattern",
        &[PATH, may("section", Takes::Filled), may("context", Takes::Map), MAY_STORE],
    ),
    of("create_checkpoint", &[NAME]),
    of("rollback_checkpoint", &[NAME]),
    of(
        "spawn_agent",
        &[need("subagent_type", Takes::Filled), need("prompt", Takes::Filled), STORE, BACKGROUND],
    ),
    of("set_timestamp", &[STORE]),
    of("compute_hash", &[FROM, STORE]),
    of("invoke_skill", &[need("skill", Takes::Filled), may("args", Takes::Any), MAY_STORE]),
    of(
        "foreach",
        &[need("items", Takes::List), may("as", Takes::Word), need("actions", Takes::Actions)],
    ),
    of("glob_files", &[PATTERN, STORE]),
    of("glob_count", &[PATTERN, STORE]),
    of("bash_exec", &[COMMAND, MAY_STORE]),
    of("append_to_file", &[PATH, CONTENT]),
    of("mutate_state", &[need("operation", Takes::Word), FIELD, may("value", Takes::Any)]),
    of("run_command", &[COMMAND, may("interpreter", Takes::Word), MAY_STORE]),
    of(
        "run_folder",
        &[
            PATH,
            may("state", Takes::Filled),
            VARIABLES,
            may("input", Takes::Text),
            MAY_STORE,
            BACKGROUND,
        ],
    ),
    of("run_state", &[need("state", Takes::Filled), VARIABLES, MAY_STORE, BACKGROUND]),
];
