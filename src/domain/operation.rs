//! What a graph asks of the world: one deterministic operation, as plain data.
//!
//! Its parameters are filled in already. [`RecoveryClass`] says what a crash in the middle of it means, and with
//! that when its turn in the journal comes: what changes the world is done only after a record that it is
//! due, what only looks is looked at again.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A deterministic operation. A precondition's answer is a boolean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Operation {
    /// Whether `data/config.yaml` is there.
    ConfigExists,
    /// Whether `data/index.md` is there.
    IndexExists,
    /// Whether `data/index.md` is the one a new corpus begins with.
    IndexIsPlaceholder,
    /// Whether there is such a file.
    FileExists {
        /// Below the workspace root.
        path: String,
    },
    /// Whether there is such a directory.
    DirectoryExists {
        /// Below the workspace root.
        path: String,
    },
    /// Whether the configuration has a source.
    SourceExists {
        /// The source's id.
        id: String,
    },
    /// Whether the clone of a source is there.
    SourceCloned {
        /// The source's id.
        id: String,
    },
    /// Whether the upstream of a source's clone has gone on.
    SourceHasUpdates {
        /// The source's id.
        id: String,
    },
    /// Whether a program is on the PATH.
    ToolAvailable {
        /// Its name.
        tool: String,
    },
    /// Whether python3 can import a module.
    PythonModuleAvailable {
        /// Its name.
        module: String,
    },
    /// The configuration, as data.
    ReadConfig,
    /// The text of a file.
    ReadFile {
        /// Below the workspace root.
        path: String,
    },
    /// The files that a pattern names: their paths in order.
    GlobFiles {
        /// Below the workspace root.
        pattern: String,
    },
    /// How many they are.
    GlobCount {
        /// Below the workspace root.
        pattern: String,
    },
    /// The commit a repository is at.
    GetSha {
        /// Below the workspace root.
        repo_path: String,
    },
    /// Fetches from a repository's remote.
    GitFetch {
        /// Below the workspace root.
        repo_path: String,
    },
    /// A page: `{status, content, url}`.
    WebFetch {
        /// Its address.
        url: String,
        /// A failure is an answer too.
        #[serde(default)]
        allow_failure: bool,
    },
    /// Writes a file, with its directories, as a whole or not at all.
    WriteFile {
        /// Below the workspace root.
        path: String,
        /// What it holds then.
        content: String,
    },
    /// Makes a directory.
    CreateDirectory {
        /// Below the workspace root.
        path: String,
    },
    /// Removes a file.
    DeleteFile {
        /// Below the workspace root.
        path: String,
    },
    /// Writes what was fetched; the answer is the path.
    CacheWebContent {
        /// The page.
        content: String,
        /// Below the workspace root.
        dest: String,
    },
    /// Sets an entry of the configuration.
    WriteConfigEntry {
        /// Its keys, with dots between them.
        path: String,
        /// What it is then.
        value: Value,
    },
    /// Changes a source of the configuration.
    UpdateSource {
        /// The source's id.
        id: String,
        /// What is changed of it.
        fields: Map<String, Value>,
    },
    /// Brings a repository up to its upstream, fast-forward only.
    GitPull {
        /// Below the workspace root.
        repo_path: String,
    },
    /// Adds a source to the configuration.
    AddSource {
        /// The source; it has an `id`.
        spec: Map<String, Value>,
    },
    /// Clones a repository.
    CloneRepo {
        /// Where it is.
        url: String,
        /// Below the workspace root.
        dest: String,
        /// The branch, or the remote's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// How many commits; 0 for all.
        #[serde(default = "one")]
        depth: u32,
    },
    /// Adds to the end of a file.
    AppendToFile {
        /// Below the workspace root.
        path: String,
        /// What is added.
        content: String,
    },
    /// Runs a command by `sh -c`: `{exit_code, stdout, stderr}`; fails unless it ends with 0.
    BashExec {
        /// The command.
        command: String,
    },
    /// A type that a program using the library has added.
    Own {
        /// Its name.
        name: String,
        /// Its parameters.
        parameters: Map<String, Value>,
        /// What a crash in the middle of it means.
        class: RecoveryClass,
    },
}

fn one() -> u32 {
    1
}

/// What a crash in the middle of an operation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryClass {
    /// It changes nothing: it is asked again.
    Read,
    /// Doing it again comes to the same.
    Converges,
    /// It finds out by itself whether it was done. Adding to a file may find that somebody else was at
    /// it, and then nobody can say.
    Guarded,
    /// Nobody can say whether it was done: the restart policy decides.
    Uncertain,
}

/// What an operation came to: a value, or why there is none.
pub type OperationResult = Result<Value, String>;

impl Operation {
    /// Its type, as a graph names it.
    #[must_use]
    pub fn name(&self) -> String {
        if let Self::Own { name, .. } = self {
            return name.clone();
        }
        let json = serde_json::to_value(self).ok();
        let name = json.as_ref().and_then(|json| json.get("type")?.as_str());
        name.unwrap_or_default().to_owned()
    }

    /// What a crash in the middle of it means.
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
            Self::BashExec { .. } => RecoveryClass::Uncertain,
            Self::Own { class, .. } => *class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_by_their_names() {
        let json = serde_json::json!({"type": "clone_repo", "url": "u", "dest": "d"});
        let clone: Operation = serde_json::from_value(json).expect("an operation");
        assert!(matches!(&clone, Operation::CloneRepo { depth: 1, branch: None, .. }));
        assert_eq!(clone.class(), RecoveryClass::Guarded);
    }
}
