//! The privileges of a workflow: each needs the trust of the person who starts it. Pure.
//!
//! A prompt by itself can do what the permission mode lets Claude Code do. Everything that runs programs,
//! reaches beyond the workspace or widens permissions is a privilege.

use std::path::Path;

use strum::IntoStaticStr;

use super::obeyed_name::{obeyed_name, refused_name};
use super::operation::Operation;

/// A kind of action that goes beyond a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Privilege {
    /// Runs commands of the workflow.
    Commands,
    /// Reaches other machines.
    Network,
    /// Reads files outside of the workspace.
    Outside,
    /// Starts a program beside the run.
    PlugIns,
    /// Widens what Claude Code may do.
    Permissions,
    /// Brings settings that Claude Code reads by itself.
    ClaudeSettings,
    /// Writes files that other programs obey.
    ToolFiles,
}

/// The operations that stay within the workspace and run nothing.
const CONFINED: [&str; 28] = [
    "add_source",
    "any_file_exists",
    "append_to_file",
    "apply_log_retention",
    "cache_web_content",
    "config_exists",
    "create_directory",
    "delete_file",
    "directory_exists",
    "discover_plugins",
    "file_exists",
    "get_sha",
    "glob_count",
    "glob_exists",
    "glob_files",
    "index_exists",
    "index_is_placeholder",
    "read_config",
    "read_file",
    "source_cloned",
    "source_exists",
    "tool_available",
    "update_config_index_metadata",
    "update_marketplace_json",
    "update_source",
    "write_config",
    "write_config_entry",
    "write_file",
];

/// Those of them that change the file or directory that the graph names.
const WRITES: [&str; 6] = [
    "append_to_file",
    "apply_log_retention",
    "cache_web_content",
    "create_directory",
    "delete_file",
    "write_file",
];

/// The types that graphs give the operations which take a privilege.
pub const PRIVILEGED: [(&str, Privilege); 11] = [
    ("bash_check", Privilege::Commands),
    ("bash_exec", Privilege::Commands),
    ("clone_repo", Privilege::Network),
    ("discover_user_plugins", Privilege::Outside),
    ("git_fetch", Privilege::Network),
    ("git_pull", Privilege::Network),
    ("python_module_available", Privilege::Commands),
    ("run_command", Privilege::Commands),
    ("run_script", Privilege::Commands),
    ("source_has_updates", Privilege::Network),
    ("web_fetch", Privilege::Network),
];

impl Privilege {
    /// Returns the privilege that an operation takes, by its type. A type that is not known counts as one that runs
    /// commands.
    pub fn of_operation_type(name: &str) -> Option<Self> {
        if CONFINED.contains(&name) {
            return None;
        }
        let known = PRIVILEGED.into_iter().find(|(privileged, _)| *privileged == name);
        Some(known.map_or(Self::Commands, |(_, privilege)| privilege))
    }

    /// Returns the privilege that an operation of this type takes if it is about this path, as it is written.
    pub fn of_written_path(name: &str, path: &str) -> Option<Self> {
        let path = Path::new(path);
        // What is refused with trust, too, need not be trusted.
        let needs = obeyed_name(path).is_some() && refused_name(path).is_none();
        (needs && WRITES.contains(&name)).then_some(Self::ToolFiles)
    }

    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns what it allows, after "the workflow".
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Commands => "runs commands",
            Self::Network => "reaches other machines",
            Self::Outside => "reads files outside the workspace",
            Self::PlugIns => "starts plug-ins",
            Self::Permissions => "widens what Claude Code may do",
            Self::ToolFiles => "writes files that other programs obey",
            Self::ClaudeSettings => "brings settings of Claude Code, which may run hooks",
        }
    }
}

impl Operation {
    /// Returns the privilege that it needs. Types that a program using the library has added need none.
    pub fn privilege(&self) -> Option<Privilege> {
        match self {
            Self::Own { .. } => None,
            known => Privilege::of_operation_type(known.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use strum::VariantNames;

    use super::*;
    use crate::domain::operation::RecoveryClass;

    #[test]
    fn each_operation_is_either_confined_or_privileged() {
        for name in Operation::VARIANTS.iter().filter(|name| **name != "own") {
            let is_privileged = PRIVILEGED.iter().any(|(privileged, _)| privileged == name);
            assert_ne!(CONFINED.contains(name), is_privileged, "{name}");
        }
    }

    #[test]
    fn writing_a_file_that_programs_obey_requires_privilege() {
        let of = Privilege::of_written_path;
        for path in [".github/workflows/${name}.yml", "Makefile", "${dir}/.vimrc"] {
            assert_eq!(of("write_file", path), Some(Privilege::ToolFiles), "{path}");
        }
        assert_eq!((of("read_file", ".vimrc"), of("write_file", "notes.md")), (None, None));
        assert_eq!(of("write_file", "a/.git/config"), None, "it is refused in any case");
        assert!(WRITES.iter().all(|name| CONFINED.contains(name)));
    }

    #[test]
    fn command_network_and_unknown_operations_require_privilege() {
        let of = Privilege::of_operation_type;
        assert_eq!(of("bash_exec"), Some(Privilege::Commands));
        assert_eq!(of("python_module_available"), Some(Privilege::Commands));
        assert_eq!(of("not_known_yet"), Some(Privilege::Commands));
        assert_eq!((of("web_fetch"), of("write_file")), (Some(Privilege::Network), None));
        let operation = |json| serde_json::from_value::<Operation>(json).expect("an operation");
        let exec = operation(json!({"type": "bash_exec", "command": "x"}));
        assert_eq!(exec.privilege(), Some(Privilege::Commands));
        let own =
            Operation::Own { name: "x".into(), parameters: Map::new(), class: RecoveryClass::Read };
        assert_eq!(own.privilege(), None);
        for name in CONFINED {
            let keys = [
                "path",
                "content",
                "dest",
                "id",
                "location",
                "marketplace_path",
                "pattern",
                "plugin_name",
                "plugin_path",
                "repo_path",
                "tool",
                "url",
            ];
            let mut all = json!({"type": name, "spec": {}, "fields": {}, "value": {}, "paths": []});
            for key in keys {
                all[key] = json!("x");
            }
            assert_eq!(operation(all).privilege(), None, "{name} is an operation");
        }
    }
}
