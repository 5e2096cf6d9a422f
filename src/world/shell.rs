//! Runs commands in a shell, and decides after a crash whether one runs again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::at_most_once::{run_at_most_once, run_once};
use super::context::{OperationContext, OperationProgram, complaint};
use super::git_lock::GitLock;
use super::outcome::OperationError;
use crate::process::captured_output::ProcessOutput;
use crate::process::child::exit::ProcessExit;

/// The longest time that a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(30);

/// The number of bytes that are kept of the beginning of a command's stdout, and of its stderr.
const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The number of characters of a command that are shown.
const MAX_SHOWN_CHARS: usize = 60;

/// The exit codes of a shell that could not run a command.
const NOT_RUN: [i32; 2] = [126, 127];

/// The meaning of a repetition of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandRepetition<'operation> {
    /// The graph does not say: after a crash the restart policy decides.
    Unknown,
    /// It may run again.
    Idempotent,
    /// It never runs again.
    Never,
    /// It runs unless this command succeeds.
    Unless(&'operation str),
}

/// Runs a command in a shell, and returns `{exit_code, stdout, stderr}`, with `skipped: true` if it was done before.
pub(super) async fn shell(
    shared: &Arc<OperationContext>,
    stem: &str,
    command: &str,
    repetition: CommandRepetition<'_>,
    again: bool,
) -> Result<Value, OperationError> {
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned().into());
    }
    let what = format!("the command `{}`", shown(command));
    let lock = match repetition {
        CommandRepetition::Idempotent | CommandRepetition::Unless(_) => GitLock::of(shared, stem),
        CommandRepetition::Unknown | CommandRepetition::Never => None,
    };
    let work = async {
        if let Some(lock) = &lock {
            lock.before(again);
        }
        if let CommandRepetition::Unless(test) = repetition
            && is_done(shared, stem, test).await?
        {
            return Ok(json!({ "exit_code": 0, "stdout": "", "stderr": "", "skipped": true }));
        }
        let ended = run(shared, stem, command).await?;
        if ended.exit != ProcessExit::Code(0) {
            let hint = lock.as_ref().map(GitLock::hint).unwrap_or_default();
            return Err(format!("{what} {}{}{hint}", ended.exit, complaints(&ended)).into());
        }
        if let Some(lock) = &lock {
            lock.after();
        }
        Ok(json!({
            "exit_code": 0,
            "stdout": ended.stdout.text(),
            "stderr": ended.stderr.text(),
        }))
    };
    // The permit comes before the note, because an operation that still waits has not begun.
    let _permit = shared.permit().await?;
    match repetition {
        CommandRepetition::Unknown => run_at_most_once(shared, stem, again, &what, work).await,
        CommandRepetition::Never => run_once(shared, stem, again, &what, work).await,
        CommandRepetition::Idempotent | CommandRepetition::Unless(_) => work.await,
    }
}

/// Runs a command that only checks something, and returns whether its exit code is 0.
pub(super) async fn check(
    shared: &Arc<OperationContext>,
    stem: &str,
    command: &str,
) -> Result<Value, OperationError> {
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned().into());
    }
    let _permit = shared.permit().await?;
    let ended = run(shared, stem, command).await?;
    match ended.exit {
        ProcessExit::Code(code) => Ok(Value::Bool(code == 0)),
        exit => {
            let what = format!("the command `{}`", shown(command));
            Err(format!("{what} {exit}{}", complaints(&ended)).into())
        }
    }
}

/// Returns whether a test succeeds: the command was done.
async fn is_done(
    shared: &OperationContext,
    stem: &str,
    test: &str,
) -> Result<bool, OperationError> {
    let ended = run(shared, stem, test).await?;
    match ended.exit {
        ProcessExit::Code(0) => Ok(true),
        ProcessExit::Code(code) if !NOT_RUN.contains(&code) => Ok(false),
        exit => {
            let what = format!("`unless`, the command `{}`,", shown(test));
            Err(format!("{what} {exit}{}", complaints(&ended)).into())
        }
    }
}

async fn run(
    shared: &OperationContext,
    stem: &str,
    command: &str,
) -> Result<ProcessOutput, OperationError> {
    let run = OperationProgram {
        stem,
        program: "sh",
        arguments: ["-c", command].map(Into::into).into(),
        cwd: shared.root().to_owned(),
        environment: shared.environment(),
        longest: COMMAND_TIMEOUT,
        kept: MAX_OUTPUT_BYTES,
    };
    shared.run(run).await
}

/// Returns the last lines of stderr and of stdout, as the end of a message.
fn complaints(ended: &ProcessOutput) -> String {
    let stdout = complaint(&ended.stdout);
    let stdout = if stdout.is_empty() { stdout } else { format!(" (stdout{stdout})") };
    format!("{}{stdout}", complaint(&ended.stderr))
}

/// Returns the beginning of a command, on one line.
fn shown(command: &str) -> String {
    let line = command.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
