//! A command of a shell, as a graph or a program asks for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::Folder;
use super::recovery_class::RecoveryClass;

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
