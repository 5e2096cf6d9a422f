//! The log of a run in an engine. While the engine cannot be reached, it is asked again; running turns go on meanwhile.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::run_engine::{HeldRun, LEASE_TIME, RENEWAL_INTERVAL, store_error};
use crate::engine::EngineError;
use crate::engine::shared_log::LogLine;
use crate::store;
use crate::store::log::{LineBatch, RunLog};

/// The first pause before an engine that could not be reached is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The log of a run in an engine.
struct EngineLog {
    held: HeldRun,
    /// The time of the last renewal.
    renewed: Instant,
}

impl HeldRun {
    /// Returns the log of the run.
    #[must_use]
    pub fn log(&self) -> Box<dyn RunLog> {
        Box::new(EngineLog { held: self.clone(), renewed: Instant::now() })
    }
}

impl EngineLog {
    /// Repeats a call until the engine has carried it out, or refused.
    fn until_reached(
        &self,
        call: impl Fn(&HeldRun) -> Result<(), EngineError>,
    ) -> Result<(), store::Error> {
        let mut pause = None;
        loop {
            match call(&self.held) {
                Ok(()) => break,
                Err(error) if error.is_passing() => {
                    if pause.is_none() {
                        tracing::warn!(
                            "{error}; the run waits for it, running turns go on, and nothing is lost"
                        );
                    }
                    let next = pause.map_or(FIRST_PAUSE, |pause: Duration| pause * 2);
                    sleep(next.min(LONGEST_PAUSE));
                    pause = Some(next.min(LONGEST_PAUSE));
                }
                Err(error) => return Err(store_error(&error, &self.held.lease.run)),
            }
        }
        if pause.is_some() {
            tracing::warn!(
                "the engine {} is reached again; the run goes on",
                self.held.engine.address()
            );
        }
        Ok(())
    }
}

impl RunLog for EngineLog {
    fn append(&mut self, batch: &LineBatch) -> Result<(), store::Error> {
        let line =
            |line: &store::log::SharedLine| LogLine { seq: line.seq, text: line.text.clone() };
        let lines: Vec<LogLine> = batch.shared.iter().map(line).collect();
        self.until_reached(|held| held.engine.append(&held.lease, &lines))?;
        // A run that is never idle renews its lease between two appends.
        if self.renewed.elapsed() >= RENEWAL_INTERVAL { self.renew() } else { Ok(()) }
    }

    fn renewal_interval(&self) -> Option<Duration> {
        Some(RENEWAL_INTERVAL)
    }

    fn renew(&mut self) -> Result<(), store::Error> {
        self.renewed = Instant::now();
        match self.held.engine.renew_lease(&self.held.lease, LEASE_TIME) {
            // What was not reached now is tried again at the next append, or after the interval.
            Err(error) if !error.is_passing() => Err(store_error(&error, &self.held.lease.run)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
