//! A run that this process is to supervise, opened: on this machine, or taken over from an engine.

use super::engine;
use super::exit::Error;
use super::runs_dir::DirArgs;
use crate::domain::id::RunId;
use crate::runtime::sharing::{ClaimedRun, RunEngine, take_over};
use crate::runtime::{self, directories};
use crate::store::layout::RunsRoot;
use crate::store::run_store::{LockedRun, RecoveredRun};
use crate::store::user_state::UserState;

/// The place that a run is opened from.
#[derive(Debug)]
pub(super) struct RunAccess<'a> {
    root: &'a RunsRoot,
    /// The engine, and the state with the key that proves the copy.
    engine: Option<(RunEngine, UserState)>,
}

/// A run that was opened.
pub(super) struct OpenedRun {
    pub(super) store: LockedRun,
    pub(super) recovered: RecoveredRun,
    /// The right to supervise it in its engine.
    pub(super) held: Option<ClaimedRun>,
}

impl<'a> RunAccess<'a> {
    /// Returns the access for the directory or the engine that was named.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be reached.
    pub(super) fn of(dir: &DirArgs, root: &'a RunsRoot) -> Result<Self, Error> {
        let engine = match engine::of_run(dir)? {
            Some(engine) => Some((engine, directories::user_state()?)),
            None => None,
        };
        Ok(Self { root, engine })
    }

    /// Opens a run.
    ///
    /// # Errors
    /// [`runtime::Error`] if there is no such run, another raymond supervises it, or it cannot be recovered.
    pub(super) fn open(&self, id: &RunId) -> Result<OpenedRun, runtime::Error> {
        if let Some((engine, state)) = &self.engine {
            let (store, recovered, held) = take_over(engine, id, self.root, state)?;
            return Ok(OpenedRun { store, recovered, held: Some(held) });
        }
        let (store, recovered) = LockedRun::open(self.root, id)?;
        Ok(OpenedRun { store, recovered, held: None })
    }
}
