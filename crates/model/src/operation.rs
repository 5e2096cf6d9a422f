//! The operations of graphs and the shell commands of graphs and programs, as plain data, with their recovery classes.
//!
//! The parameters are already filled in. [`RecoveryClass`] says what a crash in the middle of an operation means. It
//! decides crash handling, and with it the order of operation and record: writes run only after a record that they are
//! due, reads are repeated.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantNames};

pub use crate::graph_types::RecoveryClass;
use crate::graph_types::{ChangedPath, OperationFacts, operation_facts, operation_of_pack};
use crate::id::Folder;
use crate::privilege::Privilege;

/// A deterministic operation. A precondition's answer is a boolean.
#[derive(Debug, Clone, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantNames)]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Operation {
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
    /// Brings a repository up to its upstream, fast-forward only.
    GitPull {
        /// The path below the workspace root.
        repo_path: String,
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
    BashCheck { command: String },
    /// An operation type that a program using the library has added.
    Own {
        /// The name of the type.
        name: String,
        /// The parameters of the operation.
        parameters: Map<String, Value>,
        /// The recovery class of the operation.
        class: RecoveryClass,
    },
    /// An operation of a pack.
    #[serde(untagged)]
    Pack(PackOperation),
}

/// An operation of a pack, whose parameters only the pack reads: `{"type": …}` and the parameters beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
#[schemars(with = "Map<String, Value>")]
pub struct PackOperation {
    /// Its type, one of a pack.
    name: String,
    parameters: Map<String, Value>,
}

impl PackOperation {
    /// Returns its type.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl TryFrom<Map<String, Value>> for PackOperation {
    type Error = String;

    fn try_from(mut given: Map<String, Value>) -> Result<Self, String> {
        let kind = given.shift_remove("type").unwrap_or_default();
        let known = kind.as_str().and_then(operation_of_pack);
        let known = known.ok_or_else(|| format!("unknown operation {kind}"))?;
        let place = |name: &str| known.parameters.iter().position(|known| known.name == name);
        let mut parameters: Vec<(String, Value)> = given.into_iter().collect();
        parameters.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        Ok(Self { name: known.name.to_owned(), parameters: parameters.into_iter().collect() })
    }
}

impl From<PackOperation> for Map<String, Value> {
    fn from(PackOperation { name, parameters }: PackOperation) -> Self {
        [("type".to_owned(), name.into())].into_iter().chain(parameters).collect()
    }
}

fn one() -> u32 {
    1
}

/// The result of an operation: a value, or the reason why there is none.
pub type OperationResult = Result<Value, String>;

impl Operation {
    /// Returns the type of the operation, as a graph names it.
    pub fn name(&self) -> &str {
        match self {
            Self::Own { name, .. } => name,
            Self::Pack(operation) => operation.name(),
            known => known.into(),
        }
    }

    /// Returns the recovery class of the operation.
    pub fn class(&self) -> RecoveryClass {
        match self {
            Self::BashExec(command) => command.class(),
            Self::Own { class, .. } => *class,
            known => known.facts().map_or(RecoveryClass::Uncertain, |facts| facts.class),
        }
    }

    /// Returns the privilege that it needs. Types that a program using the library has added need none.
    pub fn privilege(&self) -> Option<Privilege> {
        match self {
            Self::Own { .. } => None,
            known => Privilege::of_operation_type(known.name()),
        }
    }

    /// Returns the path that it changes, if the graph names it.
    pub fn changed_path(&self) -> Option<(&str, ChangedPath)> {
        let changed = self.facts()?.changes?;
        let path = match self {
            Self::WriteFile { path, .. }
            | Self::AppendToFile { path, .. }
            | Self::CreateDirectory { path }
            | Self::DeleteFile { path }
            | Self::CacheWebContent { dest: path, .. }
            | Self::CloneRepo { dest: path, .. }
            | Self::GitPull { repo_path: path } => path,
            Self::Pack(operation) => operation.parameters.get(changed.parameter)?.as_str()?,
            _ => return None,
        };
        Some((path, changed))
    }

    fn facts(&self) -> Option<&'static OperationFacts> {
        match self {
            Self::Own { .. } => None,
            known => operation_facts(known.name()),
        }
    }
}

/// A command for `sh -c`. It fails unless its exit code is 0; with `any_exit_code` each exit code is a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShellCommand {
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use strum::VariantNames;

    use super::*;
    use crate::graph_types::all_types;

    #[test]
    fn clone_repo_parses_with_default_depth_and_is_guarded() {
        let json = json!({"type": "clone_repo", "url": "u", "dest": "d"});
        let clone: Operation = serde_json::from_value(json).expect("an operation");
        assert!(matches!(&clone, Operation::CloneRepo { depth: 1, branch: None, .. }));
        assert_eq!(clone.class(), RecoveryClass::Guarded);
    }

    /// Returns an operation of a type with all parameters that any type has.
    fn operation(name: &str) -> Operation {
        let keys = "path content dest id location marketplace_path pattern plugin_name plugin_path \
                    repo_path tool url command module file home";
        let mut all = json!({"type": name, "spec": {}, "fields": {}, "value": {}, "paths": []});
        for key in keys.split_whitespace() {
            all[key] = json!("x");
        }
        let script = json!({"interpreter": [], "environment": {}, "timeout_ms": 1});
        all.as_object_mut().expect("a map").extend(script.as_object().cloned().expect("a map"));
        serde_json::from_value(all).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[test]
    fn every_operation_has_facts_and_names_the_path_that_it_changes() {
        let typed = Operation::VARIANTS.iter().filter(|name| !["own", "pack"].contains(name));
        let packed =
            all_types().map(|known| &known.name).filter(|name| operation_of_pack(name).is_some());
        assert_eq!((typed.clone().count(), packed.clone().count()), (22, 16));
        for name in typed.chain(packed) {
            let operation = operation(name);
            assert_eq!(operation.name(), *name);
            let facts = operation.facts().unwrap_or_else(|| panic!("{name}"));
            assert_eq!(operation.privilege(), facts.privilege, "{name}");
            let changed = facts.changes.map(|changed| ("x", changed));
            assert_eq!(operation.changed_path(), changed, "{name}");
        }
        // `run_command` is `bash_exec` in later graphs.
        let with_facts = all_types().filter(|known| known.operation.is_some()).count();
        assert_eq!(with_facts, 22 + 16 + 1);
    }

    #[test]
    fn operation_of_a_pack_is_stored_and_unknown_operation_is_refused() {
        let stored = json!({"type": "source_exists", "id": "a"});
        let operation: Operation = serde_json::from_value(stored.clone()).expect("an operation");
        assert_eq!((operation.name(), operation.class()), ("source_exists", RecoveryClass::Read));
        assert_eq!(serde_json::to_value(&operation).expect("JSON"), stored);
        for refused in [
            json!({"type": "sources_exist", "id": "a"}),
            json!({"type": "write_file", "path": "a"}),
            json!({"type": "set_flag"}),
            json!({"id": "a"}),
        ] {
            assert!(serde_json::from_value::<Operation>(refused.clone()).is_err(), "{refused}");
        }
    }
}
