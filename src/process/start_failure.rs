//! The failures of turns whose process cannot be started, or whose files cannot be written. Pure.

use std::io::ErrorKind;
use std::path::Path;

use crate::domain::turn::{FailureCause, TurnFailure};
use crate::plain_file;

/// The system's number for a file that is not a program it can run, `ENOEXEC`.
const NOT_A_PROGRAM: i32 = 8;

/// Returns the failure for a file that cannot be written.
pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> TurnFailure {
    TurnFailure::new(
        FailureCause::Storage,
        format!("{}: cannot be written: {error}", path.display()),
    )
}

/// Returns the message for a variable that a state passes on and that is not set.
pub(super) fn not_set(name: &str) -> String {
    format!(
        "`env` passes {name}, which is not set where raymond was started; set it, or write {{ {name}: value }}"
    )
}

/// Returns the failure for a process that could not be started. A missing program keeps every agent from working, and so
/// does a machine on which no further file can be opened; too many processes do not.
pub(super) fn not_started(program: &Path, cwd: &Path, error: &std::io::Error) -> TurnFailure {
    let (program, cwd) = (program.display(), cwd.display());
    let lasting = matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput
    ) || error.raw_os_error() == Some(NOT_A_PROGRAM);
    if lasting {
        let hint = "install Claude Code, or name it with --claude or RAYMOND_CLAUDE";
        TurnFailure::new(
            FailureCause::Unavailable,
            format!(
                "{program} cannot be run in {cwd}: {error}; if it is a script, check that its interpreter exists; else {hint}"
            ),
        )
    } else {
        let is_out_of_room = plain_file::is_out_of_room(error);
        TurnFailure::new(
            if is_out_of_room { FailureCause::Storage } else { FailureCause::Crash },
            format!("{program} could not be started in {cwd}: {error}"),
        )
    }
}
