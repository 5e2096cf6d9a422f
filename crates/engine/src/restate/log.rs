//! The logs of runs, and their leases.

use std::time::Duration;

use super::engine::{RestateEngine, millis};
use super::objects::run_calls::{LeasedDeed, RunAnswer, RunCall, RunLook};
use super::serving::{CALL_LIMIT, LARGE_CALL_LIMIT, damaged};
use crate::restate::objects::state::{IndexAnswer, IndexLook, IndexedRun};
use crate::shared_log::{LogLine, NewSharedRun, RunLease, SharedLog, SharedRun};
use crate::{Engine, EngineError};
use raymond_model::id::RunId;

/// The longest lease. The server's timers hold it.
const LONGEST_LEASE: Duration = Duration::from_hours(24 * 365);

fn lease_ms(time: Duration) -> u64 {
    // A lease of a part of a millisecond has not run out yet.
    let time = time.min(LONGEST_LEASE);
    if time.is_zero() { 0 } else { millis(time).max(1) }
}

/// Returns the texts of lines whose numbers follow each other from `first`; as an error the number that does not.
fn texts(lines: &[LogLine], first: u64) -> Result<Vec<String>, (u64, u64)> {
    let numbered = lines.iter().zip(first..);
    numbered
        .map(
            |(line, seq)| {
                if line.seq == seq { Ok(line.text.clone()) } else { Err((line.seq, seq)) }
            },
        )
        .collect()
}

impl SharedLog for RestateEngine {
    fn create_run(
        &self,
        new: &NewSharedRun,
        holder: &str,
        lease_time: Duration,
    ) -> Result<RunLease, EngineError> {
        let lines = texts(&new.lines, 1).map_err(|wrong| self.misplaced(&new.run, wrong))?;
        let (terms, holder) = (new.terms.clone(), holder.to_owned());
        let call = RunCall::Create { terms, holder, lease_ms: lease_ms(lease_time), lines };
        self.lease(&new.run, &call)
    }

    fn claim_run(
        &self,
        run: &RunId,
        holder: &str,
        lease_time: Duration,
    ) -> Result<RunLease, EngineError> {
        let holder = holder.to_owned();
        self.lease(run, &RunCall::Claim { holder, lease_ms: lease_ms(lease_time) })
    }

    /// It does not wait for other calls of this process: one whose connection hangs does not cost the lease.
    fn renew_lease(&self, lease: &RunLease, lease_time: Duration) -> Result<(), EngineError> {
        let deed = LeasedDeed::Renew { lease_ms: lease_ms(lease_time) };
        let call = RunCall::Leased { epoch: lease.epoch, deed };
        self.run_within(&lease.run, &call, CALL_LIMIT).map(drop)
    }

    fn release_run(&self, lease: &RunLease, has_ended: bool) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::Release { has_ended }).map(drop)
    }

    fn append(&self, lease: &RunLease, lines: &[LogLine]) -> Result<(), EngineError> {
        let Some(first) = lines.first().map(|line| line.seq) else { return Ok(()) };
        let lines =
            texts(lines, first.max(1)).map_err(|wrong| self.misplaced(&lease.run, wrong))?;
        self.leased(lease, LeasedDeed::Append { first, lines }).map(drop)
    }

    fn read(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<LogLine>, EngineError> {
        let mut lines: Vec<LogLine> = Vec::new();
        loop {
            let after = lines.last().map_or(after, |line| line.seq);
            let look = RunLook::Lines { after, limit: limit - lines.len() };
            let (page, last) = match self.run_look(run, &look)? {
                RunAnswer::Lines { lines, last } => (lines, last),
                other => return Err(self.unexpected(&other)),
            };
            let is_missing = page.is_empty();
            let numbered = page.into_iter().zip(after + 1..);
            lines.extend(numbered.map(|(text, seq)| LogLine { seq, text }));
            if lines.len() >= limit || lines.last().map_or(after, |line| line.seq) >= last {
                return Ok(lines);
            }
            if is_missing {
                let (what, why) =
                    (format!("the run {run}"), format!("record {} is missing", after + 1));
                return Err(damaged(self.address(), what, why));
            }
        }
    }

    fn terms(&self, run: &RunId) -> Result<String, EngineError> {
        match self.run_look(run, &RunLook::Terms)? {
            RunAnswer::Terms(terms) => Ok(terms),
            other => Err(self.unexpected(&other)),
        }
    }

    fn set_terms(&self, lease: &RunLease, terms: &str) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::SetTerms { terms: terms.to_owned() }).map(drop)
    }

    fn runs(&self) -> Result<Vec<SharedRun>, EngineError> {
        let indexed = match self.index(&IndexLook::Runs)? {
            IndexAnswer::Runs(runs) => runs,
            other => return Err(self.unexpected(&other)),
        };
        let mut runs = Vec::with_capacity(indexed.len());
        for (id, indexed) in indexed {
            let run = RunId::parse(&id)
                .map_err(|error| damaged(self.address(), "the index", error.to_string()))?;
            match indexed {
                IndexedRun::Left { last, has_ended } => {
                    runs.push(SharedRun {
                        run,
                        last,
                        holder: None,
                        has_ended,
                        is_abandoned: false,
                    });
                }
                IndexedRun::Held => runs.extend(self.summary(run)?),
            }
        }
        runs.sort_unstable_by(|one, other| one.run.cmp(&other.run));
        Ok(runs)
    }
}

impl RestateEngine {
    fn lease(&self, run: &RunId, call: &RunCall) -> Result<RunLease, EngineError> {
        match self.run_within(run, call, LARGE_CALL_LIMIT)? {
            RunAnswer::Epoch(epoch) => Ok(RunLease { run: run.clone(), epoch }),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Returns a run that somebody supervises; `None` if it is only about to be created.
    fn summary(&self, run: RunId) -> Result<Option<SharedRun>, EngineError> {
        match self.run_look(&run, &RunLook::Summary) {
            Ok(RunAnswer::Summary { last, holder, has_ended, is_abandoned }) => {
                Ok(Some(SharedRun { run, last, holder, has_ended, is_abandoned }))
            }
            Ok(other) => Err(self.unexpected(&other)),
            Err(EngineError::NoSuchRun { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn misplaced(&self, run: &RunId, (given, seq): (u64, u64)) -> EngineError {
        let why = format!("record {given} was given instead of record {seq}");
        damaged(self.address(), format!("the run {run}"), why)
    }
}
