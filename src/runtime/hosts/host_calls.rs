//! Calls to hosts: a request by its key, and whoever waits for the answer.
//!
//! A call is sent again under the same key by a supervisor that takes the run over, and gets the answer of the first one.

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::domain::host::Home;
use crate::domain::host::{HostEpoch, HostName};
use crate::domain::host_work::{HostAnswer, HostWork, TURN, request_key};
use crate::domain::id::RunId;
use crate::engine::host_mailbox::HostRequest;

/// The kinds of requests whose names come from the run itself.
const NAMED_ONCE: [&str; 2] = [TURN, ACTIVITY];

/// The kind of the request for an activity.
pub(super) const ACTIVITY: &str = "activity";

/// The orders for the mail thread.
#[derive(Debug)]
pub(super) enum Outgoing {
    /// Send a request.
    Send(HostRequest),
    /// Take a request back. Whoever waits for it is told that it was ended, if it was not begun.
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
    /// Whoever is told once the host begins it; `None` if it was told, or nobody is.
    begun: Option<oneshot::Sender<()>>,
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

    /// Asks a host for work, and waits for the answer. `begun` is told once the host begins it.
    pub(super) async fn watched_call(
        &self,
        key: String,
        home: &Home,
        work: &HostWork,
        begun: Option<oneshot::Sender<()>>,
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
            open.waiting.insert(key.clone(), WaitingCall { home, begun, answer });
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

    /// Returns the homes from which answers are waited for.
    pub(super) fn awaited(&self) -> BTreeSet<(HostName, HostEpoch)> {
        let open = lock(&self.open);
        let homes = open.waiting.values().map(|call| &call.home);
        homes.filter_map(|home| Some((home.host.clone()?, home.epoch))).collect()
    }

    /// Returns whether an answer of a host is waited for.
    pub(super) fn waits_for(&self, host: &HostName) -> bool {
        lock(&self.open).waiting.values().any(|call| call.home.host.as_ref() == Some(host))
    }

    /// Returns whether somebody is to be told of a call that its host begins.
    pub(super) fn awaits_begin(&self) -> bool {
        lock(&self.open).waiting.values().any(|call| call.begun.is_some())
    }

    /// Notes that the hosts have begun these calls.
    pub(super) fn note_begun(&self, keys: &[String]) {
        let mut open = lock(&self.open);
        for key in keys {
            if let Some(begun) = open.waiting.get_mut(key).and_then(|call| call.begun.take()) {
                let _ = begun.send(());
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
        lock(&self.open).early.remove(&key);
        self.put(Outgoing::Forget(key));
    }

    /// Has all requests forgotten.
    pub(super) fn forget_all(&self) {
        self.put(Outgoing::ForgetAll);
    }

    /// Gives an answer to whoever waits for it. One to something that is named once in the run is kept for whoever asks
    /// for it: an earlier supervisor did, and this one does when it comes to it. Any other one is of no use.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
