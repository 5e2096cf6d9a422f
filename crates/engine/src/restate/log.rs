//! The logs of runs, and their leases.

use std::time::Duration;

use raymond_model::id::RunId;

use super::engine::{RestateEngine, if_there, part_of};
use super::objects::run_calls::{LeasedDeed, RunAnswer, RunCall, RunLook};
use super::objects::state::{IndexAnswer, IndexLook, IndexedRun};
use super::serving::{CALL_LIMIT, LARGE_CALL_LIMIT};
use crate::shared_log::{
    LONGEST_LEASE, LogLine, NewSharedRun, RunLease, SharedLog, SharedRun, check_order,
};
use crate::{Engine, EngineError};
use raymond_model::time::millis_of;

fn lease_ms(time: Duration) -> u64 {
    // A lease of a part of a millisecond has not run out yet.
    let time = time.min(LONGEST_LEASE);
    if time.is_zero() { 0 } else { millis_of(time).max(1) }
}

fn texts(lines: &[LogLine]) -> Vec<String> {
    lines.iter().map(|line| line.text.clone()).collect()
}

impl SharedLog for RestateEngine {
    fn create_run(
        &self,
        new: &NewSharedRun,
        holder: &str,
        lease_time: Duration,
    ) -> Result<RunLease, EngineError> {
        check_order(self.address(), &new.run, &new.lines, 1)?;
        let (terms, holder, lines) = (new.terms.clone(), holder.to_owned(), texts(&new.lines));
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
        check_order(self.address(), &lease.run, lines, first.max(1))?;
        self.leased(lease, LeasedDeed::Append { first, lines: texts(lines) }).map(drop)
    }

    fn read(&self, run: &RunId, after: u64, limit: usize) -> Result<Vec<LogLine>, EngineError> {
        let page =
            |after, limit| LogPage::of(self, self.run_look(run, &RunLook::Lines { after, limit })?);
        let missing = |seq| {
            let why = format!("record {seq} is missing");
            EngineError::damaged(self.address(), format!("the run {run}"), why)
        };
        LogPage::read_all(after, limit, page, missing)
    }

    fn terms(&self, run: &RunId) -> Result<String, EngineError> {
        part_of!(self, self.run_look(run, &RunLook::Terms)?, RunAnswer::Terms(terms) => terms)
    }

    fn set_terms(&self, lease: &RunLease, terms: &str) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::SetTerms { terms: terms.to_owned() }).map(drop)
    }

    fn runs(&self) -> Result<Vec<SharedRun>, EngineError> {
        let answer = self.index(&IndexLook::Runs)?;
        let indexed = part_of!(self, answer, IndexAnswer::Runs(runs) => runs)?;
        let mut runs = Vec::with_capacity(indexed.len());
        for (id, indexed) in indexed {
            let run = RunId::parse(&id).map_err(|error| {
                EngineError::damaged(self.address(), "the index", error.to_string())
            })?;
            match indexed {
                IndexedRun::Left { last, has_ended } => {
                    let (holder, is_abandoned) = (None, false);
                    runs.push(SharedRun { run, last, holder, has_ended, is_abandoned });
                }
                IndexedRun::Held => runs.extend(self.summary(run)?),
            }
        }
        runs.sort_unstable_by(|a, b| a.run.cmp(&b.run));
        Ok(runs)
    }
}

impl RestateEngine {
    fn lease(&self, run: &RunId, call: &RunCall) -> Result<RunLease, EngineError> {
        let answer = self.run_within(run, call, LARGE_CALL_LIMIT)?;
        let epoch = part_of!(self, answer, RunAnswer::Epoch(epoch) => epoch)?;
        Ok(RunLease { run: run.clone(), epoch })
    }

    /// Returns a run that somebody supervises; `None` if it is only about to be created.
    fn summary(&self, run: RunId) -> Result<Option<SharedRun>, EngineError> {
        match if_there(self.run_look(&run, &RunLook::Summary))? {
            Some(RunAnswer::Summary { last, holder, has_ended, is_abandoned }) => {
                Ok(Some(SharedRun { run, last, holder, has_ended, is_abandoned }))
            }
            Some(other) => Err(self.unexpected(&other)),
            None => Ok(None),
        }
    }
}

// The lines of a log, which an object returns in several answers if they are many.

/// Some lines of a log, and the number of its last line.
#[derive(Debug, Default)]
pub(super) struct LogPage {
    lines: Vec<String>,
    last: u64,
}

impl LogPage {
    pub(super) fn of(engine: &RestateEngine, answer: RunAnswer) -> Result<Self, EngineError> {
        part_of!(engine, answer, RunAnswer::Lines { lines, last } => Self { lines, last })
    }

    /// Returns the lines after one, at most `limit` of them. `page` asks for lines after one, and for how many;
    /// `missing` makes the error about a line that is not there.
    pub(super) fn read_all(
        after: u64,
        limit: usize,
        page: impl Fn(u64, usize) -> Result<Self, EngineError>,
        missing: impl Fn(u64) -> EngineError,
    ) -> Result<Vec<LogLine>, EngineError> {
        let mut all: Vec<LogLine> = Vec::new();
        loop {
            let after = all.last().map_or(after, |line| line.seq);
            let Self { lines, last } = page(after, limit - all.len())?;
            let is_missing = lines.is_empty();
            let numbered = lines.into_iter().zip(after.saturating_add(1)..);
            all.extend(numbered.map(|(text, seq)| LogLine { seq, text }));
            if all.len() >= limit || all.last().map_or(after, |line| line.seq) >= last {
                return Ok(all);
            }
            if is_missing {
                return Err(missing(after + 1));
            }
        }
    }
}
