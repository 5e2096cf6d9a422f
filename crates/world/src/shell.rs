//! Runs commands in a shell, decides after a crash whether one runs again, and runs operations at most once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::append::{OperationNotes, RecordedOutcome};
use crate::context::{OperationContext, OperationProgram, blocking, complaint};
use crate::git::GitLock;
use crate::glob::{FileAccess, resolve};
use crate::outcome::OperationError;
use raymond_agents::captured_output::ProcessOutput;
use raymond_agents::child::ProcessExit;
use raymond_model::operation::{RecoveryClass, ShellCommand};
use raymond_model::tool_call::first_characters;
use raymond_model::words::joined_words;

/// The longest time that a command may take.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(30);

/// The number of bytes that are kept of the beginning of a command's stdout, and of its stderr.
pub(super) const MAX_OUTPUT_BYTES: usize = 1024 * 1024;

/// The number of characters of a command that are shown.
const MAX_SHOWN_CHARS: usize = 60;

/// The exit codes of a shell that could not run a command.
const NOT_RUN: [i32; 2] = [126, 127];

/// Runs a command in a shell, and returns `{exit_code, stdout, stderr}`, with `skipped: true` if it was done before.
pub(super) async fn shell(
    shared: &Arc<OperationContext>,
    stem: &str,
    command: &ShellCommand,
    again: bool,
) -> Result<Value, OperationError> {
    if command.command.trim().is_empty() {
        return Err("the command is empty".to_owned().into());
    }
    let what = format!("the command `{}`", shown(&command.command));
    let is_repeated = command.class() != RecoveryClass::Uncertain;
    let lock = if is_repeated { GitLock::of(shared, stem) } else { None };
    let work = async {
        if let Some(lock) = &lock {
            lock.before(again);
        }
        if let Some(test) = &command.unless
            && is_done(shared, stem, test, command).await?
        {
            return Ok(json!({ "exit_code": 0, "stdout": "", "stderr": "", "skipped": true }));
        }
        let ended = run(shared, stem, &command.command, command).await?;
        let code = match ended.exit {
            ProcessExit::Code(code) if code == 0 || command.any_exit_code => code,
            exit => {
                let hint = lock.as_ref().map(GitLock::hint).unwrap_or_default();
                return Err(format!("{what} {exit}{}{hint}", complaints(&ended)).into());
            }
        };
        if let Some(lock) = &lock {
            lock.after();
        }
        Ok(json!({
            "exit_code": code,
            "stdout": ended.stdout.text(),
            "stderr": ended.stderr.text(),
        }))
    };
    // The permit comes before the note, because an operation that still waits has not begun.
    let _permit = shared.permit().await?;
    match command.class() {
        RecoveryClass::Read | RecoveryClass::Converges | RecoveryClass::Guarded => work.await,
        RecoveryClass::Uncertain if command.once => {
            run_once(shared, stem, again, &what, work).await
        }
        RecoveryClass::Uncertain => run_at_most_once(shared, stem, again, &what, work).await,
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
    let ended = run(shared, stem, command, &ShellCommand::of(command)).await?;
    match ended.exit {
        ProcessExit::Code(code) => Ok(Value::Bool(code == 0)),
        exit => {
            let what = format!("the command `{}`", shown(command));
            Err(format!("{what} {exit}{}", complaints(&ended)).into())
        }
    }
}

/// Returns whether the test of a command succeeds: the command was done.
async fn is_done(
    shared: &OperationContext,
    stem: &str,
    test: &str,
    command: &ShellCommand,
) -> Result<bool, OperationError> {
    let ended = run(shared, stem, test, command).await?;
    match ended.exit {
        ProcessExit::Code(0) => Ok(true),
        ProcessExit::Code(code) if !NOT_RUN.contains(&code) => Ok(false),
        exit => {
            let what = format!("`unless`, the command `{}`,", shown(test));
            Err(format!("{what} {exit}{}", complaints(&ended)).into())
        }
    }
}

/// Runs a text of a command, with its arguments, in its directory.
async fn run(
    shared: &OperationContext,
    stem: &str,
    text: &str,
    command: &ShellCommand,
) -> Result<ProcessOutput, OperationError> {
    let cwd = match &command.cwd {
        Some(folder) => resolve(shared.root(), folder.as_str(), FileAccess::Read)?,
        None => shared.root().to_owned(),
    };
    if !cwd.is_dir() {
        let cwd = cwd.display();
        return Err(format!("no directory {cwd}; create it, or correct the path").into());
    }
    if let Some(number) = command.arguments.iter().position(|text| text.contains('\0')) {
        let number = number + 1;
        return Err(format!("the value of `${number}` in the command has a NUL character").into());
    }
    // `$0` stands before the arguments.
    let words = ["-c", text, "sh"].into_iter();
    let run = OperationProgram {
        stem,
        program: "sh",
        arguments: words
            .chain(command.arguments.iter().map(String::as_str))
            .map(Into::into)
            .collect(),
        cwd,
        environment: shared.environment(),
        longest: command.timeout_ms.map_or(COMMAND_TIMEOUT, Duration::from_millis),
        kept: MAX_OUTPUT_BYTES,
    };
    shared.run(run).await
}

/// Returns the last lines of stderr and of stdout, as the end of a message.
pub(super) fn complaints(ended: &ProcessOutput) -> String {
    let stdout = complaint(&ended.stdout);
    let stdout = if stdout.is_empty() { stdout } else { format!(" (stdout{stdout})") };
    format!("{}{stdout}", complaint(&ended.stderr))
}

/// Returns the beginning of a command, on one line.
fn shown(command: &str) -> String {
    first_characters(&joined_words(command), MAX_SHOWN_CHARS)
}

// Runs operations at most once whose completion cannot be checked.
//
// These are commands of a shell, and added types of that class. A note is written before they begin and after they
// have ended.

/// Does `work` as [`run_at_most_once`] does, but fails if an earlier runtime may have done it: nothing decides then
/// that it is done again.
pub(super) async fn run_once(
    shared: &Arc<OperationContext>,
    stem: &str,
    again: bool,
    what: &str,
    work: impl Future<Output = Result<Value, OperationError>>,
) -> Result<Value, OperationError> {
    let done = run_at_most_once(shared, stem, again, what, work).await;
    done.map_err(|error| match error {
        OperationError::Lost(_) => OperationError::Failed(format!(
            "WF502 {what} had begun when raymond ended, and whether it was done is not known; `once` means that it is never repeated"
        )),
        error => error,
    })
}

/// Does `work`, unless an earlier runtime has done it, or may have done it.
pub(super) async fn run_at_most_once(
    shared: &Arc<OperationContext>,
    stem: &str,
    again: bool,
    what: &str,
    work: impl Future<Output = Result<Value, OperationError>>,
) -> Result<Value, OperationError> {
    let note = OperationNotes::of(&shared.place.steps, &shared.place.proofs, stem);
    let beginning = note.clone();
    let recorded = blocking(shared, move |_| {
        let recorded = if again { beginning.recorded()? } else { RecordedOutcome::Nothing };
        let room = match recorded {
            RecordedOutcome::Nothing => Some(beginning.begin_with_room()?),
            RecordedOutcome::Begun | RecordedOutcome::Done(_) => None,
        };
        Ok::<_, OperationError>((recorded, room))
    });
    let room = match recorded.await?? {
        (RecordedOutcome::Done(outcome), _) => return outcome.map_err(OperationError::Failed),
        (_, Some(room)) => room,
        (_, None) => return Err(OperationError::Lost(lost(what))),
    };
    let done = match work.await {
        Ok(value) => Ok(value),
        Err(OperationError::Failed(why)) => Err(why),
        Err(OperationError::Stuck(why)) => {
            // It did not begin.
            blocking(shared, move |_| note.forget()).await??;
            return Err(OperationError::Stuck(why));
        }
        Err(error) => return Err(error),
    };
    let noted = done.clone();
    // The journal comes next. Without the note, only a crash before that makes the outcome unknown.
    let _ = blocking(shared, move |_| note.end_in(room, &noted)).await?;
    done.map_err(OperationError::Failed)
}

fn lost(what: &str) -> String {
    format!("WF502 {what} had begun when raymond ended, and whether it was done is not known")
}
