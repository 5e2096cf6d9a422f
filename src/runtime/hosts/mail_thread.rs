//! The thread that speaks with the engine for a supervisor: it sends requests, brings answers, and watches the hosts.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::domain::host::{Home, HostEpoch, HostStanding};
use crate::domain::host_work::{HostAnswer, HostWork};
use crate::domain::placement::HostSighting;
use crate::engine::EngineError;
use crate::engine::connect::RunSpace;
use crate::engine::host_mailbox::{HostReply, HostRequest, MailReceiver, Withdrawal};
use crate::engine::host_registry::RegisteredHost;
use crate::runtime::error::Error;
use crate::runtime::hosts::host_calls::{HostCalls, Outgoing};
use crate::runtime::sharing::{
    CommandRole, EngineMirror, HeldRun, PageSize, SilentHosts, ToldError, fetch_mail, sighting,
    store_if_large, until_mended, until_reached,
};

/// The most requests that are sent at a time.
const PAGE: usize = 500;

/// The number of bytes after which no further request is added to those that are sent at a time. An engine takes 32 MiB.
const PAGE_BYTES: usize = 2 << 20;

/// The most answers that are taken at a time. While some wait to be taken, it costs more to add others.
const ANSWERS: usize = 2_000;

/// The time between two looks at the hosts and the commands.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// The time in which a further request is waited for. A call costs the engine more than the requests that it carries.
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
    /// The threads that are waited for at the end. The one that brings answers may be waiting for some, and changes nothing.
    threads: Vec<JoinHandle<()>>,
}

impl HostMailThread {
    /// Starts the threads. `hosts` is told of all hosts, again and again.
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
        let mut own = Self { ends, outgoing, threads: Vec::new() };
        let threads = [
            named("requests").spawn(move || sender.send(&sent, &forgets)),
            named("forgets").spawn(move || forgetter.forget(&forgotten)),
            named("hosts").spawn(move || watcher.watch(&mirror, &hosts)),
        ];
        // Those that were started end with it if another one was not.
        for thread in threads {
            own.threads.push(thread.map_err(Error::NoThread)?);
        }
        named("answers").spawn(move || receiver.receive()).map_err(Error::NoThread)?;
        Ok((own, calls))
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
        self.ends.is_told()
    }

    /// Repeats a call until the engine has carried it out; `None` if another raymond has the run, or it is over. The log says
    /// which, and that the engine cannot be reached.
    fn until_done<T>(&self, call: impl Fn(&HeldRun) -> Result<T, EngineError>) -> Option<T> {
        let done = until_mended(|| self.has_ended(), || call(&self.held));
        done.inspect_err(|error| tracing::debug!("{error}")).ok()
    }

    /// Has requests forgotten, in a thread of its own so that no sending waits for it.
    fn forget(&self, forgotten: &Receiver<Vec<String>>) {
        while let Ok(keys) = forgotten.recv() {
            if self.has_ended() {
                return;
            }
            self.until_done(|held| held.engine.forget(&held.lease, &keys));
        }
    }

    /// Sends what is put out, in batches. The keys of requests that are over go to the thread that has them forgotten, which may
    /// come to them after all were forgotten: then it finds none.
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
            while let Some(one) = rest.take() {
                match one {
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
            // They are never begun, and whoever waits for them would wait for ever.
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
        until_mended(|| self.has_ended(), || engine.send(lease, requests))
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
        let mut unseen = ToldError::about("no host gets agents", "the hosts are known again");
        let mut unheard = ToldError::about(
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
        // Whoever is told has ended with the run.
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
        // One that is not there any more was removed.
        let is_over = |home: &Home| {
            let own = seen.iter().find(|host| home.host.as_ref() == Some(&host.host));
            own.is_none_or(|host| host.epoch > home.epoch || host.standing == HostStanding::Lost)
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

/// The end of some threads, which all share.
#[derive(Debug, Clone, Default)]
pub(super) struct ThreadEnd(Arc<(Mutex<bool>, Condvar)>);

impl ThreadEnd {
    /// Tells the threads to end.
    pub(super) fn tell(&self) {
        let (is_told, wake) = &*self.0;
        *is_told.lock().unwrap_or_else(PoisonError::into_inner) = true;
        wake.notify_all();
    }

    /// Returns whether the threads are told to end.
    pub(super) fn is_told(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pauses this thread, at most until it is told to end.
    pub(super) fn pause(&self, longest: Duration) {
        let (is_told, wake) = &*self.0;
        let told = is_told.lock().unwrap_or_else(PoisonError::into_inner);
        drop(wake.wait_timeout_while(told, longest, |told| !*told));
    }
}

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

#[cfg(test)]
mod thread_end_tests {
    use super::*;

    #[test]
    fn pause_ends_with_the_threads() {
        let end = ThreadEnd::default();
        let other = end.clone();
        let thread = std::thread::spawn(move || other.pause(Duration::from_hours(1)));
        assert!(!end.is_told());
        end.tell();
        thread.join().expect("it is woken");
        end.pause(Duration::from_hours(1));
        assert!(end.is_told());
    }
}
