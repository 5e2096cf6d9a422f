//! The mailbox of hosts. The requests are in the objects of their runs, so a host asks each run that has some for it.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use raymond_model::id::RunId;
use tokio::time::timeout;

use super::engine::{RestateEngine, millis};
use super::objects::run_calls::{
    ActingHost, CarriedReply, CarriedRequest, LeasedDeed, OpenRequest, RequestFate, RunAnswer,
    RunCall, RunLook, RunTopic,
};
use super::serving::{CALL_LIMIT, CalledHandler, unreachable};
use crate::EngineError;
use crate::restate::engine::{LOOK_AGAIN_AFTER, OpenWait, RunsToAsk};
use crate::restate::objects::host::{LONGEST_WAIT_MS, WaitCall};
use crate::restate::objects::state::{FACTS, HOST, HostLook, HostObjectAnswer, LOOK, RUN, WAIT};
use crate::shared_log::{
    HostClaim, HostMailbox, HostReply, HostRequest, MailReceiver, QUESTION, RunLease, Withdrawal,
};

impl HostMailbox for RestateEngine {
    fn send(&self, lease: &RunLease, requests: &[HostRequest]) -> Result<(), EngineError> {
        let (by, is_again) = self.sent_keys.send(requests.iter().map(|one| one.key.as_str()));
        let carried = requests.iter().map(|request| CarriedRequest {
            key: request.key.clone(),
            host: request.host.as_str().to_owned(),
            host_epoch: request.host_epoch.0,
            body: request.body.clone(),
        });
        self.leased(lease, LeasedDeed::Send { requests: carried.collect(), by, is_again }).map(drop)
    }

    fn sent(&self, lease: &RunLease) -> Result<Vec<String>, EngineError> {
        match self.leased(lease, LeasedDeed::Sent)? {
            RunAnswer::Keys(keys) => Ok(keys),
            other => Err(self.unexpected(&other)),
        }
    }

    fn begun(&self, run: &RunId) -> Result<Vec<String>, EngineError> {
        match self.run_look(run, &RunLook::Begun) {
            Ok(RunAnswer::Keys(keys)) => Ok(keys),
            Ok(other) => Err(self.unexpected(&other)),
            Err(EngineError::NoSuchRun { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn withdraw(&self, lease: &RunLease, key: &str) -> Result<Withdrawal, EngineError> {
        match self.leased(lease, LeasedDeed::Withdraw { key: key.to_owned() })? {
            RunAnswer::Fate(RequestFate::NotBegun) => Ok(Withdrawal::NotBegun),
            RunAnswer::Fate(RequestFate::Begun) => Ok(Withdrawal::Begun),
            RunAnswer::Fate(RequestFate::Answered) => Ok(Withdrawal::Answered),
            other => Err(self.unexpected(&other)),
        }
    }

    fn requests(
        &self,
        claim: &HostClaim,
        received: &[String],
        is_first: bool,
        limit: usize,
    ) -> Result<Vec<HostRequest>, EngineError> {
        let own = (HOST, claim.host.as_str().to_owned());
        if !is_first && received.is_empty() && self.looks.take_empty_wait(&own, Instant::now()) {
            return Ok(Vec::new());
        }
        let again = self.looks.take_look_again(&own, Instant::now()).filter(|_| !is_first);
        let (runs, mut patience) = match again {
            Some(RunsToAsk::Known(runs)) => (runs, LOOK_AGAIN_AFTER),
            Some(RunsToAsk::Unknown) => (self.runs_for(claim)?, LOOK_AGAIN_AFTER),
            None => (self.runs_for(claim)?, Duration::ZERO),
        };
        let (mut requests, mut failure) = (Vec::new(), None);
        for run in &runs {
            let received = received.iter().filter(|key| run_of(key).as_ref() == Some(run));
            let received: Vec<String> = received.cloned().collect();
            let (has_none_to_confirm, limit) = (received.is_empty(), limit - requests.len());
            let call = RunCall::Requests { by: acting(claim), received, is_first, limit };
            match self.open_requests(claim, run, (&call, std::mem::take(&mut patience))) {
                Ok(open) => requests.extend(open),
                // The others are not to suffer from a run that cannot be read. What it had given before is confirmed
                // first, or it would give that again.
                Err(error @ EngineError::Damaged { .. }) if has_none_to_confirm => {
                    failure = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        match failure {
            Some(error) if requests.is_empty() => return Err(error),
            Some(error) => tracing::debug!("{error}"),
            None => {}
        }
        self.looks.note(own, !requests.is_empty(), Instant::now());
        Ok(requests)
    }

    fn begin(&self, claim: &HostClaim, keys: &[String]) -> Result<HashSet<String>, EngineError> {
        let mut begun = HashSet::new();
        for (run, keys) in by_run(keys, |key| key) {
            let given: Vec<String> = keys.iter().map(|key| (*key).clone()).collect();
            let call = RunCall::Begin { by: acting(claim), keys: given };
            match self.run_for(claim, &run, &call) {
                Ok(RunAnswer::Begun(may)) => {
                    let may = keys.into_iter().zip(may).filter(|(_, may)| *may);
                    begun.extend(may.map(|(key, _)| key.clone()));
                }
                Ok(other) => return Err(self.unexpected(&other)),
                Err(EngineError::NoSuchRun { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(begun)
    }

    /// Those of a run are all kept, or none. After an error the others may be kept already, and come again.
    fn reply(&self, claim: &HostClaim, replies: &[HostReply]) -> Result<(), EngineError> {
        for (run, replies) in by_run(replies, |reply| &reply.key) {
            let carried = replies
                .iter()
                .map(|reply| CarriedReply { key: reply.key.clone(), body: reply.body.clone() });
            let call = RunCall::Reply { by: acting(claim), replies: carried.collect() };
            match self.run_for(claim, &run, &call) {
                Ok(_) | Err(EngineError::NoSuchRun { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn replies(
        &self,
        lease: &RunLease,
        received: &[String],
        limit: usize,
    ) -> Result<Vec<HostReply>, EngineError> {
        let own = (RUN, lease.run.as_str().to_owned());
        if received.is_empty() && self.looks.take_empty_wait(&own, Instant::now()) {
            return Ok(Vec::new());
        }
        let looks_again = self.looks.take_look_again(&own, Instant::now()).is_some();
        let patience = if looks_again { LOOK_AGAIN_AFTER } else { Duration::ZERO };
        let deed = LeasedDeed::Replies { received: received.to_vec(), limit };
        let call = RunCall::Leased { epoch: lease.epoch, deed };
        let replies = match self.run_patiently(&lease.run, &call, patience)? {
            RunAnswer::Replies(replies) => replies,
            other => return Err(self.unexpected(&other)),
        };
        self.looks.note(own, !replies.is_empty(), Instant::now());
        let carried = |CarriedReply { key, body }| HostReply { key, body };
        Ok(replies.into_iter().map(carried).collect())
    }

    fn forget(&self, lease: &RunLease, keys: &[String]) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::Forget { keys: keys.to_vec(), by: self.sent_keys.number() })
            .map(drop)
    }

    fn forget_all(&self, lease: &RunLease) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::ForgetAll { by: self.sent_keys.number() }).map(drop)
    }

    fn wait_for_mail(
        &self,
        receiver: MailReceiver<'_>,
        longest: Duration,
    ) -> Result<(), EngineError> {
        self.wait_for_mail_of(receiver, longest)
    }
}

impl RestateEngine {
    /// Calls a run for a host.
    fn run_for(
        &self,
        claim: &HostClaim,
        run: &RunId,
        call: &RunCall,
    ) -> Result<RunAnswer, EngineError> {
        unfenced(claim, self.run(run, call)?)
    }

    /// Asks a run for the requests that its host has not received.
    fn open_requests(
        &self,
        claim: &HostClaim,
        run: &RunId,
        (call, patience): (&RunCall, Duration),
    ) -> Result<impl Iterator<Item = HostRequest>, EngineError> {
        let answer = self.run_patiently(run, call, patience)?;
        let open = match unfenced(claim, answer)? {
            RunAnswer::Requests(open) => open,
            other => return Err(self.unexpected(&other)),
        };
        let (run, HostClaim { host, epoch }) = (run.clone(), claim.clone());
        Ok(open.into_iter().map(move |OpenRequest { key, body }| HostRequest {
            key,
            run: run.clone(),
            host: host.clone(),
            host_epoch: epoch,
            body,
        }))
    }

    /// Asks for the runs that have requests for a host, if its claim is the newest.
    fn runs_for(&self, claim: &HostClaim) -> Result<Vec<RunId>, EngineError> {
        let called = CalledHandler { service: HOST, key: claim.host.as_str(), handler: LOOK };
        let look = HostLook::Runs { epoch: claim.epoch.0 };
        let runs = match self.caller.call(called, look, CALL_LIMIT)? {
            HostObjectAnswer::Runs(runs) => self.parsed(&claim.host, &runs)?,
            HostObjectAnswer::Fenced => {
                return Err(EngineError::HostFenced { host: claim.host.clone() });
            }
            other => return Err(self.unexpected(&other)),
        };
        let receiver = (HOST, claim.host.as_str().to_owned());
        self.looks.note_runs(receiver, runs.clone(), Instant::now());
        Ok(runs)
    }
}

/// Returns the answer to a call of a host, unless its epoch is over.
fn unfenced(claim: &HostClaim, answer: RunAnswer) -> Result<RunAnswer, EngineError> {
    match answer {
        RunAnswer::Fenced => Err(EngineError::HostFenced { host: claim.host.clone() }),
        answer => Ok(answer),
    }
}

fn acting(claim: &HostClaim) -> ActingHost {
    ActingHost { host: claim.host.as_str().to_owned(), epoch: claim.epoch.0 }
}

/// Returns the run that a key begins with, behind the mark of a question.
pub(super) fn run_of(key: &str) -> Option<RunId> {
    let (run, _) = key.strip_prefix(QUESTION).unwrap_or(key).split_once('/')?;
    RunId::parse(run).ok()
}

/// Groups what has keys by the runs that the keys begin with. A key without a run is of none.
fn by_run<T>(all: &[T], key: impl Fn(&T) -> &String) -> BTreeMap<RunId, Vec<&T>> {
    let mut groups: BTreeMap<RunId, Vec<&T>> = BTreeMap::new();
    for one in all {
        let run = run_of(key(one));
        if let Some(run) = run {
            groups.entry(run).or_default().push(one);
        }
    }
    groups
}

// Waits for mail and for lines: the object answers when there are news.

/// The time for which a wait for mail stays open on the server. To open one costs three calls, so it outlives callers
/// that give up earlier.
const MAIL_WAIT_MS: u64 = 5_000;

impl RestateEngine {
    /// Waits for mail that came after the last wait. Returns at once if some was found a moment ago, so that the caller
    /// looks again.
    pub(super) fn wait_for_mail_of(
        &self,
        receiver: MailReceiver<'_>,
        longest: Duration,
    ) -> Result<(), EngineError> {
        let (service, key) = match receiver {
            MailReceiver::Host(host) => (HOST, host.as_str()),
            MailReceiver::Run(run) => (RUN, run.as_str()),
        };
        let waiter = (service, key.to_owned());
        if self.looks.tell_to_look_again(&waiter, Instant::now()) {
            return Ok(());
        }
        let seen = self.seen.of(&waiter);
        let start = || self.start_wait((service, key), seen);
        let mut wait = self.waits.take(&waiter).unwrap_or_else(start);
        let news = self.caller.handle.block_on(async { timeout(longest, &mut wait).await });
        match news {
            Err(_) => {
                self.waits.keep(waiter.clone(), wait);
                self.looks.note_empty_wait(waiter);
            }
            Ok(Ok(news)) => {
                let news = news?;
                if news == seen {
                    self.looks.note_empty_wait(waiter);
                } else {
                    self.seen.see(waiter, news);
                }
            }
            Ok(Err(_)) => {
                return Err(unreachable(&self.caller.address, "the wait for mail was ended"));
            }
        }
        Ok(())
    }

    /// Starts a wait for mail, which goes on for longer than its first caller waits.
    fn start_wait(&self, (service, key): (&'static str, &str), seen: u64) -> OpenWait {
        let (caller, key) = (self.caller.clone(), key.to_owned());
        let call = WaitCall { topic: RunTopic::Mail, seen, longest_ms: MAIL_WAIT_MS };
        let limit = CALL_LIMIT + Duration::from_millis(MAIL_WAIT_MS);
        self.caller.handle.spawn(async move {
            let handler = CalledHandler { service, key: &key, handler: WAIT };
            caller.ask(handler, call, limit).await
        })
    }

    /// Waits for changes of facts.
    pub(super) fn wait_for_facts(&self, after: u64, longest: Duration) -> Result<(), EngineError> {
        self.wait((RUN, FACTS), (RunTopic::Lines, after), longest).map(drop)
    }

    fn wait(
        &self,
        (service, key): (&'static str, &str),
        (topic, seen): (RunTopic, u64),
        longest: Duration,
    ) -> Result<u64, EngineError> {
        let longest_ms = millis(longest).min(LONGEST_WAIT_MS);
        let call = WaitCall { topic, seen, longest_ms };
        let limit = CALL_LIMIT + Duration::from_millis(longest_ms);
        self.caller.call(CalledHandler { service, key, handler: WAIT }, call, limit)
    }
}
