//! The log of the changes of facts: an object like that of a run, but without a lease.

use std::time::Duration;

use super::engine::RestateEngine;
use super::log::LogPage;
use super::objects::run_calls::{
    FactChangeCall, LONGEST_WAIT_MS, LeasedDeed, RunAnswer, RunCall, RunLook, RunTopic, WaitCall,
};
use super::objects::state::{FACTS, LOOK, RUN, WAIT};
use super::serving::{CALL_LIMIT, CalledHandler, LARGE_CALL_LIMIT};
use crate::shared_log::{FactAppend, FactLog, LogLine, RunLease};
use crate::{Engine, EngineError};
use raymond_model::time::millis_of;

impl FactLog for RestateEngine {
    fn fact_changes(&self, after: u64, limit: usize) -> Result<Vec<LogLine>, EngineError> {
        let page = |after, limit| {
            let called = CalledHandler { service: RUN, key: FACTS, handler: LOOK };
            let look = RunLook::Lines { after, limit };
            match self.caller.call(called, &look, LARGE_CALL_LIMIT)? {
                // Nothing was ever changed.
                RunAnswer::NoSuchRun => Ok(LogPage::default()),
                answer => LogPage::of(self, answer),
            }
        };
        let missing = |seq| self.damaged_facts(format!("change {seq} is missing"));
        LogPage::read_all(after, limit, page, missing)
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
            let call = RunCall::AppendFact { change };
            self.batches.call(&self.caller, FACTS, &call, Duration::ZERO)?
        };
        match answer {
            RunAnswer::Done => Ok(FactAppend::Appended),
            RunAnswer::Crossed => Ok(FactAppend::Crossed),
            RunAnswer::Unfit { why } => Err(self.damaged_facts(why)),
            other => Err(self.unexpected(&other)),
        }
    }

    fn wait_for_fact_changes(&self, after: u64, longest: Duration) -> Result<(), EngineError> {
        let longest_ms = millis_of(longest).min(LONGEST_WAIT_MS);
        let call = WaitCall { topic: RunTopic::Lines, seen: after, longest_ms };
        let limit = CALL_LIMIT + Duration::from_millis(longest_ms);
        let called = CalledHandler { service: RUN, key: FACTS, handler: WAIT };
        self.caller.call::<_, u64>(called, call, limit).map(drop)
    }
}

impl RestateEngine {
    fn damaged_facts(&self, why: String) -> EngineError {
        EngineError::damaged(self.address(), "the facts", why)
    }
}
