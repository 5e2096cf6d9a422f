//! The hosts that the server knows, and the questions to them.

use std::time::Duration;

use raymond_model::host::{HostEpoch, HostName, HostReport, HostStanding};
use raymond_model::id::RunId;
use serde_json::Value;

use super::engine::{RestateEngine, if_there, part_of};
use super::mailbox::run_of;
use super::objects::run_calls::{RunAnswer, RunCall, RunLook};
use super::objects::state::{
    CHANGE, HOST, HostCall, HostLook, HostObjectAnswer, IndexAnswer, IndexLook, LOOK,
};
use super::serving::{CALL_LIMIT, CalledHandler};
use crate::shared_log::{
    HostClaim, HostQuestions, HostRegistry, HostRequest, RegisteredHost, RunLease,
};
use crate::{Engine, EngineError};
use raymond_model::time::millis_of;

impl HostRegistry for RestateEngine {
    fn register_host(
        &self,
        host: &HostName,
        worker: &str,
        report: &HostReport,
        silence: Duration,
    ) -> Result<HostClaim, EngineError> {
        let (worker, report) = (worker.to_owned(), self.carried(report)?);
        let silence_ms = millis_of(silence);
        let epoch =
            self.change_and_fence(host, HostCall::Register { worker, report, silence_ms })?;
        Ok(HostClaim { host: host.clone(), epoch })
    }

    fn heartbeat(
        &self,
        claim: &HostClaim,
        report: &HostReport,
    ) -> Result<HostStanding, EngineError> {
        let call = HostCall::Heartbeat { epoch: claim.epoch.0, report: self.carried(report)? };
        let answer = self.host(&claim.host, call)?;
        part_of!(self, answer, HostObjectAnswer::Standing(standing) => standing)
    }

    fn hosts(&self) -> Result<Vec<RegisteredHost>, EngineError> {
        let answer = self.index(&IndexLook::Hosts)?;
        let names = part_of!(self, answer, IndexAnswer::Hosts(names) => names)?;
        let mut hosts = Vec::with_capacity(names.len());
        for name in names {
            let host = HostName::parse(&name).map_err(|error| {
                EngineError::damaged(self.address(), "the index", error.to_string())
            })?;
            hosts.extend(self.registered(host)?);
        }
        hosts.sort_unstable_by(|a: &RegisteredHost, b| a.host.cmp(&b.host));
        Ok(hosts)
    }

    fn set_standing(&self, host: &HostName, standing: HostStanding) -> Result<(), EngineError> {
        self.change_and_fence(host, HostCall::SetStanding(standing)).map(drop)
    }

    fn end_epochs(
        &self,
        lease: &RunLease,
        host: &HostName,
        oldest_valid: HostEpoch,
    ) -> Result<(), EngineError> {
        self.fence(&lease.run, host, oldest_valid.0)
    }

    fn remove_host(&self, host: &HostName) -> Result<(), EngineError> {
        self.change_and_fence(host, HostCall::Remove).map(drop)
    }
}

impl RestateEngine {
    fn host(&self, host: &HostName, call: HostCall) -> Result<HostObjectAnswer, EngineError> {
        let called = CalledHandler { service: HOST, key: host.as_str(), handler: CHANGE };
        match self.caller.call(called, call, CALL_LIMIT)? {
            HostObjectAnswer::Taken => Err(EngineError::HostTaken { host: host.clone() }),
            HostObjectAnswer::Fenced => Err(EngineError::HostFenced { host: host.clone() }),
            HostObjectAnswer::NoSuchHost => {
                let engine = self.address().to_string();
                Err(EngineError::NoSuchHost { engine, host: host.clone() })
            }
            answer => Ok(answer),
        }
    }

    /// Changes a host, and notifies its runs which epochs are over. Returns its current epoch.
    ///
    /// A run that cannot be notified now is notified by the host, and a run whose object is damaged begins nothing.
    fn change_and_fence(&self, host: &HostName, call: HostCall) -> Result<HostEpoch, EngineError> {
        let (epoch, oldest_valid, runs) = match self.host(host, call)? {
            HostObjectAnswer::Epoch { epoch, oldest_valid, runs } => (epoch, oldest_valid, runs),
            other => return Err(self.unexpected(&other)),
        };
        let mut outcome = Ok(HostEpoch(epoch));
        for run in self.parsed(host, &runs)? {
            match if_there(self.fence(&run, host, oldest_valid)) {
                Ok(_) => {}
                Err(error) if error.is_passing() => outcome = Err(error),
                Err(error) => tracing::debug!("cannot notify {run} about the host {host}: {error}"),
            }
        }
        outcome
    }

    /// Notifies a run of the oldest epoch of a host that is not over.
    fn fence(&self, run: &RunId, host: &HostName, oldest_valid: u64) -> Result<(), EngineError> {
        let fence = RunCall::Fence { host: host.as_str().to_owned(), oldest_valid };
        self.run_within(run, &fence, CALL_LIMIT).map(drop)
    }

    /// Returns the runs that a host names.
    pub(super) fn parsed(
        &self,
        host: &HostName,
        runs: &[String],
    ) -> Result<Vec<RunId>, EngineError> {
        let parsed = runs.iter().map(|run| RunId::parse(run));
        parsed.collect::<Result<_, _>>().map_err(|error| {
            EngineError::damaged(self.address(), format!("the host {host}"), error.to_string())
        })
    }

    /// Returns a host; `None` if it was removed.
    fn registered(&self, host: HostName) -> Result<Option<RegisteredHost>, EngineError> {
        let called = CalledHandler { service: HOST, key: host.as_str(), handler: LOOK };
        match self.caller.call(called, HostLook::State, CALL_LIMIT)? {
            HostObjectAnswer::State { epoch, standing, silent_ms, report } => {
                let report = serde_json::from_value(report).map_err(|error| {
                    EngineError::damaged(
                        self.address(),
                        format!("the host {host}"),
                        error.to_string(),
                    )
                })?;
                let (epoch, silent_for) = (HostEpoch(epoch), Duration::from_millis(silent_ms));
                Ok(Some(RegisteredHost { host, epoch, standing, silent_for, report }))
            }
            HostObjectAnswer::NoSuchHost => Ok(None),
            other => Err(self.unexpected(&other)),
        }
    }

    fn carried(&self, report: &HostReport) -> Result<Value, EngineError> {
        serde_json::to_value(report).map_err(|error| {
            EngineError::refused(
                self.address(),
                format!("the report of the host cannot be written as JSON: {error}"),
            )
        })
    }
}

// Questions to hosts, from people who look at a run.

impl HostQuestions for RestateEngine {
    fn ask(&self, question: &HostRequest) -> Result<(), EngineError> {
        self.run(&question.run, &RunCall::Ask { question: question.into() }).map(drop)
    }

    fn question_reply(&self, key: &str) -> Result<Option<String>, EngineError> {
        let Some(run) = run_of(key) else { return Ok(None) };
        let look = RunLook::QuestionReply { key: key.to_owned() };
        let Some(answer) = if_there(self.run_look(&run, &look))? else { return Ok(None) };
        part_of!(self, answer, RunAnswer::QuestionReply(reply) => reply)
    }

    fn end_question(&self, key: &str) -> Result<(), EngineError> {
        let Some(run) = run_of(key) else { return Ok(()) };
        if_there(self.run(&run, &RunCall::EndQuestion { key: key.to_owned() })).map(drop)
    }
}
