//! The types by their kind, for the error about an unknown one.

use super::TypeRole;
use super::TypeRole::{Consequence, Precondition};

/// The kinds of types, with the role and the types of each.
pub(super) const GROUPS: &[(TypeRole, &str, &[&str])] = &[
    (
        Precondition,
        "state",
        &[
            "flag_set",
            "flag_not_set",
            "state_equals",
            "state_is_null",
            "state_not_null",
            "state_check",
            "count_equals",
            "count_above",
            "count_below",
            "fetch_succeeded",
            "fetch_returned_content",
        ],
    ),
    (Precondition, "logic", &["all_of", "any_of", "none_of", "evaluate_expression"]),
    (
        Precondition,
        "files and programs",
        &[
            "file_exists",
            "directory_exists",
            "path_check",
            "tool_available",
            "tool_check",
            "python_module_available",
        ],
    ),
    (
        Precondition,
        "corpus",
        &[
            "config_exists",
            "index_exists",
            "index_is_placeholder",
            "source_exists",
            "source_cloned",
            "source_has_updates",
        ],
    ),
    (
        Consequence,
        "state",
        &[
            "set_flag",
            "set_state",
            "append_state",
            "clear_state",
            "merge_state",
            "mutate_state",
            "evaluate",
            "compute",
            "compute_hash",
            "set_timestamp",
            "evaluate_keywords",
            "create_checkpoint",
            "rollback_checkpoint",
        ],
    ),
    (Consequence, "loops and output", &["foreach", "display_message", "display_table"]),
    (
        Consequence,
        "log",
        &[
            "init_log",
            "log_node",
            "log_event",
            "log_entry",
            "log_warning",
            "log_error",
            "finalize_log",
            "write_log",
        ],
    ),
    (
        Consequence,
        "files",
        &[
            "read_file",
            "write_file",
            "append_to_file",
            "create_directory",
            "delete_file",
            "glob_files",
            "glob_count",
            "file_exists_check",
        ],
    ),
    (Consequence, "commands", &["bash_exec", "run_command"]),
    (Consequence, "git", &["clone_repo", "get_sha", "git_fetch", "git_pull"]),
    (Consequence, "web", &["web_fetch", "cache_web_content"]),
    (Consequence, "corpus", &["read_config", "write_config_entry", "add_source", "update_source"]),
    (
        Consequence,
        "Claude Code",
        &["invoke_pattern", "invoke_skill", "spawn_agent", "run_state", "run_folder"],
    ),
];
