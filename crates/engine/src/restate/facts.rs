//! The log of the changes of facts: an object like that of a run, but without a lease.

use std::time::Duration;

use super::engine::RestateEngine;
use super::objects::run_calls::{FactChangeCall, LeasedDeed, RunAnswer, RunCall, RunLook};
use super::serving::{CalledHandler, LARGE_CALL_LIMIT, damaged};
use crate::restate::objects::state::{FACTS, LOOK, RUN};
use crate::shared_log::RunLease;
use crate::shared_log::{FactAppend, FactLog, FactLogEntry};
use crate::{Engine, EngineError};

impl FactLog for RestateEngine {
    fn fact_changes(&self, after: u64, limit: usize) -> Result<Vec<FactLogEntry>, EngineError> {
        let mut changes: Vec<FactLogEntry> = Vec::new();
        loop {
            let after = changes.last().map_or(after, |change| change.number);
            let (page, last) = self.page_of_facts(after, limit - changes.len())?;
            let is_missing = page.is_empty();
            let numbered = page.into_iter().zip(after.saturating_add(1)..);
            changes.extend(numbered.map(|(text, number)| FactLogEntry { number, text }));
            if changes.len() >= limit || changes.last().map_or(after, |one| one.number) >= last {
                return Ok(changes);
            }
            if is_missing {
                return Err(self.damaged_facts(format!("change {} is missing", after + 1)));
            }
        }
    }

    fn append_fact_change(
        &self,
        lease: Option<&RunLease>,
        after: u64,
        text: &str,
    ) -> Result<FactAppend, EngineError> {
        let change = FactChangeCall { after, text: text.to_owned() };
        let answer = if let Some(lease) = lease {
            self.leased(lease, LeasedDeed::ChangeFact { change })?
        } else {
            self.batches.call(
                &self.caller,
                FACTS,
                (&RunCall::AppendFact { change }, Duration::ZERO),
            )?
        };
        match answer {
            RunAnswer::Done => Ok(FactAppend::Appended),
            RunAnswer::Crossed => Ok(FactAppend::Crossed),
            RunAnswer::Unfit { why } => Err(self.damaged_facts(why)),
            other => Err(self.unexpected(&other)),
        }
    }

    fn wait_for_fact_changes(&self, after: u64, longest: Duration) -> Result<(), EngineError> {
        self.wait_for_facts(after, longest)
    }
}

impl RestateEngine {
    /// Returns some changes after one, and the number of the last.
    fn page_of_facts(&self, after: u64, limit: usize) -> Result<(Vec<String>, u64), EngineError> {
        let called = CalledHandler { service: RUN, key: FACTS, handler: LOOK };
        let look = RunLook::Lines { after, limit };
        match self.caller.call(called, &look, LARGE_CALL_LIMIT)? {
            RunAnswer::Lines { lines, last } => Ok((lines, last)),
            // Nothing was ever changed.
            RunAnswer::NoSuchRun => Ok((Vec::new(), 0)),
            other => Err(self.unexpected(&other)),
        }
    }

    fn damaged_facts(&self, why: String) -> EngineError {
        damaged(self.address(), "the facts", why)
    }
}
