//! The exit codes of commands, and the errors that lead to them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use strum::VariantArray;

use crate::domain::id::{AgentId, InvalidName, RunId};
use crate::domain::restart::fails_strictly;
use crate::domain::run::{PauseReason, Run, RunStatus};
use crate::engine::EngineError;
use crate::language::diagnostic::Diagnostic;
use crate::process::host::LEAST_OPEN_FILES;
use crate::runtime;
use crate::store;
use crate::store::engine_note::IdentityError;

/// An exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
#[repr(u8)]
pub enum CliExitCode {
    /// Every agent ended well.
    Success = 0,
    /// The run ended, at least one agent failed; or, if it was started with --strict, a tool was refused, or a join
    /// kept a failure.
    AgentFailed = 1,
    /// The run waits for a person; it can be resumed.
    Waiting = 2,
    /// Wrong usage.
    Usage = 64,
    /// The workflow or the state is invalid.
    Invalid = 65,
    /// Claude Code, or a plug-in that is required, cannot be started, or Claude Code is not logged in.
    Unavailable = 69,
    /// The run is locked by another raymond.
    Held = 73,
    /// An input/output error.
    Io = 74,
    /// Paused; it can be resumed.
    Paused = 75,
    /// The workflow or the run asks for more than its starter has confirmed.
    NotTrusted = 77,
    /// Interrupted; the state is saved, and it can be resumed.
    Interrupted = 130,
}

impl CliExitCode {
    /// All exit codes in ascending order.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the number.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the exit code of a run that has ended or is stopped.
    pub fn of(run: &Run) -> Self {
        match (run.status, &run.pause) {
            (RunStatus::Completed, _) if fails_strictly(run) => Self::AgentFailed,
            (RunStatus::Completed, _) => Self::Success,
            (RunStatus::Failed, _) => Self::AgentFailed,
            (
                _,
                Some(
                    PauseReason::Agents { .. }
                    | PauseReason::Budget { .. }
                    | PauseReason::UsageLimit { .. }
                    | PauseReason::Plugin { .. },
                ),
            ) => Self::Paused,
            (
                _,
                Some(
                    PauseReason::Parked { .. }
                    | PauseReason::Asking { .. }
                    | PauseReason::Waiting { .. },
                ),
            ) => Self::Waiting,
            (_, Some(PauseReason::Authentication { .. } | PauseReason::Unavailable { .. })) => {
                Self::Unavailable
            }
            (_, Some(PauseReason::Storage { .. })) => Self::Io,
            (_, Some(PauseReason::Interrupted | PauseReason::Stopped) | None) => Self::Interrupted,
        }
    }
}

impl From<CliExitCode> for ExitCode {
    fn from(exit: CliExitCode) -> Self {
        exit.code().into()
    }
}

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A value that was given under a name is refused.
    #[error("{message}")]
    Value {
        /// The name, as the one who gave it knows it.
        field: String,
        /// The reason.
        message: String,
    },
    /// This process may open too few files.
    #[error(
        "this process may open {0} files at a time, and a run needs {LEAST_OPEN_FILES} or more; raise the limit (`ulimit -n 1024`)"
    )]
    FewFiles(u64),
    /// An agent tried what only a person may do.
    #[error(
        "the agent {agent} may not {what}: only the person who started it may; {}", .advice.as_deref().unwrap_or("if you are that person, do it outside the agent's turn")
    )]
    NotAPerson {
        /// The agent in whose turn the command was given.
        agent: String,
        /// The action that it tried.
        what: &'static str,
        /// What the person can do.
        advice: Option<String>,
    },
    /// An invalid name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The run has no such agent.
    #[error("the run {run} has no agent {agent}; {}`raymond tree {run}` shows its agents", .similar.as_ref().map(|similar| format!("did you mean {similar}? ")).unwrap_or_default())]
    NoSuchAgent {
        /// The run that was searched for the agent.
        run: RunId,
        /// The agent that was asked for.
        agent: AgentId,
        /// An agent with a similar id.
        similar: Option<AgentId>,
    },
    /// The worktrees of a run cannot be read, or not all of them.
    #[error("{0}")]
    Worktrees(String),
    /// A file of answers cannot be used.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Answers(Vec<Diagnostic>),
    /// A run could not begin, or could not be recorded.
    #[error(transparent)]
    Runtime(#[from] runtime::Error),
    /// The run's directory cannot be used.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Another error of the system.
    #[error("{}: cannot {doing}: {error}", .path.display())]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// The file of the action.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        Self::Runtime(error.into())
    }
}

impl Error {
    /// Returns the conversion of a system's error that kept a command from `doing` something with a file.
    pub(super) fn io<P: AsRef<Path> + ?Sized>(
        doing: &'static str,
        path: &P,
    ) -> impl Fn(io::Error) -> Self + Copy {
        move |error| Self::Io { doing, path: path.as_ref().to_owned(), error }
    }

    /// Returns the exit code of the error.
    pub fn exit(&self) -> CliExitCode {
        match self {
            Self::Usage(_) | Self::Value { .. } | Self::Name(_) | Self::NoSuchAgent { .. } => {
                CliExitCode::Usage
            }
            Self::NotAPerson { .. } => CliExitCode::NotTrusted,
            Self::Answers(_) => CliExitCode::Invalid,
            Self::Runtime(error) => of_runtime(error),
            Self::Io { .. } | Self::FewFiles(_) | Self::Worktrees(_) => CliExitCode::Io,
            Self::Store(error) => of_store(error),
        }
    }
}

pub(super) fn of_runtime(error: &runtime::Error) -> CliExitCode {
    use runtime::Error;
    match error {
        Error::Nothing
        | Error::NoWorkflow { .. }
        | Error::NotText { .. }
        | Error::Answer { .. }
        | Error::Context { .. }
        | Error::Inputs { .. }
        | Error::Branch { .. }
        | Error::NoBranchPoint(_)
        | Error::Name(_)
        | Error::NoHome
        | Error::NotShared { .. }
        | Error::NoApprovals(_)
        | Error::Visit(_)
        | Error::NotExchanged { .. }
        | Error::NoWorktrees { .. }
        | Error::Taken(_) => CliExitCode::Usage,
        Error::Workflow(_)
        | Error::Graph { .. }
        | Error::Check(_)
        | Error::Edited { .. }
        | Error::NodeGone { .. }
        | Error::Manifest { .. }
        | Error::Replies(_)
        | Error::NoCopy { .. }
        | Error::Cassette { .. }
        | Error::NoStreams { .. }
        | Error::Branched(_)
        | Error::NoScript { .. } => CliExitCode::Invalid,
        Error::NoClaude { .. } | Error::NotAProgram { .. } | Error::NoPlugIn { .. } => {
            CliExitCode::Unavailable
        }
        Error::Io { .. }
        | Error::Broken { .. }
        | Error::NoSystem
        | Error::NoThread(_)
        | Error::Unsteady { .. } => CliExitCode::Io,
        Error::NotTrusted { .. } | Error::NotConfirmed { .. } | Error::Declined => {
            CliExitCode::NotTrusted
        }
        Error::Engine(error) => of_engine(error),
        Error::Identity(IdentityError::Taken(_)) => CliExitCode::Held,
        Error::Identity(IdentityError::Store(error)) | Error::Store(error) => of_store(error),
    }
}

fn of_engine(error: &EngineError) -> CliExitCode {
    match error {
        EngineError::Address { .. }
        | EngineError::NotBuilt { .. }
        | EngineError::NoSuchRun { .. }
        | EngineError::RunExists { .. }
        | EngineError::NoSuchHost { .. } => CliExitCode::Usage,
        EngineError::Unreachable { .. }
        | EngineError::Refused { .. }
        | EngineError::Unstorable { .. }
        | EngineError::Version { .. } => CliExitCode::Unavailable,
        EngineError::Supervised { .. }
        | EngineError::TakenOver { .. }
        | EngineError::HostFenced { .. }
        | EngineError::HostLost { .. }
        | EngineError::HostRelieved { .. }
        | EngineError::HostRemoved { .. }
        | EngineError::HostTaken { .. } => CliExitCode::Held,
        EngineError::Damaged { .. } => CliExitCode::Invalid,
    }
}

fn of_store(error: &store::Error) -> CliExitCode {
    match error {
        store::Error::NoSuchRun { .. } | store::Error::Exists { .. } | store::Error::Unfit(_) => {
            CliExitCode::Usage
        }
        store::Error::Held { .. } | store::Error::TakenOver { .. } => CliExitCode::Held,
        store::Error::Shared { .. }
        | store::Error::SharedFacts { .. }
        | store::Error::ForeignFacts { .. } => CliExitCode::Usage,
        store::Error::Engine(_) | store::Error::Unreached(_) => CliExitCode::Unavailable,
        store::Error::Damaged { .. }
        | store::Error::Copied { .. }
        | store::Error::OtherRun { .. }
        | store::Error::Cut { .. }
        | store::Error::Empty { .. }
        | store::Error::BaseGone { .. }
        | store::Error::Newer { .. }
        | store::Error::NewerRecord { .. } => CliExitCode::Invalid,
        store::Error::Key { .. } | store::Error::Unproven { .. } => CliExitCode::NotTrusted,
        store::Error::Io { .. } | store::Error::UserState { .. } | store::Error::Stopped { .. } => {
            CliExitCode::Io
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_is_listed_once() {
        let codes: Vec<u8> = CliExitCode::ALL.iter().map(|exit| exit.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b));
        assert_eq!(codes, [0, 1, 2, 64, 65, 69, 73, 74, 75, 77, 130]);
    }
}
