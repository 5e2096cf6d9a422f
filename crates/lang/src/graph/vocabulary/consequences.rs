//! The built-in consequences.
//!
//! The types of the first graphs come first, then the types of later graphs. `mutate_state` is `set_state`,
//! `append_state`, `clear_state` and `merge_state` by its `operation`; `run_command` is `bash_exec`;
//! `discover_installed_corpora` is `discover_plugins` with a pattern. `run_folder` and `run_state` are this program's own: a further agent that begins with a prompt or a graph.

use super::{BuiltinParameter, BuiltinType, ParameterKind, may, need, of};

const FIELD: BuiltinParameter = need("field", ParameterKind::Path);
const VALUE: BuiltinParameter = need("value", ParameterKind::Any);
const PATH: BuiltinParameter = need("path", ParameterKind::Filled);
const NAME: BuiltinParameter = need("name", ParameterKind::Filled);
const FROM: BuiltinParameter = need("from", ParameterKind::Path);
const URL: BuiltinParameter = need("url", ParameterKind::Filled);
const DEST: BuiltinParameter = need("dest", ParameterKind::Filled);
const REPO: BuiltinParameter = need("repo_path", ParameterKind::Filled);
const PATTERN: BuiltinParameter = need("pattern", ParameterKind::Filled);
const CONTENT: BuiltinParameter = need("content", ParameterKind::Text);
const COMMAND: BuiltinParameter = need("command", ParameterKind::Filled);
const LEVEL: BuiltinParameter = may("level", ParameterKind::Filled);
const CONTEXT: BuiltinParameter = may("context", ParameterKind::Any);
const UNLESS: BuiltinParameter = may("unless", ParameterKind::Filled);
const IDEMPOTENT: BuiltinParameter = may("idempotent", ParameterKind::Boolean);
const ONCE: BuiltinParameter = may("once", ParameterKind::Boolean);
const EXPRESSION: BuiltinParameter = need("expression", ParameterKind::Expression);
const FLAG_SET: BuiltinParameter = may("set_flag", ParameterKind::Path);
const STORE: BuiltinParameter = need("store_as", ParameterKind::Path);
const MAY_STORE: BuiltinParameter = may("store_as", ParameterKind::Path);
const BACKGROUND: BuiltinParameter = may("run_in_background", ParameterKind::Boolean);
const USER: BuiltinParameter = may("user", ParameterKind::Boolean);
const VARIABLES: BuiltinParameter = may("variables", ParameterKind::Map);

/// The number of types that come from later graphs or are this program's own.
#[cfg(test)]
pub(super) const LATER: usize = 41;

pub(super) const TABLE: &[BuiltinType] = &[
    of("set_flag", &[need("flag", ParameterKind::Path), need("value", ParameterKind::Boolean)]),
    of("set_state", &[FIELD, VALUE]),
    of("append_state", &[FIELD, VALUE]),
    of("clear_state", &[FIELD]),
    of("merge_state", &[FIELD, need("value", ParameterKind::Map)]),
    of("evaluate", &[EXPRESSION, FLAG_SET, MAY_STORE]),
    of("compute", &[EXPRESSION, STORE]),
    of("read_config", &[STORE]),
    of("read_file", &[PATH, STORE]),
    of("write_file", &[PATH, CONTENT]),
    of("create_directory", &[PATH]),
    of("delete_file", &[PATH]),
    of("write_config_entry", &[need("path", ParameterKind::Path), VALUE]),
    of("add_source", &[need("spec", ParameterKind::Map)]),
    of("update_source", &[need("id", ParameterKind::Filled), need("fields", ParameterKind::Map)]),
    of(
        "clone_repo",
        &[URL, DEST, may("branch", ParameterKind::Filled), may("depth", ParameterKind::Number)],
    ),
    of("get_sha", &[REPO, STORE]),
    of("git_pull", &[REPO, MAY_STORE]),
    of("git_fetch", &[REPO]),
    of(
        "web_fetch",
        &[
            URL,
            STORE,
            may("allow_failure", ParameterKind::Boolean),
            may("prompt", ParameterKind::Filled),
        ],
    ),
    of("cache_web_content", &[FROM, DEST, may("store_path_as", ParameterKind::Path)]),
    of("display_message", &[need("message", ParameterKind::Text)]),
    of(
        "display_table",
        &[
            may("title", ParameterKind::Text),
            need("headers", ParameterKind::List),
            need("rows", ParameterKind::List),
        ],
    ),
    of(
        "invoke_pattern",
        &[
            PATH,
            may("section", ParameterKind::Filled),
            may("context", ParameterKind::Map),
            MAY_STORE,
        ],
    ),
    of("create_checkpoint", &[NAME]),
    of("rollback_checkpoint", &[NAME]),
    of(
        "spawn_agent",
        &[
            need("subagent_type", ParameterKind::Filled),
            need("prompt", ParameterKind::Filled),
            STORE,
            BACKGROUND,
        ],
    ),
    of("set_timestamp", &[STORE, may("format", ParameterKind::Filled)]),
    of(
        "compute_hash",
        &[may("from", ParameterKind::Path), may("content", ParameterKind::Any), STORE],
    ),
    of(
        "invoke_skill",
        &[
            may("skill", ParameterKind::Filled),
            may("skill_path", ParameterKind::Filled),
            may("args", ParameterKind::Any),
            MAY_STORE,
        ],
    ),
    of(
        "foreach",
        &[
            need("items", ParameterKind::List),
            may("as", ParameterKind::Word),
            need("actions", ParameterKind::Actions),
        ],
    ),
    of(
        "evaluate_keywords",
        &[need("input", ParameterKind::Text), need("keyword_sets", ParameterKind::Map), STORE],
    ),
    of(
        "init_log",
        &[
            may("workflow_name", ParameterKind::Text),
            may("workflow_version", ParameterKind::Text),
            may("skill_name", ParameterKind::Text),
            may("plugin_name", ParameterKind::Text),
            may("execution_path", ParameterKind::Text),
            may("metadata", ParameterKind::Map),
            MAY_STORE,
        ],
    ),
    of(
        "log_node",
        &[
            need("node", ParameterKind::Filled),
            need("outcome", ParameterKind::Filled),
            may("details", ParameterKind::Any),
        ],
    ),
    of(
        "log_event",
        &[need("event_type", ParameterKind::Filled), may("data", ParameterKind::Any), LEVEL],
    ),
    of("log_entry", &[need("message", ParameterKind::Text), LEVEL, CONTEXT]),
    of(
        "log_warning",
        &[need("message", ParameterKind::Text), CONTEXT, may("node", ParameterKind::Filled)],
    ),
    of(
        "log_error",
        &[
            need("message", ParameterKind::Text),
            may("details", ParameterKind::Any),
            may("error_type", ParameterKind::Filled),
            CONTEXT,
            may("node", ParameterKind::Filled),
            may("recoverable", ParameterKind::Boolean),
        ],
    ),
    of(
        "finalize_log",
        &[
            need("outcome", ParameterKind::Filled),
            may("ending_node", ParameterKind::Filled),
            may("summary", ParameterKind::Any),
        ],
    ),
    of(
        "write_log",
        &[
            may("format", ParameterKind::Filled),
            may("location", ParameterKind::Filled),
            may("filename", ParameterKind::Filled),
            may("path", ParameterKind::Filled),
        ],
    ),
    of("file_exists_check", &[PATH, FLAG_SET, MAY_STORE]),
    of("glob_files", &[PATTERN, STORE]),
    of("glob_count", &[PATTERN, STORE]),
    of("bash_exec", &[COMMAND, UNLESS, IDEMPOTENT, ONCE, MAY_STORE]),
    of("append_to_file", &[PATH, CONTENT]),
    of(
        "mutate_state",
        &[need("operation", ParameterKind::Word), FIELD, may("value", ParameterKind::Any)],
    ),
    of(
        "run_command",
        &[COMMAND, may("interpreter", ParameterKind::Word), UNLESS, IDEMPOTENT, ONCE, MAY_STORE],
    ),
    of(
        "run_folder",
        &[
            PATH,
            may("state", ParameterKind::Filled),
            VARIABLES,
            may("input", ParameterKind::Text),
            MAY_STORE,
            BACKGROUND,
        ],
    ),
    of("run_state", &[need("state", ParameterKind::Filled), VARIABLES, MAY_STORE, BACKGROUND]),
    of("bash_check", &[COMMAND, FLAG_SET, MAY_STORE]),
    of("glob_check", &[PATTERN, FLAG_SET, MAY_STORE]),
    of("any_file_exists_check", &[need("paths", ParameterKind::List), FLAG_SET, MAY_STORE]),
    of("directory_exists_check", &[PATH, FLAG_SET, MAY_STORE]),
    of(
        "display",
        &[
            need("content", ParameterKind::Any),
            may("format", ParameterKind::Word),
            may("title", ParameterKind::Text),
            may("headers", ParameterKind::List),
        ],
    ),
    of("write_config", &[may("config", ParameterKind::Map)]),
    of(
        "update_config_index_metadata",
        &[
            may("last_updated_at", ParameterKind::Any),
            may("format", ParameterKind::Any),
            may("fields", ParameterKind::Map),
        ],
    ),
    of(
        "update_source_metadata",
        &[need("id", ParameterKind::Filled), need("fields", ParameterKind::Map)],
    ),
    of(
        "update_marketplace_json",
        &[
            need("marketplace_path", ParameterKind::Filled),
            need("plugin_name", ParameterKind::Filled),
            need("plugin_path", ParameterKind::Filled),
        ],
    ),
    of("discover_plugins", &[PATTERN, STORE, USER]),
    of("discover_installed_corpora", &[STORE, USER]),
    of(
        "log_source_status",
        &[
            need("source_id", ParameterKind::Filled),
            need("status", ParameterKind::Filled),
            may("source_type", ParameterKind::Any),
            may("indexed_sha", ParameterKind::Any),
            may("upstream_sha", ParameterKind::Any),
            may("indexed_hash", ParameterKind::Any),
            may("current_hash", ParameterKind::Any),
            may("commits_behind", ParameterKind::Any),
            may("action", ParameterKind::Any),
        ],
    ),
    of(
        "log_source_changes",
        &[need("source_id", ParameterKind::Filled), need("changes", ParameterKind::Any)],
    ),
    of(
        "log_index_update",
        &[
            need("files", ParameterKind::List),
            may("entries_added", ParameterKind::Any),
            may("entries_removed", ParameterKind::Any),
            may("keywords_preserved", ParameterKind::Any),
        ],
    ),
    of(
        "log_session_snapshot",
        &[need("description", ParameterKind::Text), may("node", ParameterKind::Filled)],
    ),
    of(
        "apply_log_retention",
        &[
            need("strategy", ParameterKind::Filled),
            may("days", ParameterKind::Any),
            may("count", ParameterKind::Any),
            may("location", ParameterKind::Filled),
        ],
    ),
    of("output_ci_summary", &[need("format", ParameterKind::Filled)]),
    of(
        "parse_intent_flags",
        &[need("input", ParameterKind::Any), need("flag_definitions", ParameterKind::Map), STORE],
    ),
    of(
        "match_3vl_rules",
        &[need("flags", ParameterKind::Map), need("rules", ParameterKind::List), STORE],
    ),
    of("dynamic_route", &[need("action", ParameterKind::Filled)]),
    of(
        "spawn_agents_parallel",
        &[
            need("foreach", ParameterKind::Path),
            may("as", ParameterKind::Word),
            may("agent_type", ParameterKind::Filled),
            may("subagent_type", ParameterKind::Filled),
            may("prompt_template", ParameterKind::Filled),
            may("prompt", ParameterKind::Filled),
            may("collect_as", ParameterKind::Path),
            MAY_STORE,
            may("join", ParameterKind::Any),
            may("timeout", ParameterKind::Word),
            may("rest", ParameterKind::Word),
        ],
    ),
];
