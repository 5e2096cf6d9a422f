//! The log of a run in an engine. While the engine cannot be reached, it is asked again; running turns go on meanwhile.

use std::thread::sleep;
use std::time::Duration;

use super::run_engine::{HeldRun, LEASE_TIME, RENEWAL_INTERVAL, store_error};
use crate::engine::EngineError;
use crate::engine::shared_log::LogLine;
use crate::store;
use crate::store::log::{LineBatch, RunLog};

/// The first pause before an engine that could not be reached is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The time in which a further line is waited for. A call costs the engine more than the lines that it carries, and the
/// replies that come at the same moment are recorded one after the other.
const GATHERING_TIME: Duration = Duration::from_millis(1);

/// The log of a run in an engine.
struct EngineLog {
    held: HeldRun,
    /// False from the first call that did not reach the engine until one does.
    is_reached: bool,
}

impl HeldRun {
    /// Returns the log of the run.
    pub fn log(&self) -> Box<dyn RunLog> {
        Box::new(EngineLog { held: self.clone(), is_reached: true })
    }
}

impl EngineLog {
    /// Makes a call, and tells people once that the engine cannot be reached, and once that it is again. Returns whether it
    /// was reached.
    fn reach(
        &mut self,
        call: impl Fn(&HeldRun) -> Result<(), EngineError>,
    ) -> Result<bool, store::Error> {
        let called = call(&self.held);
        let is_reached = match &called {
            Ok(()) => true,
            Err(error) if error.is_passing() => false,
            Err(error) => return Err(store_error(error, &self.held.lease.run)),
        };
        if let (true, Err(error)) = (self.is_reached, &called) {
            tracing::warn!(
                "{error}; the run waits for the engine, running turns continue, and nothing is lost"
            );
        }
        if is_reached && !self.is_reached {
            let engine = self.held.engine.address();
            tracing::warn!("the engine {engine} can be reached again; the run continues");
        }
        self.is_reached = is_reached;
        Ok(is_reached)
    }
}

impl RunLog for EngineLog {
    fn append(&mut self, batch: &LineBatch) -> Result<(), store::Error> {
        let line =
            |line: &store::log::SharedLine| LogLine { seq: line.seq, text: line.text.clone() };
        let lines: Vec<LogLine> = batch.shared.iter().map(line).collect();
        let mut pause = FIRST_PAUSE;
        while !self.reach(|held| held.engine.append(&held.lease, &lines))? {
            sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    fn renewal_interval(&self) -> Option<Duration> {
        Some(RENEWAL_INTERVAL)
    }

    fn renew(&mut self) -> Result<(), store::Error> {
        // What was not reached now is tried again at the next append, or after the interval.
        self.reach(|held| held.engine.renew_lease(&held.lease, LEASE_TIME)).map(drop)
    }

    fn gathering_time(&self) -> Duration {
        GATHERING_TIME
    }
}
