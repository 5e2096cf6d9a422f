//! What a script has left behind when it ended, for people: the note of its outcome, without a look at its proof.

use std::io::{self, ErrorKind};
use std::path::Path;

use serde::Deserialize;

use crate::domain::json_mistake::placed_mistake;
use crate::plain_file;

/// The longest note that is read, in bytes.
const MAX_LENGTH: u64 = 16 * 1024 * 1024;

/// The output of a script.
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
    outcome: Result<ScriptOutput, String>,
}

/// Returns the output of the script of a turn, or the reason why it failed; `None` if it has not ended, or if raymond
/// noted nothing.
///
/// # Errors
/// The error of the system, or a note that is none.
pub fn script_output(steps: &Path, turn: &str) -> io::Result<Option<Result<ScriptOutput, String>>> {
    match plain_file::read(&steps.join(format!("{turn}.done")), MAX_LENGTH) {
        Ok(bytes) => {
            let noted: NotedOutcome = serde_json::from_slice(&bytes)
                .map_err(|error| io::Error::other(placed_mistake(&error)))?;
            Ok(Some(noted.outcome))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
