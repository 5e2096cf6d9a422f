//! Runs a script of the workflow, at most once for a step.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::at_most_once::run_at_most_once;
use super::context::{OperationContext, OperationProgram};
use super::outcome::OperationError;
use super::shell::{MAX_OUTPUT_BYTES, complaints};
use crate::process::child::exit::ProcessExit;

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
