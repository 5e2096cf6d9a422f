//! The wait for another raymond that takes a shared run over, after its supervisor has vanished.

use std::time::{Duration, Instant};

use super::output;
use crate::store::Error;
use crate::store::engine_note::EngineNote;
use crate::store::layout::RunDir;

/// The time within which a worker that takes runs has taken one over.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(20);

/// The wait for a takeover.
#[derive(Debug, Default)]
pub(super) struct AwaitedTakeover {
    since: Option<Instant>,
}

impl AwaitedTakeover {
    /// Returns whether another raymond may still take the run over that nobody supervises now. Says once that it is waited
    /// for, and once that none came.
    ///
    /// # Errors
    /// [`Error`] if the note in the copy of the run cannot be read.
    pub(super) fn is_due(&mut self, dir: &RunDir) -> Result<bool, Error> {
        if !EngineNote::of(dir.path())?.is_some_and(|note| note.is_abandoned) {
            self.since = None;
            return Ok(false);
        }
        let Some(since) = self.since else {
            self.since = Some(Instant::now());
            output::tell(
                "the run has lost its supervisor; waiting until another raymond takes it over",
            );
            return Ok(true);
        };
        let is_due = since.elapsed() < TAKEOVER_TIMEOUT;
        if !is_due {
            output::tell(
                "no other raymond has taken over the run: continue it with `raymond resume`, or start a worker with --takes-runs",
            );
        }
        Ok(is_due)
    }
}
