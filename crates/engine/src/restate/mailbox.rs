//! The mailbox of hosts. The requests are in the objects of their runs, so a host asks each run that has some for it.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use raymond_model::id::RunId;
use tokio::time::timeout;

use super::engine::{LOOK_AGAIN_AFTER, OpenWait, RestateEngine, RunsToAsk, if_there, part_of};
use super::objects::run_calls::{
    CarriedRequest, LeasedDeed, OpenRequest, RunAnswer, RunCall, RunLook, RunTopic, WaitCall,
};
use super::objects::state::{HOST, HostLook, HostObjectAnswer, LOOK, RUN, WAIT};
use super::serving::{CALL_LIMIT, CalledHandler};
use crate::EngineError;
use crate::shared_log::{
    HostClaim, HostMailbox, HostReply, HostRequest, MailReceiver, QUESTION, RunLease, Withdrawal,
};

impl HostMailbox for RestateEngine {
    fn send(&self, lease: &RunLease, requests: &[HostRequest]) -> Result<(), EngineError> {
        let (by, is_again) =
            self.sent_keys.send(requests.iter().map(|request| request.key.as_str()));
        let requests = requests.iter().map(CarriedRequest::from).collect();
        self.leased(lease, LeasedDeed::Send { requests, by, is_again }).map(drop)
    }

    fn sent(&self, lease: &RunLease) -> Result<Vec<String>, EngineError> {
        part_of!(self, self.leased(lease, LeasedDeed::Sent)?, RunAnswer::Keys(keys) => keys)
    }

    fn begun(&self, run: &RunId) -> Result<Vec<String>, EngineError> {
        let answer = if_there(self.run_look(run, &RunLook::Begun))?;
        answer
            .map_or(Ok(Vec::new()), |answer| part_of!(self, answer, RunAnswer::Keys(keys) => keys))
    }

    fn withdraw(&self, lease: &RunLease, key: &str) -> Result<Withdrawal, EngineError> {
        let answer = self.leased(lease, LeasedDeed::Withdraw { key: key.to_owned() })?;
        part_of!(self, answer, RunAnswer::Fate(fate) => fate)
    }

    fn requests(
        &self,
        claim: &HostClaim,
        received: &[String],
        is_first: bool,
        limit: usize,
    ) -> Result<Vec<HostRequest>, EngineError> {
        let queue = (HOST, claim.host.as_str().to_owned());
        if !is_first
            && received.is_empty()
            && self.receivers.take_empty_wait(&queue, Instant::now())
        {
            return Ok(Vec::new());
        }
        let again = self.receivers.take_look_again(&queue, Instant::now()).filter(|_| !is_first);
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
            let call = RunCall::Requests { by: claim.clone(), received, is_first, limit };
            match self.open_requests(claim, run, &call, std::mem::take(&mut patience)) {
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
        self.receivers.note(queue, !requests.is_empty(), Instant::now());
        Ok(requests)
    }

    fn begin(&self, claim: &HostClaim, keys: &[String]) -> Result<HashSet<String>, EngineError> {
        let mut begun = HashSet::new();
        for (run, keys) in by_run(keys, |key| key) {
            let given: Vec<String> = keys.iter().map(|key| (*key).clone()).collect();
            let call = RunCall::Begin { by: claim.clone(), keys: given };
            let Some(answer) = if_there(self.run_for(claim, &run, &call))? else { continue };
            let may_begin = part_of!(self, answer, RunAnswer::Begun(may_begin) => may_begin)?;
            let allowed = keys.into_iter().zip(may_begin).filter(|(_, may_begin)| *may_begin);
            begun.extend(allowed.map(|(key, _)| key.clone()));
        }
        Ok(begun)
    }

    /// Those of a run are all kept, or none. After an error the others may be kept already, and come again.
    fn reply(&self, claim: &HostClaim, replies: &[HostReply]) -> Result<(), EngineError> {
        for (run, replies) in by_run(replies, |reply| &reply.key) {
            let replies = replies.into_iter().cloned().collect();
            if_there(self.run_for(claim, &run, &RunCall::Reply { by: claim.clone(), replies }))?;
        }
        Ok(())
    }

    fn replies(
        &self,
        lease: &RunLease,
        received: &[String],
        limit: usize,
    ) -> Result<Vec<HostReply>, EngineError> {
        let queue = (RUN, lease.run.as_str().to_owned());
        if received.is_empty() && self.receivers.take_empty_wait(&queue, Instant::now()) {
            return Ok(Vec::new());
        }
        let looks_again = self.receivers.take_look_again(&queue, Instant::now()).is_some();
        let patience = if looks_again { LOOK_AGAIN_AFTER } else { Duration::ZERO };
        let deed = LeasedDeed::Replies { received: received.to_vec(), limit };
        let call = RunCall::Leased { epoch: lease.epoch, deed };
        let answer = self.run_patiently(&lease.run, &call, patience)?;
        let replies = part_of!(self, answer, RunAnswer::Replies(replies) => replies)?;
        self.receivers.note(queue, !replies.is_empty(), Instant::now());
        Ok(replies)
    }

    fn forget(&self, lease: &RunLease, keys: &[String]) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::Forget { keys: keys.to_vec(), by: self.sent_keys.number() })
            .map(drop)
    }

    fn forget_all(&self, lease: &RunLease) -> Result<(), EngineError> {
        self.leased(lease, LeasedDeed::ForgetAll { by: self.sent_keys.number() }).map(drop)
    }

    /// Waits for mail that came after the last wait. Returns at once if some was found a moment ago, so that the caller
    /// looks again.
    fn wait_for_mail(
        &self,
        receiver: MailReceiver<'_>,
        longest: Duration,
    ) -> Result<(), EngineError> {
        let (service, key) = match receiver {
            MailReceiver::Host(host) => (HOST, host.as_str()),
            MailReceiver::Run(run) => (RUN, run.as_str()),
        };
        let waiter = (service, key.to_owned());
        if self.receivers.ask_to_look_again(&waiter, Instant::now()) {
            return Ok(());
        }
        let (seen, wait) = self.receivers.take_wait(&waiter);
        let mut wait = wait.unwrap_or_else(|| self.start_wait(service, key, seen));
        let news = self.caller.handle.block_on(async { timeout(longest, &mut wait).await });
        let Ok(news) = news else {
            self.receivers.keep_wait(waiter, wait);
            return Ok(());
        };
        let ended =
            |_| EngineError::unreachable(&self.caller.address, "the wait for mail was ended");
        match news.map_err(ended)?? {
            news if news == seen => self.receivers.note_empty_wait(waiter),
            news => self.receivers.see(waiter, news),
        }
        Ok(())
    }
}

/// The time for which a wait for mail stays open on the server. To open one costs three calls, so it outlives callers
/// that give up earlier.
const MAIL_WAIT_MS: u64 = 5_000;

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
        call: &RunCall,
        patience: Duration,
    ) -> Result<impl Iterator<Item = HostRequest>, EngineError> {
        let answer = unfenced(claim, self.run_patiently(run, call, patience)?)?;
        let open = part_of!(self, answer, RunAnswer::Requests(open) => open)?;
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
        let queue = (HOST, claim.host.as_str().to_owned());
        self.receivers.note_runs(queue, runs.clone(), Instant::now());
        Ok(runs)
    }

    /// Starts a wait for mail, which goes on for longer than its first caller waits.
    fn start_wait(&self, service: &'static str, key: &str, seen: u64) -> OpenWait {
        let (caller, key) = (self.caller.clone(), key.to_owned());
        let call = WaitCall { topic: RunTopic::Mail, seen, longest_ms: MAIL_WAIT_MS };
        let limit = CALL_LIMIT + Duration::from_millis(MAIL_WAIT_MS);
        self.caller.handle.spawn(async move {
            let handler = CalledHandler { service, key: &key, handler: WAIT };
            caller.ask(handler, call, limit).await
        })
    }
}

/// Returns the answer to a call of a host, unless its epoch is over.
fn unfenced(claim: &HostClaim, answer: RunAnswer) -> Result<RunAnswer, EngineError> {
    match answer {
        RunAnswer::Fenced => Err(EngineError::HostFenced { host: claim.host.clone() }),
        answer => Ok(answer),
    }
}

/// Returns the run that a key begins with, behind the mark of a question.
pub(super) fn run_of(key: &str) -> Option<RunId> {
    let (run, _) = key.strip_prefix(QUESTION).unwrap_or(key).split_once('/')?;
    RunId::parse(run).ok()
}

/// Groups what has keys by the runs that the keys begin with. A key without a run is of none.
fn by_run<T>(all: &[T], key: impl Fn(&T) -> &String) -> BTreeMap<RunId, Vec<&T>> {
    let mut groups: BTreeMap<RunId, Vec<&T>> = BTreeMap::new();
    for item in all {
        if let Some(run) = run_of(key(item)) {
            groups.entry(run).or_default().push(item);
        }
    }
    groups
}
