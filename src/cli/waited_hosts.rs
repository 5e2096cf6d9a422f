//! The hosts that a command waits for with a shared run: it says which of them are silent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::exit::Error;
use super::runs_dir::DirArgs;
use super::{engine, output};
use crate::engine::Engine;
use crate::runtime::sharing::{SilentHosts, silences};
use crate::store::engine_note::EngineNote;
use crate::store::layout::RunDir;

/// The time between two looks at the hosts.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The hosts of an engine, if there is one.
#[derive(Debug)]
pub(super) struct WaitedHosts {
    engine: Option<Arc<dyn Engine>>,
    silent: SilentHosts,
    next_look: Instant,
}

impl WaitedHosts {
    /// Returns the hosts of the engine that a command names.
    ///
    /// # Errors
    /// [`Error`] if it cannot be reached.
    pub(super) fn of(dir: &DirArgs) -> Result<Self, Error> {
        let engine = engine::connected(dir)?;
        Ok(Self { engine, silent: SilentHosts::default(), next_look: Instant::now() })
    }

    /// Says which hosts are silent while turns of the run are there, once for each silence.
    ///
    /// # Errors
    /// [`Error`] if the note in the copy of the run cannot be read.
    pub(super) fn look(&mut self, dir: &RunDir) -> Result<(), Error> {
        let Some(engine) = self.engine.as_ref().filter(|_| self.next_look <= Instant::now()) else {
            return Ok(());
        };
        self.next_look = Instant::now() + LOOK_INTERVAL;
        let note = EngineNote::of(dir.path())?;
        // An engine that cannot be reached is told of by whoever keeps the copy up to date.
        let seen = engine.hosts().unwrap_or_default();
        let is_waited_for = |host: &_| note.as_ref().is_some_and(|note| note.has_turns_at(host));
        for news in self.silent.news(&seen, is_waited_for) {
            output::tell(&news);
        }
        Ok(())
    }
}

/// Says which hosts are silent now while turns of a run are there. An engine that cannot be reached was told of before, by
/// whatever brought the copy of the run up to date.
///
/// # Errors
/// [`Error`] if the note in the copy of the run cannot be read.
pub(super) fn tell_silent(dir: &DirArgs, run: &RunDir) -> Result<(), Error> {
    let Some(note) = EngineNote::of(run.path())? else { return Ok(()) };
    let Ok(Some(engine)) = engine::connected(dir) else { return Ok(()) };
    for silence in silences(&engine.hosts().unwrap_or_default(), |host| note.has_turns_at(host)) {
        output::tell(&silence);
    }
    Ok(())
}
