//! Deterministic operations of a graph on its environment, as plain data.
//!
//! The parameters are already filled in. [`RecoveryClass`] decides crash handling, and with it the order of
//! operation and record: writes run only after a record that they are due, reads are repeated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantNames};

pub use super::recovery_class::RecoveryClass;
use super::shell_command::ShellCommand;

/// A deterministic operation. A precondition's answer is a boolean.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantNames,
)]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Operation {
    /// Checks whether `data/config.yaml` exists.
    ConfigExists,
    /// Checks whether `data/index.md` exists.
    IndexExists,
    /// Checks whether `data/index.md` is the one that a new corpus begins with.
    IndexIsPlaceholder,
    /// Checks whether a file exists.
    FileExists {
        /// The path below the workspace root.
        path: String,
    },
    /// Checks whether a directory exists.
    DirectoryExists {
        /// The path below the workspace root.
        path: String,
    },
    /// Checks whether the configuration has a source.
    SourceExists {
        /// The source's id.
        id: String,
    },
    /// Checks whether the clone of a source exists.
    SourceCloned {
        /// The source's id.
        id: String,
    },
    /// Checks whether the upstream of a source's clone has updates.
    SourceHasUpdates {
        /// The source's id.
        id: String,
    },
    /// Checks whether a program is on the PATH.
    ToolAvailable {
        /// The name of the program.
        tool: String,
    },
    /// Checks whether python3 can import a module.
    PythonModuleAvailable {
        /// The name of the module.
        module: String,
    },
    /// Reads the configuration, as data.
    ReadConfig,
    /// Reads the text of a file.
    ReadFile {
        /// The path below the workspace root.
        path: String,
    },
    /// Lists the paths of the files that match a pattern, in order.
    GlobFiles {
        /// The pattern, below the workspace root.
        pattern: String,
    },
    /// Counts the files that match a pattern.
    GlobCount {
        /// The pattern, below the workspace root.
        pattern: String,
    },
    /// Reads the commit a repository is at.
    GetSha {
        /// The path below the workspace root.
        repo_path: String,
    },
    /// Fetches from a repository's remote.
    GitFetch {
        /// The path below the workspace root.
        repo_path: String,
    },
    /// Fetches a page; the answer is `{status, content, url}`.
    WebFetch {
        /// The address of the page.
        url: String,
        /// True if a failure is an answer too.
        #[serde(default)]
        allow_failure: bool,
    },
    /// Writes a file atomically, and makes its directories.
    WriteFile {
        /// The path below the workspace root.
        path: String,
        /// The new content.
        content: String,
    },
    /// Makes a directory.
    CreateDirectory {
        /// The path below the workspace root.
        path: String,
    },
    /// Removes a file.
    DeleteFile {
        /// The path below the workspace root.
        path: String,
    },
    /// Writes a fetched page to a file; the answer is the path.
    CacheWebContent {
        /// The content of the page.
        content: String,
        /// The path below the workspace root.
        dest: String,
    },
    /// Sets an entry of the configuration.
    WriteConfigEntry {
        /// The keys of the entry, with dots between them.
        path: String,
        /// The new value.
        value: Value,
    },
    /// Changes a source of the configuration.
    UpdateSource {
        /// The source's id.
        id: String,
        /// The fields that change.
        fields: Map<String, Value>,
    },
    /// Brings a repository up to its upstream, fast-forward only.
    GitPull {
        /// The path below the workspace root.
        repo_path: String,
    },
    /// Adds a source to the configuration.
    AddSource {
        /// The source; it has an `id`.
        spec: Map<String, Value>,
    },
    /// Clones a repository.
    CloneRepo {
        /// The address of the repository.
        url: String,
        /// The path of the clone, below the workspace root.
        dest: String,
        /// The branch; `None` for the default branch of the remote.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// The number of commits to fetch; 0 for all.
        #[serde(default = "one")]
        depth: u32,
    },
    /// Appends to a file.
    AppendToFile {
        /// The path below the workspace root.
        path: String,
        /// The text to append.
        content: String,
    },
    /// Runs a command by `sh -c`; the answer is `{exit_code, stdout, stderr}`. Fails unless the exit code is 0.
    BashExec(ShellCommand),
    /// An operation type that a program using the library has added.
    Own {
        /// The name of the type.
        name: String,
        /// The parameters of the operation.
        parameters: Map<String, Value>,
        /// The recovery class of the operation.
        class: RecoveryClass,
    },
}

fn one() -> u32 {
    1
}

/// The result of an operation: a value, or the reason why there is none.
pub type OperationResult = Result<Value, String>;

impl Operation {
    /// Returns the type of the operation, as a graph names it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Own { name, .. } => name,
            known => known.into(),
        }
    }

    /// Returns the recovery class of the operation.
    #[must_use]
    pub fn class(&self) -> RecoveryClass {
        match self {
            Self::ConfigExists
            | Self::IndexExists
            | Self::IndexIsPlaceholder
            | Self::FileExists { .. }
            | Self::DirectoryExists { .. }
            | Self::SourceExists { .. }
            | Self::SourceCloned { .. }
            | Self::SourceHasUpdates { .. }
            | Self::ToolAvailable { .. }
            | Self::PythonModuleAvailable { .. }
            | Self::ReadConfig
            | Self::ReadFile { .. }
            | Self::GlobFiles { .. }
            | Self::GlobCount { .. }
            | Self::GetSha { .. }
            | Self::GitFetch { .. }
            | Self::WebFetch { .. } => RecoveryClass::Read,
            Self::WriteFile { .. }
            | Self::CreateDirectory { .. }
            | Self::DeleteFile { .. }
            | Self::CacheWebContent { .. }
            | Self::WriteConfigEntry { .. }
            | Self::UpdateSource { .. }
            | Self::GitPull { .. } => RecoveryClass::Converges,
            Self::AddSource { .. } | Self::CloneRepo { .. } | Self::AppendToFile { .. } => {
                RecoveryClass::Guarded
            }
            Self::BashExec(command) => command.class(),
            Self::Own { class, .. } => *class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_repo_parses_with_default_depth_and_is_guarded() {
        let json = serde_json::json!({"type": "clone_repo", "url": "u", "dest": "d"});
        let clone: Operation = serde_json::from_value(json).expect("an operation");
        assert!(matches!(&clone, Operation::CloneRepo { depth: 1, branch: None, .. }));
        assert_eq!(clone.class(), RecoveryClass::Guarded);
    }
}
