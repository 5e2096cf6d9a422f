//! The threads that speak with the engine for a supervisor (requests, answers, watch of the hosts), and calls to hosts.

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use crate::domain::host::{Home, HostEpoch, HostName, HostStanding};
use crate::domain::host_work::{HostAnswer, HostWork, TURN, request_key};
use crate::domain::id::RunId;
use crate::domain::mutex::lock;
use crate::domain::placement::HostSighting;
use crate::engine::EngineError;
use crate::engine::connect::RunSpace;
use crate::engine::shared_log::{HostReply, HostRequest, MailReceiver, RegisteredHost, Withdrawal};
use crate::runtime::error::Error;
use crate::runtime::sharing::{
    CommandRole, EngineMirror, HeldRun, PageSize, ReportedError, SilentHosts, fetch_mail, sighting,
    store_if_large, until_fixed, until_reached,
};

/// The most requests that are sent at a time.
const PAGE: usize = 500;

/// The number of bytes after which no further request is added to those that are sent at a time. An engine takes 32
/// MiB.
const PAGE_BYTES: usize = 2 << 20;

/// The most answers that are taken at a time. While some wait to be taken, it costs more to add others.
const ANSWERS: usize = 2_000;

/// The time between two looks at the hosts and the commands.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The time to wait for a further request. A call costs the engine more than the requests that it carries.
const GATHERING_TIME: Duration = Duration::from_millis(1);

/// The longest time in which requests are gathered.
const LONGEST_GATHERING: Duration = Duration::from_millis(5);

/// The number of requests that are forgotten at a time. They are over, so nothing waits for that.
const FORGOTTEN: usize = 256;

/// The longest wait for answers.
const MAIL_WAIT: Duration = Duration::from_millis(500);

/// The threads of a supervisor that speak with the engine, until this is dropped.
#[derive(Debug)]
pub(in crate::runtime) struct HostMailThread {
    ends: ThreadEnd,
    outgoing: Sender<Outgoing>,
    /// The threads to join at the end. The thread that brings answers is not joined: it may be waiting for some, and
    /// changes nothing.
    threads: Vec<JoinHandle<()>>,
}

impl HostMailThread {
    /// Starts the threads. `hosts` repeatedly receives all hosts.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub(in crate::runtime) fn start(
        held: &HeldRun,
        mirror: EngineMirror,
        hosts: mpsc::UnboundedSender<Vec<HostSighting>>,
    ) -> Result<(Self, HostCalls), Error> {
        let (outgoing, sent) = channel();
        let (forgets, forgotten) = channel();
        let calls = HostCalls::new(held.lease.run.clone(), outgoing.clone());
        let ends = ThreadEnd::default();
        let sender = MailSide { held: held.clone(), calls: calls.clone(), ends: ends.clone() };
        let (receiver, forgetter, watcher) = (sender.clone(), sender.clone(), sender.clone());
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let mut started = Self { ends, outgoing, threads: Vec::new() };
        let threads = [
            named("requests").spawn(move || sender.send(&sent, &forgets)),
            named("forgets").spawn(move || forgetter.forget(&forgotten)),
            named("hosts").spawn(move || watcher.watch(&mirror, &hosts)),
        ];
        // Those that were started end with it if another one was not.
        for thread in threads {
            started.threads.push(thread.map_err(Error::NoThread)?);
        }
        named("answers").spawn(move || receiver.receive()).map_err(Error::NoThread)?;
        Ok((started, calls))
    }
}

impl Drop for HostMailThread {
    fn drop(&mut self) {
        self.ends.tell();
        // What was put out before is still sent.
        let _ = self.outgoing.send(Outgoing::End);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One of the threads.
#[derive(Clone)]
struct MailSide {
    held: HeldRun,
    calls: HostCalls,
    ends: ThreadEnd,
}

impl MailSide {
    fn has_ended(&self) -> bool {
        self.ends.is_ending()
    }

    /// Repeats a call until the engine has carried it out; `None` if another raymond has the run, or it is over. The
    /// log says which, and that the engine cannot be reached.
    fn until_done<T>(&self, call: impl Fn(&HeldRun) -> Result<T, EngineError>) -> Option<T> {
        let done = until_fixed(|| self.has_ended(), || call(&self.held));
        done.inspect_err(|error| tracing::debug!("{error}")).ok()
    }

    /// Has requests forgotten, in a separate thread so that no sending waits for it.
    fn forget(&self, forgotten: &Receiver<Vec<String>>) {
        while let Ok(keys) = forgotten.recv() {
            if self.has_ended() {
                return;
            }
            self.until_done(|held| held.engine.forget(&held.lease, &keys));
        }
    }

    /// Sends what is put out, in batches. The keys of requests that are over go to the thread that has them forgotten,
    /// which may come to them after all were forgotten: then it finds none.
    fn send(&self, outgoing: &Receiver<Outgoing>, forgets: &Sender<Vec<String>>) {
        let (mut batch, mut over): (Vec<HostRequest>, Vec<String>) = (Vec::new(), Vec::new());
        loop {
            let next = match outgoing.recv_timeout(MAIL_WAIT) {
                Ok(next) => Some(next),
                Err(RecvTimeoutError::Timeout) if !self.has_ended() => None,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            };
            let (is_idle, end) = (next.is_none(), Instant::now() + LONGEST_GATHERING);
            let mut rest = next;
            let (mut is_over, mut bytes) = (false, 0);
            while let Some(part) = rest.take() {
                match part {
                    Outgoing::End => is_over = true,
                    Outgoing::Send(request) => {
                        bytes += request.body.len();
                        batch.push(request);
                    }
                    Outgoing::Forget(key) => over.push(key),
                    Outgoing::Withdraw(key) => {
                        self.flush(&mut batch);
                        self.withdraw(&key);
                    }
                    Outgoing::ForgetAll => {
                        self.flush(&mut batch);
                        over.clear();
                        self.until_done(|held| held.engine.forget_all(&held.lease));
                    }
                }
                let left = end.saturating_duration_since(Instant::now()).min(GATHERING_TIME);
                let has_room = batch.len() < PAGE && bytes < PAGE_BYTES;
                rest = if has_room { outgoing.recv_timeout(left).ok() } else { None };
            }
            self.flush(&mut batch);
            if over.len() >= FORGOTTEN || (is_idle && !over.is_empty()) {
                // Without that thread they are forgotten at the end of the run.
                let _ = forgets.send(std::mem::take(&mut over));
            }
            if is_over {
                return;
            }
        }
    }

    fn flush(&self, batch: &mut Vec<HostRequest>) {
        batch.retain_mut(|request| {
            let engine = &*self.held.engine;
            let stored = until_reached(|| self.has_ended(), || store_request(engine, request));
            match stored {
                Ok(()) => true,
                Err(error) => {
                    let why = format!("the request is too large for the mailbox, and {error}");
                    self.calls.answer(&request.key, HostAnswer::Refused { why });
                    false
                }
            }
        });
        match self.sent(batch) {
            Err(EngineError::Unstorable { .. }) => {
                for request in batch.drain(..) {
                    if let Err(error) = self.sent(std::slice::from_ref(&request)) {
                        let why = error.to_string();
                        self.calls.answer(&request.key, HostAnswer::Refused { why });
                    }
                }
            }
            // These requests never begin, and their callers would wait forever.
            Err(error) => {
                tracing::debug!("{error}");
                for request in batch.drain(..) {
                    self.calls.answer(&request.key, HostAnswer::Interrupted);
                }
            }
            Ok(()) => batch.clear(),
        }
    }

    /// Sends requests.
    fn sent(&self, requests: &[HostRequest]) -> Result<(), EngineError> {
        if requests.is_empty() {
            return Ok(());
        }
        let HeldRun { engine, lease } = &self.held;
        until_fixed(|| self.has_ended(), || engine.send(lease, requests))
    }

    /// Takes a request back.
    fn withdraw(&self, key: &str) {
        match self.until_done(|held| held.engine.withdraw(&held.lease, key)) {
            Some(Withdrawal::NotBegun) => self.calls.answer(key, HostAnswer::Interrupted),
            Some(Withdrawal::Begun | Withdrawal::Answered) | None => {}
        }
    }

    /// Brings answers.
    fn receive(&self) {
        let (mut received, size) = (Vec::<String>::new(), PageSize::new(ANSWERS));
        while !self.has_ended() {
            let page = self.until_done(|held| {
                size.ask(|most| held.engine.replies(&held.lease, &received, most))
            });
            let Some((replies, is_full)) = page else { return };
            received = replies.iter().map(|reply| reply.key.clone()).collect();
            for HostReply { key, body } in replies {
                let Some(answer) = self.until_done(|held| answer_in(&*held.engine, &body)) else {
                    return;
                };
                self.calls.answer(&key, answer);
            }
            if !is_full {
                let run = &self.held.lease.run;
                self.until_done(|held| {
                    held.engine.wait_for_mail(MailReceiver::Run(run), MAIL_WAIT)
                });
            }
        }
    }

    /// Watches the hosts, and exchanges commands.
    fn watch(&self, mirror: &EngineMirror, hosts: &mpsc::UnboundedSender<Vec<HostSighting>>) {
        let lease = self.held.lease.clone();
        let mut silent = SilentHosts::default();
        let mut unseen = ReportedError::about("no host gets agents", "the hosts are known again");
        let mut unheard = ReportedError::about(
            "commands from other machines wait",
            "commands from other machines are accepted again",
        );
        while !self.has_ended() {
            let began = Instant::now();
            unseen.note(self.look_at_hosts(&mut silent, hosts).map_err(Error::from));
            if self.calls.awaits_begin()
                && let Ok(begun) = self.held.engine.begun(&lease.run)
            {
                self.calls.note_begun(&begun);
            }
            let role = CommandRole::Supervisor(&lease);
            unheard.note(mirror.exchange_commands(&lease.run, role));
            self.ends.pause(LOOK_INTERVAL.saturating_sub(began.elapsed()));
        }
    }
}

impl MailSide {
    /// Looks at the hosts once, and tells `hosts` of them.
    fn look_at_hosts(
        &self,
        silent: &mut SilentHosts,
        hosts: &mpsc::UnboundedSender<Vec<HostSighting>>,
    ) -> Result<(), EngineError> {
        let seen = self.held.engine.hosts().inspect_err(|_| silent.start_again())?;
        for news in silent.news(&seen, |host| self.calls.waits_for(host)) {
            tracing::warn!("{news}");
        }
        self.lose_overdue(&silent.overdue(&seen));
        let seen: Vec<HostSighting> = seen.into_iter().map(sighting).collect();
        // If that fails, their agents go nowhere else while the hosts could still begin something.
        self.end_lost_calls(&seen)?;
        // If this fails, the receiver has ended with the run.
        let _ = hosts.send(seen);
        Ok(())
    }

    /// Declares hosts lost.
    fn lose_overdue(&self, overdue: &[&RegisteredHost]) {
        for host in overdue {
            let (name, seconds) = (&host.host, host.silent_for.as_secs());
            match self.held.engine.set_standing(name, HostStanding::Lost) {
                Ok(()) => tracing::warn!(
                    "host {name} counts as lost: it has been silent for {seconds} s, longer than the --host-timeout of its worker"
                ),
                Err(error) => tracing::debug!("{error}"),
            }
        }
    }

    /// Ends the calls to hosts that were declared lost. Nothing that their workers do counts any more.
    fn end_lost_calls(&self, seen: &[HostSighting]) -> Result<(), EngineError> {
        // A host that is no longer listed was removed.
        let is_over = |home: &Home| {
            let seen_host = seen.iter().find(|host| home.host.as_ref() == Some(&host.host));
            seen_host
                .is_none_or(|host| host.epoch > home.epoch || host.standing == HostStanding::Lost)
        };
        let HeldRun { engine, lease } = &self.held;
        let mut over: Vec<Home> = Vec::new();
        for (host, epoch) in self.calls.awaited() {
            let home = Home { host: Some(host), epoch };
            if let Some(host) = home.host.as_ref().filter(|_| is_over(&home)) {
                engine.end_epochs(lease, host, HostEpoch(epoch.0 + 1))?;
                over.push(home);
            }
        }
        let why = "the host was declared lost; what it had begun may be done twice".to_owned();
        // A call to another home that was made meanwhile could still be begun.
        self.calls.lose(|home| over.contains(home), &HostAnswer::Lost { why });
        Ok(())
    }
}

/// The end of some threads, which all share. It wakes those that pause between two looks.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadEnd(Arc<(Mutex<bool>, Condvar)>);

impl ThreadEnd {
    /// Asks the threads to end.
    pub(super) fn tell(&self) {
        let (is_ending, wake) = &*self.0;
        *lock(is_ending) = true;
        wake.notify_all();
    }

    /// Returns whether the threads have been asked to end.
    pub(super) fn is_ending(&self) -> bool {
        *lock(&self.0.0)
    }

    /// Pauses this thread, at most until it is asked to end.
    pub(super) fn pause(&self, longest: Duration) {
        let (is_ending, wake) = &*self.0;
        let ending = lock(is_ending);
        drop(wake.wait_timeout_while(ending, longest, |ending| !*ending));
    }
}

// Requests and answers of a supervisor that are too large for the mailbox.

/// Has the engine keep the body of a request that is too large, and names that content in its place.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(super) fn store_request(
    space: &dyn RunSpace,
    request: &mut HostRequest,
) -> Result<(), EngineError> {
    if let Some(mail) = store_if_large(space, &request.body)?
        && let Ok(body) = serde_json::to_string(&HostWork::Stored { mail })
    {
        request.body = body;
    }
    Ok(())
}

/// Reads an answer, from a content of the engine if it is one.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(super) fn answer_in(space: &dyn RunSpace, body: &str) -> Result<HostAnswer, EngineError> {
    let answer = read(body);
    let HostAnswer::Stored { mail } = &answer else { return Ok(answer) };
    Ok(match fetch_mail(space, mail)? {
        Ok(body) => read(&body),
        Err(why) => HostAnswer::Refused { why: format!("its answer cannot be fetched: {why}") },
    })
}

fn read(body: &str) -> HostAnswer {
    serde_json::from_str(body).unwrap_or_else(|error| HostAnswer::Refused {
        why: format!("its answer cannot be read: {error}"),
    })
}

// Calls to hosts: a request by its key, and the caller that waits for the answer.
//
// A supervisor that takes over the run sends the call again under the same key, and gets the answer to the first call.

/// The kinds of requests whose names come from the run itself.
const NAMED_ONCE: [&str; 2] = [TURN, ACTIVITY];

/// The kind of the request for an activity.
pub(super) const ACTIVITY: &str = "activity";

/// The orders for the mail thread.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// Send a request.
    Send(HostRequest),
    /// Withdraw a request. If the host has not begun it, its caller learns that it was ended.
    Withdraw(String),
    /// Forget answered requests.
    Forget(String),
    /// Forget all requests of the run, which is over.
    ForgetAll,
    /// Do nothing more.
    End,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct WaitingCall {
    home: Home,
    /// The sender of the notice that the host has begun it. `None` if the notice was sent, or nobody waits for it.
    on_begin: Option<oneshot::Sender<()>>,
    answer: oneshot::Sender<HostAnswer>,
}

/// The calls that wait, and the answers to calls that an earlier supervisor made and this one has not made yet.
#[derive(Debug, Default)]
struct PendingHostCalls {
    waiting: HashMap<String, WaitingCall>,
    early: HashMap<String, HostAnswer>,
}

/// The calls of a run to hosts.
#[derive(Debug, Clone)]
pub(in crate::runtime) struct HostCalls {
    run: RunId,
    outgoing: Sender<Outgoing>,
    open: Arc<Mutex<PendingHostCalls>>,
    /// The hosts that were ever asked for something.
    asked: Arc<Mutex<BTreeSet<(HostName, HostEpoch)>>>,
}

impl HostCalls {
    pub(super) fn new(run: RunId, outgoing: Sender<Outgoing>) -> Self {
        Self { run, outgoing, open: Arc::default(), asked: Arc::default() }
    }

    /// Returns the key of a call about something that is named once in the run.
    pub(super) fn key(&self, kind: &str, name: &str, home: &Home) -> String {
        request_key(&self.run, kind, name, home)
    }

    /// Asks a host for work, and waits for the answer.
    pub(super) async fn call(&self, key: String, home: &Home, work: &HostWork) -> HostAnswer {
        self.watched_call(key, home, work, None).await
    }

    /// Asks a host for work, and waits for the answer. `begun` gets a notice once the host begins it.
    pub(super) async fn watched_call(
        &self,
        key: String,
        home: &Home,
        work: &HostWork,
        on_begin: Option<oneshot::Sender<()>>,
    ) -> HostAnswer {
        let Some(host) = &home.host else {
            return HostAnswer::Refused { why: "the agent has no host yet".to_owned() };
        };
        let body = match serde_json::to_string(work) {
            Ok(body) => body,
            Err(error) => return HostAnswer::Refused { why: error.to_string() },
        };
        let (answer, answered) = oneshot::channel();
        {
            let mut open = lock(&self.open);
            if let Some(early) = open.early.remove(&key) {
                return early;
            }
            let home = home.clone();
            open.waiting.insert(key.clone(), WaitingCall { home, on_begin, answer });
        }
        lock(&self.asked).insert((host.clone(), home.epoch));
        let (run, host) = (self.run.clone(), host.clone());
        self.put(Outgoing::Send(HostRequest { key, run, host, host_epoch: home.epoch, body }));
        match answered.await {
            Ok(answer) => answer,
            // The mail thread has ended, and with it the supervisor.
            Err(_) => HostAnswer::Interrupted,
        }
    }

    /// Asks a host for something whose answer nobody waits for.
    pub(super) fn tell(&self, key: String, home: &Home, work: &HostWork) {
        let (Some(host), Ok(body)) = (home.host.clone(), serde_json::to_string(work)) else {
            return;
        };
        let run = self.run.clone();
        self.put(Outgoing::Send(HostRequest { key, run, host, host_epoch: home.epoch, body }));
    }

    /// Returns the homes that were ever asked for something.
    pub(super) fn asked(&self) -> Vec<Home> {
        let home = |(host, epoch): &(HostName, HostEpoch)| Home {
            host: Some(host.clone()),
            epoch: *epoch,
        };
        lock(&self.asked).iter().map(home).collect()
    }

    /// Returns the homes whose answers are pending.
    pub(super) fn awaited(&self) -> BTreeSet<(HostName, HostEpoch)> {
        let open = lock(&self.open);
        let homes = open.waiting.values().map(|call| &call.home);
        homes.filter_map(|home| Some((home.host.clone()?, home.epoch))).collect()
    }

    /// Returns whether a call waits for an answer from a host.
    pub(super) fn waits_for(&self, host: &HostName) -> bool {
        lock(&self.open).waiting.values().any(|call| call.home.host.as_ref() == Some(host))
    }

    /// Returns whether a call waits for the notice that its host has started it.
    pub(super) fn awaits_begin(&self) -> bool {
        lock(&self.open).waiting.values().any(|call| call.on_begin.is_some())
    }

    /// Notes that the hosts have started these calls.
    pub(super) fn note_begun(&self, keys: &[String]) {
        let mut open = lock(&self.open);
        for key in keys {
            if let Some(on_begin) = open.waiting.get_mut(key).and_then(|call| call.on_begin.take())
            {
                let _ = on_begin.send(());
            }
        }
    }

    /// Takes calls back that begin with `beginning`; those that were begun go on.
    pub(super) fn withdraw(&self, beginning: &str) {
        let open = lock(&self.open);
        let keys = open.waiting.keys().filter(|key| key.starts_with(beginning));
        let keys: Vec<String> = keys.cloned().collect();
        drop(open);
        for key in keys {
            self.put(Outgoing::Withdraw(key));
        }
    }

    /// Has a request with its answer forgotten, because what followed from it is recorded.
    pub(super) fn forget(&self, key: String) {
        let mut open = lock(&self.open);
        open.early.remove(&key);
        open.waiting.remove(&key);
        drop(open);
        self.put(Outgoing::Forget(key));
    }

    /// Has all requests forgotten.
    pub(super) fn forget_all(&self) {
        self.put(Outgoing::ForgetAll);
    }

    /// Gives an answer to the caller that waits for it. If nobody waits, the answer to a request that is named once in
    /// the run is kept: an earlier supervisor made the request, and this supervisor makes it when it gets there. Any
    /// other answer is of no use.
    pub(super) fn answer(&self, key: &str, answer: HostAnswer) {
        let mut open = lock(&self.open);
        if let Some(call) = open.waiting.remove(key) {
            let _ = call.answer.send(answer);
        } else if NAMED_ONCE.iter().any(|kind| self.is_of(kind, key)) {
            open.early.insert(key.to_owned(), answer);
        } else {
            drop(open);
            self.put(Outgoing::Forget(key.to_owned()));
        }
    }

    fn is_of(&self, kind: &str, key: &str) -> bool {
        let rest = key.strip_prefix(self.run.as_str()).and_then(|rest| rest.strip_prefix('/'));
        rest.and_then(|rest| rest.strip_prefix(kind)).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Ends the calls to hosts in an epoch that is over, with this answer.
    pub(super) fn lose(&self, is_over: impl Fn(&Home) -> bool, answer: &HostAnswer) {
        let mut open = lock(&self.open);
        let lost: Vec<String> = open
            .waiting
            .iter()
            .filter(|(_, call)| is_over(&call.home))
            .map(|(key, _)| key.clone())
            .collect();
        for key in lost {
            if let Some(call) = open.waiting.remove(&key) {
                let _ = call.answer.send(answer.clone());
            }
        }
    }

    fn put(&self, outgoing: Outgoing) {
        // Without the thread the supervisor has failed.
        let _ = self.outgoing.send(outgoing);
    }
}

#[cfg(test)]
mod thread_end_tests {
    use super::*;

    #[test]
    fn pause_ends_with_the_threads() {
        let end = ThreadEnd::default();
        let other = end.clone();
        let thread = std::thread::spawn(move || other.pause(Duration::from_hours(1)));
        assert!(!end.is_ending());
        end.tell();
        thread.join().expect("it is woken");
        end.pause(Duration::from_hours(1));
        assert!(end.is_ending());
    }
}
