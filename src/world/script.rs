//! Runs a script of the workflow, at most once for a step.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::domain::json_mistake::placed_mistake;
use crate::plain_file;
use crate::process::child::group::ProcessExit;
use crate::world::at_most_once::run_at_most_once;
use crate::world::context::{OperationContext, OperationProgram};
use crate::world::outcome::OperationError;
use crate::world::shell::{MAX_OUTPUT_BYTES, complaints};

/// The longest value of a variable, in bytes: what Linux takes, less the name.
const MAX_VALUE_BYTES: usize = 128 * 1024 - 512;

/// The beginnings of the names of a script's variables.
const VARIABLE_PREFIXES: [&str; 3] = ["RAYMOND_VAR_", "RAYMOND_INPUT", "RAYMOND_RESULT"];

/// A script to run.
pub(super) struct ScriptRun<'operation> {
    /// The path of the file.
    pub(super) file: &'operation str,
    /// The program that executes it, and its first arguments; empty if it is executed itself.
    pub(super) interpreter: &'operation [String],
    /// The variables that are added to its environment.
    pub(super) environment: &'operation BTreeMap<String, String>,
    /// The longest time that it may take.
    pub(super) longest: Duration,
}

impl ScriptRun<'_> {
    /// Runs the script, and returns `{exit_code, stdout, stderr}`.
    pub(super) async fn perform(
        &self,
        shared: &Arc<OperationContext>,
        stem: &str,
        again: bool,
    ) -> Result<Value, OperationError> {
        let what = format!("the script {}", self.file);
        let work = async {
            let ended = shared.run(self.program(shared, stem)?).await?;
            if ended.exit != ProcessExit::Code(0) {
                return Err(format!("{what} {}{}", ended.exit, complaints(&ended)).into());
            }
            Ok(json!({
                "exit_code": 0,
                "stdout": ended.stdout.text(),
                "stderr": ended.stderr.text(),
            }))
        };
        // The permit comes before the note, because an operation that still waits has not begun.
        let _permit = shared.permit().await?;
        run_at_most_once(shared, stem, again, &what, work).await
    }

    fn program<'run>(
        &'run self,
        shared: &OperationContext,
        stem: &'run str,
    ) -> Result<OperationProgram<'run>, OperationError> {
        // Without an interpreter it is a program for the machine, which is executed itself.
        let mut words = self.interpreter.iter().map(String::as_str).chain([self.file]);
        let program = words.next().unwrap_or(self.file);
        let arguments: Vec<OsString> = words.map(OsString::from).collect();
        if let Some((name, _)) =
            self.environment.iter().find(|(_, text)| text.len() > MAX_VALUE_BYTES)
        {
            return Err(format!(
                "{}: the value of {name} is too long for an environment, which takes {MAX_VALUE_BYTES} bytes; write it to a file in the state before",
                self.file
            )
            .into());
        }
        let mut environment = shared.environment();
        // Only this run says what these are; and a script leaves no files beside those that it imports from the copy.
        environment.retain(|(name, _)| {
            let name = name.as_encoded_bytes();
            !VARIABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix.as_bytes()))
        });
        environment.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
        let added = self.environment.iter();
        environment.extend(added.map(|(name, value)| (name.into(), value.into())));
        Ok(OperationProgram {
            stem,
            program,
            arguments,
            cwd: shared.root().to_owned(),
            environment,
            longest: self.longest,
            kept: MAX_OUTPUT_BYTES,
        })
    }
}

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
