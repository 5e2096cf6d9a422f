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

/// A script to run.
pub(super) struct ScriptRun<'operation> {
    /// The path of the file.
    pub(super) file: &'operation str,
    /// The program that executes it, and its first arguments.
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
        let Some((program, first)) = self.interpreter.split_first() else {
            return Err(format!("{}: nothing says what executes it", self.file).into());
        };
        let arguments: Vec<OsString> =
            first.iter().map(String::as_str).chain([self.file]).map(OsString::from).collect();
        let mut environment = shared.environment();
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
