//! Deterministic operations of a graph on its environment, as plain data.
//!
//! The parameters are already filled in. [`RecoveryClass`] decides crash handling, and with it the order of
//! operation and record: writes run only after a record that they are due, reads are repeated.
//!
//! The recovery classes of operations: what a crash in the middle of one means.
//!
//! A command of a shell, as a graph or a program asks for it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantNames};

use crate::id::Folder;

/// A deterministic operation. A precondition's answer is a boolean.
#[derive(Debug, Clone, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantNames)]
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
    /// Checks whether one of several files exists.
    AnyFileExists {
        /// The paths below the workspace root.
        paths: Vec<String>,
    },
    /// Checks whether a pattern names a file, or a directory if it ends with a `/`.
    GlobExists {
        /// The pattern, below the workspace root.
        pattern: String,
    },
    /// Lists the plug-ins in the workspace: `{name, path, status, description, keywords}`.
    DiscoverPlugins {
        /// The pattern of the names of their directories.
        pattern: String,
    },
    /// Lists the plug-ins in the workspace and those that a person has installed.
    DiscoverUserPlugins {
        /// The pattern of the names of their directories.
        pattern: String,
        /// The person's home directory.
        home: String,
        /// False if only the workspace counts after all.
        #[serde(default = "yes")]
        user: bool,
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
    /// Replaces the configuration; without a new one it only checks that there is one that can be read.
    WriteConfig {
        /// The new configuration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<Map<String, Value>>,
    },
    /// Sets fields of the entry `index` of the configuration.
    UpdateConfigIndexMetadata {
        /// The fields that change.
        fields: Map<String, Value>,
    },
    /// Enters a plug-in into the list of a marketplace.
    UpdateMarketplaceJson {
        /// The path of the list, below the workspace root.
        marketplace_path: String,
        /// The name of the plug-in.
        plugin_name: String,
        /// The path of the plug-in, as the list has it.
        plugin_path: String,
    },
    /// Removes old log files; the answer is the number of files that were removed.
    ApplyLogRetention {
        /// The path of the directory of the log files, below the workspace root.
        location: String,
        /// The date from which files are kept, such as `2026-01-15`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<String>,
        /// The number of files that are kept, the newest ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u32>,
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
    /// Runs a script of the workflow; the answer is `{exit_code, stdout, stderr}`. Fails unless the exit code is 0.
    RunScript {
        /// The path of the script below the workflow's folder; where it is performed, that of the file to execute.
        file: String,
        /// The program that executes it, and its first arguments.
        interpreter: Vec<String>,
        /// The variables that are added to its environment.
        environment: BTreeMap<String, String>,
        /// The longest time that it may take, in milliseconds.
        timeout_ms: u64,
    },
    /// Runs a command that only checks something, by `sh -c`; the answer is whether its exit code is 0.
    BashCheck {
        /// The command.
        command: String,
    },
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

fn yes() -> bool {
    true
}

/// The result of an operation: a value, or the reason why there is none.
pub type OperationResult = Result<Value, String>;

impl Operation {
    /// Returns the type of the operation, as a graph names it.
    pub fn name(&self) -> &str {
        match self {
            Self::Own { name, .. } => name,
            known => known.into(),
        }
    }

    /// Returns the recovery class of the operation.
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
            | Self::AnyFileExists { .. }
            | Self::GlobExists { .. }
            | Self::DiscoverPlugins { .. }
            | Self::DiscoverUserPlugins { .. }
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
            | Self::WriteConfig { .. }
            | Self::UpdateConfigIndexMetadata { .. }
            | Self::UpdateMarketplaceJson { .. }
            | Self::ApplyLogRetention { .. }
            | Self::GitPull { .. }
            | Self::BashCheck { .. } => RecoveryClass::Converges,
            Self::AddSource { .. } | Self::CloneRepo { .. } | Self::AppendToFile { .. } => {
                RecoveryClass::Guarded
            }
            Self::BashExec(command) => command.class(),
            Self::RunScript { .. } => RecoveryClass::Uncertain,
            Self::Own { class, .. } => *class,
        }
    }
}

/// A command for `sh -c`. It fails unless its exit code is 0; with `any_exit_code` each exit code is a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShellCommand {
    /// The command.
    pub command: String,
    /// The values of `$1`, `$2` and so on in the command. The shell does not read them as code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// The directory below the workspace root; `None` for the root itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
    /// The longest time that it may take, in milliseconds; 30 minutes by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// True if each exit code is a result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_exit_code: bool,
    /// A test that runs before the command each time. If its exit code is 0, the command was done and is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
    /// True if running the command twice has the same effect as running it once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// True if the command is never repeated: after a crash in the middle of it, the operation fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
}

impl ShellCommand {
    /// Returns a command without arguments, that runs in the workspace root and may not be repeated.
    pub fn of(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            arguments: Vec::new(),
            cwd: None,
            timeout_ms: None,
            any_exit_code: false,
            unless: None,
            idempotent: false,
            once: false,
        }
    }

    /// Returns the recovery class of the command.
    pub fn class(&self) -> RecoveryClass {
        if self.idempotent {
            RecoveryClass::Converges
        } else if self.unless.is_some() {
            RecoveryClass::Guarded
        } else {
            RecoveryClass::Uncertain
        }
    }
}

/// The way in which an operation recovers from a crash in the middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryClass {
    /// The operation changes nothing, and is repeated.
    Read,
    /// The operation is idempotent, and is repeated.
    Converges,
    /// The operation finds out by itself whether it was done. Appending to a file may find that another writer
    /// was there too, and then it is not known.
    Guarded,
    /// It is not known whether the operation was done. The restart policy decides.
    Uncertain,
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
