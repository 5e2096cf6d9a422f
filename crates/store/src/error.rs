//! Errors of a run directory. Each text names the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use super::dataspace::InvalidFact;
use super::record::FORMAT;
use crate::plain_file::is_out_of_room;
use raymond_model::id::RunId;
use raymond_model::json_mistake::placed_mistake;

/// The reason why a run directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system returned an error.
    #[error("{}: cannot {doing}: {error}{}", .path.display(), io_hint(.error))]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The file of the operation.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The directory of the user's own state cannot be used.
    #[error("{}: cannot {doing}: {error}; raymond keeps your key and what you trust there: set XDG_STATE_HOME to a directory that you may write to", .path.display())]
    UserState {
        /// The operation that failed.
        doing: &'static str,
        /// The file of the operation.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// There is no such run.
    #[error("no run {id} in {}; {}`raymond list` shows the runs there, and --dir names another directory", shown(.dir), .similar.as_ref().map(|similar| format!("did you mean {similar}? ")).unwrap_or_default())]
    NoSuchRun {
        /// The id that was asked for.
        id: RunId,
        /// The directory of all runs.
        dir: PathBuf,
        /// A run with a similar id.
        similar: Option<String>,
    },
    /// The id is taken.
    #[error(
        "a run {id} already exists; continue it with `raymond resume {id}` if it has not ended, or choose another --id"
    )]
    Exists {
        /// The id that the new run was to have.
        id: RunId,
    },
    /// The run is locked by another raymond.
    #[error("the run {id} is locked by another raymond{}; `raymond stop {id}` stops that", .pid.map(|pid| format!(" (process {pid})")).unwrap_or_default())]
    Held {
        /// The run.
        id: RunId,
        /// The process that holds it, if it is known.
        pid: Option<u32>,
    },
    /// The directory is only the copy of a run that several machines share.
    #[error(
        "the run {id} has its log in the engine {engine}, and this is only a copy: name the engine with --engine {engine}"
    )]
    Shared {
        /// The run.
        id: RunId,
        /// The engine, without a password.
        engine: String,
    },
    /// Another raymond has taken the run over.
    #[error(
        "another raymond has taken over the run {id}; this one has stopped, and its work since then does not count: watch the run with `raymond log {id} --follow`"
    )]
    TakenOver {
        /// The run.
        id: RunId,
    },
    /// The engine that has the log of the run failed for good.
    #[error("{0}")]
    Engine(String),
    /// The engine with the facts cannot be reached, or not now.
    #[error("{0}")]
    Unreached(String),
    /// The facts here are a copy, and a caller wants to change one without naming the engine.
    #[error(
        "the facts of this directory are a copy of those in the engine {engine}, and are changed there: name it with --engine, or in RAYMOND_ENGINE"
    )]
    SharedFacts {
        /// The engine, without a password.
        engine: String,
    },
    /// The facts here are others than those of the engine that was named.
    #[error("{}: the facts here are those of {of}, and not of the engine that is named; name another directory with --dir, or leave it out", .path.display())]
    ForeignFacts {
        /// The directory of the facts.
        path: PathBuf,
        /// Their owner.
        of: String,
    },
    /// A record in the middle of the journal differs from what was written.
    #[error("{}:{line}: record {record} is damaged: {why}; nothing after it can be trusted; restore the file from a copy, or drop the rest: cut the file off before this line, remove `state.json` and `acknowledged` beside it, and resume the run with --trust", .path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The number of the record that should stand there.
        record: u64,
        /// The error in it.
        why: String,
    },
    /// The journal has lost acknowledged records.
    #[error("{}: the journal is complete up to byte {whole}, but {acknowledged} bytes were acknowledged: it was cut; restore it from a copy, or drop the rest by removing {}", .path.display(), .note.display())]
    Cut {
        /// The journal.
        path: PathBuf,
        /// The end of its last whole record, in bytes.
        whole: u64,
        /// The number of acknowledged bytes.
        acknowledged: u64,
        /// The file with that number.
        note: PathBuf,
    },
    /// A copy is not of the engine's run, or does not bear the proofs of this user.
    #[error("{} is not a copy of the run {id} of this engine: it belongs to a run of another engine with the same id, or the key of the user was lost; give the worker another --dir, or remove the directory", .dir.display())]
    OtherRun {
        /// The run.
        id: RunId,
        /// The directory of the copy.
        dir: PathBuf,
    },
    /// The directory of a run was copied.
    #[error("{id} is a copy of the run {of}; resume {of}, or rename this directory back")]
    Copied {
        /// The name of the directory.
        id: RunId,
        /// The run that its journal is of.
        of: RunId,
    },
    /// The journal holds nothing.
    #[error("{}: the journal holds no record of the run; restore it from a copy, or remove the run's directory", .path.display())]
    Empty {
        /// The journal.
        path: PathBuf,
    },
    /// The part of the journal that a branch shares with its original run is gone.
    #[error("{}: the records that this run shares with the run {run} are gone, incomplete or damaged; restore the file from a copy: it is the beginning of the journal of the run {run}", .path.display())]
    BaseGone {
        /// The base.
        path: PathBuf,
        /// The run that it is of.
        run: RunId,
    },
    /// A newer raymond wrote it.
    #[error("{}: version {found} is newer than {known}, the newest that this raymond reads; use the raymond that wrote it, or a newer one", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that this program reads.
        known: u32,
    },
    /// A newer raymond wrote a record.
    #[error("{}:{line}: this record has format {format}, and this raymond ({}) reads formats up to {FORMAT}: a newer raymond has resumed the run; use that version or a later one", .path.display(), env!("CARGO_PKG_VERSION"))]
    NewerRecord {
        /// The journal.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The format of the record.
        format: u32,
    },
    /// It cannot be a fact.
    #[error(transparent)]
    Unfit(#[from] InvalidFact),
    /// The user's key cannot be used.
    #[error("{}: this is the key of raymond's proofs, and {why}", .path.display())]
    Key {
        /// The key's file.
        path: PathBuf,
        /// The reason and the remedy.
        why: &'static str,
    },
    /// A document outside the workspaces was not written by raymond.
    #[error("{}: its proof is not valid for the key beside it; remove the file, and confirm again what it was for", .path.display())]
    Unproven {
        /// The file.
        path: PathBuf,
    },
    /// The journal's thread is gone.
    #[error("{}: the journal cannot be written: {why}; the run has stopped, and all acknowledged records are kept", .path.display())]
    Stopped {
        /// The journal.
        path: PathBuf,
        /// The first error.
        why: String,
    },
}

fn io_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; its permissions forbid it to this user: change them, or choose another directory (that of the runs: --dir)"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "; choose another directory (that of the runs: --dir)"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space: what was done is kept"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a directory on a writable disk (that of the runs: --dir)"
        }
        _ => "",
    }
}

impl Error {
    /// Returns an error of a file of the user's own state: it names the variable that helps, unless the disk is full.
    pub fn of_user_state(self) -> Self {
        match self {
            Self::Io { doing, path, error } if !is_out_of_room(&error) => {
                Self::UserState { doing, path, error }
            }
            other => other,
        }
    }

    /// Makes an error of an operation, its file and the system's error.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { doing, path, error }
    }

    /// Makes an error of a JSON document like [`io`](Self::io).
    pub(super) fn json(doing: &'static str, path: &Path) -> impl FnOnce(serde_json::Error) -> Self {
        let io = Self::io(doing, path);
        move |error| io(io::Error::other(placed_mistake(&error)))
    }
}

/// Returns a directory as it is named from anywhere.
fn shown(dir: &Path) -> String {
    std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned()).display().to_string()
}
