//! Reads the note that a script or a command has left of its outcome, for people.
//!
//! Its proof is not looked at.

use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::domain::json_mistake::placed_mistake;
use crate::plain_file;

/// The longest note that is read, in bytes.
const MAX_LENGTH: u64 = 16 * 1024 * 1024;

/// The output of a script or a command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ScriptOutput {
    /// Its exit code.
    pub exit_code: i64,
    /// Its stdout, or the beginning and the end of it.
    pub stdout: String,
    /// Its stderr, or the beginning and the end of it.
    pub stderr: String,
}

#[derive(Deserialize)]
struct NotedOutcome {
    outcome: Result<Value, String>,
}

/// Returns the output of the script or the command of a turn, or the reason why it failed; `None` if it has not ended, if
/// raymond noted nothing, or if it was another operation.
///
/// # Errors
/// The error of the system, or a note that is none.
pub fn script_output(steps: &Path, turn: &str) -> io::Result<Option<Result<ScriptOutput, String>>> {
    match plain_file::read(&steps.join(format!("{turn}.done")), MAX_LENGTH) {
        Ok(bytes) => {
            let noted: NotedOutcome = serde_json::from_slice(&bytes)
                .map_err(|error| io::Error::other(placed_mistake(&error)))?;
            let output = |value| serde_json::from_value::<ScriptOutput>(value).ok();
            Ok(match noted.outcome {
                Ok(value) => output(value).map(Ok),
                Err(why) => Some(Err(why)),
            })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
