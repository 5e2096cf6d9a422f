//! Calls to hosts: a request by its key, and whoever waits for the answer.
//!
//! A call is sent again under the same key by a supervisor that takes the run over, and gets the answer of the first one.

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::domain::home::Home;
use crate::domain::host::HostName;
use crate::domain::host_work::{HostAnswer, HostWork};
use crate::domain::id::RunId;
use crate::engine::host_mailbox::HostRequest;

/// What the mail thread is asked to do.
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
}

/// A call that waits for its answer.
#[derive(Debug)]
struct WaitingCall {
    home: Home,
    answer: oneshot::Sender<HostAnswer>,
}

/// The calls of a run to hosts.
#[derive(Debug, Clone)]
pub(in crate::runtime) struct HostCalls {
    run: RunId,
    outgoing: Sender<Outgoing>,
    waiting: Arc<Mutex<HashMap<String, WaitingCall>>>,
    /// The hosts that were ever asked for something.
    asked: Arc<Mutex<BTreeSet<Home2>>>,
}

/// A host and its epoch, in order.
type Home2 = (HostName, u64);

impl HostCalls {
    pub(super) fn new(run: RunId, outgoing: Sender<Outgoing>) -> Self {
        Self { run, outgoing, waiting: Arc::default(), asked: Arc::default() }
    }

    /// Returns the key of a call about something that is named once in the run.
    pub(super) fn key(&self, kind: &str, name: &str, home: &Home) -> String {
        let host = home.host.as_ref().map_or("", HostName::as_str);
        format!("{}/{kind}/{name}/{host}.{}", self.run, home.epoch.0)
    }

    /// Asks a host for work, and waits for the answer.
    pub(super) async fn call(&self, key: String, home: &Home, work: &HostWork) -> HostAnswer {
        let Some(host) = &home.host else {
            return HostAnswer::Refused { why: "the agent has no host yet".to_owned() };
        };
        let body = match serde_json::to_string(work) {
            Ok(body) => body,
            Err(error) => return HostAnswer::Refused { why: error.to_string() },
        };
        let (answer, answered) = oneshot::channel();
        lock(&self.waiting).insert(key.clone(), WaitingCall { home: home.clone(), answer });
        lock(&self.asked).insert((host.clone(), home.epoch.0));
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
        let home = |(host, epoch): &Home2| Home {
            host: Some(host.clone()),
            epoch: crate::domain::host::HostEpoch(*epoch),
        };
        lock(&self.asked).iter().map(home).collect()
    }

    /// Takes calls back that begin with `beginning`; those that were begun go on.
    pub(super) fn withdraw(&self, beginning: &str) {
        let keys: Vec<String> =
            lock(&self.waiting).keys().filter(|key| key.starts_with(beginning)).cloned().collect();
        for key in keys {
            self.put(Outgoing::Withdraw(key));
        }
    }

    /// Has a request with its answer forgotten, because what followed from it is recorded.
    pub(super) fn forget(&self, key: String) {
        self.put(Outgoing::Forget(key));
    }

    /// Has all requests forgotten.
    pub(super) fn forget_all(&self) {
        self.put(Outgoing::ForgetAll);
    }

    /// Gives an answer to whoever waits for it.
    pub(super) fn answer(&self, key: &str, answer: HostAnswer) {
        if let Some(call) = lock(&self.waiting).remove(key) {
            let _ = call.answer.send(answer);
        }
    }

    /// Ends the calls to hosts in an epoch that is over, with this answer.
    pub(super) fn lose(&self, is_over: impl Fn(&Home) -> bool, answer: &HostAnswer) {
        let mut waiting = lock(&self.waiting);
        let lost: Vec<String> = waiting
            .iter()
            .filter(|(_, call)| is_over(&call.home))
            .map(|(key, _)| key.clone())
            .collect();
        for key in lost {
            if let Some(call) = waiting.remove(&key) {
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
