//! The mail of a worker with the engine: notes in batches, large contents, and threads for requests and heartbeats.
//!
//! All notes that came about while one call was under way go with the next.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::domain::host::HostReport;
use crate::domain::host_work::{HostAnswer, HostWork, MAX_MAIL_BYTES, StoredMail};
use crate::engine::shared_log::{HostClaim, HostReply, HostRequest, MailReceiver};
use crate::engine::{Engine, EngineError};
use crate::process::host;
use crate::runtime::error::Error;
use crate::runtime::sharing::{PageSize, fetch_mail, put_content, until_fixed};

/// The most notes of one call.
const MOST_NOTES: usize = 200;

/// The time to wait for a further note. A call costs the engine more than the notes that it carries.
const GATHERING_TIME: Duration = Duration::from_millis(1);

/// The longest time in which notes are gathered.
const LONGEST_GATHERING: Duration = Duration::from_millis(5);

/// The bytes after which a call takes no further reply.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// A note of a worker for the engine, and who waits for its effect.
struct WaitingNote<N, A> {
    note: N,
    done: oneshot::Sender<A>,
}

/// The ends of the threads that tell the engine. The threads end after this is dropped.
pub(super) struct MailBatches {
    begins: Sender<WaitingNote<String, bool>>,
    replies: Sender<WaitingNote<HostReply, ()>>,
}

impl MailBatches {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub(super) fn start(engine: &Arc<dyn Engine>, claim: &HostClaim) -> Result<Self, Error> {
        let (begins, asked) = channel();
        let (replies, answered) = channel();
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (to_begin, to_reply) =
            ((engine.clone(), claim.clone()), (engine.clone(), claim.clone()));
        let threads = [
            named("begins").spawn(move || tell_begins(&*to_begin.0, &to_begin.1, &asked)),
            named("replies").spawn(move || tell_replies(&*to_reply.0, &to_reply.1, &answered)),
        ];
        for thread in threads {
            thread.map_err(Error::NoThread)?;
        }
        Ok(Self { begins, replies })
    }

    /// Notes that a request begins. Returns false if it was withdrawn, or the host may do nothing more.
    pub(super) async fn may_begin(&self, key: String) -> bool {
        let (done, answer) = oneshot::channel();
        let sent = self.begins.send(WaitingNote { note: key, done });
        sent.is_ok() && answer.await.unwrap_or(false)
    }

    /// Replies to a request; the reply is durable afterwards, or the host may do nothing more.
    pub(super) async fn reply(&self, reply: HostReply) {
        let (done, acknowledged) = oneshot::channel();
        if self.replies.send(WaitingNote { note: reply, done }).is_ok() {
            let _ = acknowledged.await;
        }
    }
}

fn tell_begins(
    engine: &dyn Engine,
    claim: &HostClaim,
    incoming: &Receiver<WaitingNote<String, bool>>,
) {
    while let Some(batch) = next_batch(incoming, |_| 0) {
        let (keys, waiting): (Vec<String>, Vec<_>) =
            batch.into_iter().map(|WaitingNote { note, done }| (note, done)).unzip();
        let allowed = until_fixed(|| false, || engine.begin(claim, &keys)).unwrap_or_default();
        for (key, done) in keys.iter().zip(waiting) {
            let _ = done.send(allowed.contains(key));
        }
    }
}

fn tell_replies(
    engine: &dyn Engine,
    claim: &HostClaim,
    incoming: &Receiver<WaitingNote<HostReply, ()>>,
) {
    while let Some(batch) = next_batch(incoming, |reply| reply.body.len()) {
        let (replies, waiting): (Vec<HostReply>, Vec<_>) =
            batch.into_iter().map(|WaitingNote { note, done }| (note, done)).unzip();
        match until_fixed(|| false, || engine.reply(claim, &replies)) {
            Ok(()) => {}
            Err(EngineError::Unstorable { .. }) => {
                for reply in &replies {
                    reply_alone(engine, claim, reply);
                }
            }
            // The heartbeat meets the same, and ends the worker.
            Err(error) => tracing::debug!("{} replies were not accepted: {error}", replies.len()),
        }
        for done in waiting {
            let _ = done.send(());
        }
    }
}

/// Sends a single reply. If the engine cannot store it, sends the reason instead, so that nobody waits for it.
fn reply_alone(engine: &dyn Engine, claim: &HostClaim, reply: &HostReply) {
    let HostReply { key, .. } = reply;
    match until_fixed(|| false, || engine.reply(claim, std::slice::from_ref(reply))) {
        Err(EngineError::Unstorable { why, .. }) => {
            let why = format!("its answer cannot be stored: {why}");
            tracing::warn!("{key}: {why}");
            let answer = HostAnswer::Refused { why };
            let body = serde_json::to_string(&answer).unwrap_or_default();
            let refusal = [HostReply { key: key.clone(), body }];
            if let Err(error) = until_fixed(|| false, || engine.reply(claim, &refusal)) {
                tracing::debug!("{key}: {error}");
            }
        }
        Err(error) => tracing::debug!("{key}: {error}"),
        Ok(()) => {}
    }
}

/// Waits for a note, and gathers those that come a moment later; `None` once no more can come.
fn next_batch<N, A>(
    incoming: &Receiver<WaitingNote<N, A>>,
    bytes: impl Fn(&N) -> usize,
) -> Option<Vec<WaitingNote<N, A>>> {
    let first = incoming.recv().ok()?;
    let mut size = bytes(&first.note);
    let (mut batch, end) = (vec![first], Instant::now() + LONGEST_GATHERING);
    while batch.len() < MOST_NOTES && size < MOST_BYTES {
        let left = end.saturating_duration_since(Instant::now()).min(GATHERING_TIME);
        let Ok(next) = incoming.recv_timeout(left) else { break };
        size += bytes(&next.note);
        batch.push(next);
    }
    Some(batch)
}

// Requests and answers of a host that are too large for the mailbox.

/// The beginning of a request that is a content of the engine.
const STORED: &str = "{\"work\":\"stored\"";

/// Fetches the body of a request if it is a content of the engine. If the content cannot be used, the request stays as
/// it is, and is refused when it is carried out.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(super) fn open_request(
    engine: &dyn Engine,
    request: &mut HostRequest,
) -> Result<(), EngineError> {
    if request.body.starts_with(STORED)
        && let Ok(HostWork::Stored { mail }) = serde_json::from_str(&request.body)
    {
        match fetch_mail(engine, &mail)? {
            Ok(body) => request.body = body,
            Err(why) => tracing::warn!("the request {} is refused: {why}", request.key),
        }
    }
    Ok(())
}

/// Has the engine keep an answer that is too large. If the engine refuses, the mailbox carries the answer itself.
pub(super) async fn stored_if_large(engine: &Arc<dyn Engine>, answer: HostAnswer) -> HostAnswer {
    let Some(body) = serde_json::to_string(&answer).ok().filter(|body| body.len() > MAX_MAIL_BYTES)
    else {
        return answer;
    };
    let (engine, bytes) = (Arc::clone(engine), body.len() as u64);
    match spawn_blocking(move || put_content(&*engine, body.as_bytes())).await {
        Ok(Ok(sum)) => HostAnswer::Stored { mail: StoredMail { checksum: sum.into(), bytes } },
        Ok(Err(error)) => {
            tracing::warn!("an answer of {bytes} bytes goes through the mailbox: {error}");
            answer
        }
        Err(_) => answer,
    }
}

// The threads of a worker that speak with the engine: one brings requests, one says that the host is alive.

/// The most requests that are taken at a time.
const PAGE: usize = 200;

/// The longest wait for requests.
const MAIL_WAIT: Duration = Duration::from_secs(1);

/// The time between two heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// The pause before an engine that could not be reached is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The mail that the threads bring.
#[derive(Debug)]
pub(super) enum WorkerMail {
    /// A request for this host.
    Request {
        request: HostRequest,
        /// True if an earlier worker of this host may have begun it.
        may_have_begun: bool,
    },
    /// The host may do nothing more.
    Fenced(EngineError),
}

/// The numbers that a heartbeat reports.
#[derive(Debug, Default)]
pub(super) struct HostCounts {
    /// The turns and activities that are performed now.
    pub(super) busy: AtomicU32,
    /// The agents that have had a turn here.
    pub(super) sessions: AtomicU32,
}

/// The threads, until this is dropped.
pub(super) struct RequestThreads {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// The parts that both threads have.
#[derive(Clone)]
struct WorkerSide {
    engine: Arc<dyn Engine>,
    claim: HostClaim,
    mail: UnboundedSender<WorkerMail>,
    ends: Arc<AtomicBool>,
    reached: Arc<Mutex<EngineReached>>,
    /// The last reported reason why the engine refuses this thread.
    refused: RefCell<Option<String>>,
}

/// The state of the engine as the threads of a worker tell it to people: reached or not.
#[derive(Debug, Default)]
struct EngineReached {
    /// The time at which the latest call that did not reach it began.
    down: Option<Instant>,
    /// The time of the last call that reached it.
    last: Option<Instant>,
}

impl EngineReached {
    /// Notes that a call which ended then has reached it; returns whether that is news. Another one may have failed to
    /// reach it since.
    fn succeeds(&mut self, ended: Instant) -> bool {
        self.last = self.last.max(Some(ended));
        self.down.take_if(|began| *began < ended).is_some()
    }

    /// Notes that a call which began then has not reached it; returns whether that is news. Another one may have
    /// reached it since.
    fn fails(&mut self, began: Instant) -> bool {
        let is_old = self.last.is_some_and(|last| began <= last);
        !is_old && self.down.replace(began).is_none()
    }
}

impl RequestThreads {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub(super) fn start(
        engine: &Arc<dyn Engine>,
        claim: &HostClaim,
        mail: UnboundedSender<WorkerMail>,
        report: HostReport,
        counts: Arc<HostCounts>,
    ) -> Result<Self, Error> {
        let ends = Arc::new(AtomicBool::new(false));
        let side = WorkerSide {
            engine: Arc::clone(engine),
            claim: claim.clone(),
            mail,
            ends: Arc::clone(&ends),
            reached: Arc::default(),
            refused: RefCell::default(),
        };
        let beats = side.clone();
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let mut started = Self { ends, threads: Vec::new() };
        let threads = [
            named("requests").spawn(move || side.receive()),
            named("heartbeat").spawn(move || beats.beat(&report, &counts)),
        ];
        // If only one thread was started, it ends when `own` is dropped.
        for thread in threads {
            started.threads.push(thread.map_err(Error::NoThread)?);
        }
        Ok(started)
    }
}

impl Drop for RequestThreads {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl WorkerSide {
    fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    /// Returns what a call brings; `None` if it fails, which is said once.
    fn brought<T>(&self, call: impl FnOnce() -> Result<T, EngineError>) -> Option<T> {
        let began = Instant::now();
        let called = call();
        let ended = Instant::now();
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        match called {
            Ok(brought) => {
                if reached.succeeds(ended) {
                    tracing::warn!("the engine {} can be reached again", self.engine.address());
                }
                if self.refused.take().is_some() {
                    tracing::warn!("the engine {} refuses it no more", self.engine.address());
                }
                return Some(brought);
            }
            Err(error) if error.is_passing() => {
                if reached.fails(began) {
                    tracing::warn!(
                        "{error}; running turns continue, and this host keeps their outcomes"
                    );
                }
            }
            Err(error) if error.is_fixable() => {
                let why = error.to_string();
                if self.refused.replace(Some(why.clone())).as_ref() != Some(&why) {
                    tracing::warn!("{why}; running turns continue, and this host retries");
                }
            }
            Err(error) => {
                let _ = self.mail.send(WorkerMail::Fenced(error));
                self.ends.store(true, Ordering::Relaxed);
            }
        }
        drop(reached);
        std::thread::sleep(RETRY_PAUSE);
        None
    }

    fn receive(&self) {
        let (mut received, mut is_first, size) = (Vec::new(), true, PageSize::new(PAGE));
        // What an earlier worker of this host has left comes first.
        let mut may_have_begun = true;
        while !self.has_ended() {
            let page =
                || size.ask(|most| self.engine.requests(&self.claim, &received, is_first, most));
            let Some((requests, is_full)) = self.brought(page) else { continue };
            is_first = false;
            received = requests.iter().map(|request| request.key.clone()).collect();
            for mut request in requests {
                while self.brought(|| open_request(&*self.engine, &mut request)).is_none() {
                    if self.has_ended() {
                        return;
                    }
                }
                let _ = self.mail.send(WorkerMail::Request { request, may_have_begun });
            }
            may_have_begun &= is_full;
            if !is_full {
                let host = MailReceiver::Host(&self.claim.host);
                self.brought(|| self.engine.wait_for_mail(host, MAIL_WAIT));
            }
        }
    }

    fn beat(&self, report: &HostReport, counts: &HostCounts) {
        while !self.has_ended() {
            let busy = counts.busy.load(Ordering::Relaxed);
            let report = HostReport {
                room: host::memory().map(|memory| memory.room_with(busy)),
                busy,
                sessions: counts.sessions.load(Ordering::Relaxed),
                ..report.clone()
            };
            // Repeat a failed heartbeat at once.
            if self.brought(|| self.engine.heartbeat(&self.claim, &report)).is_some() {
                std::thread::sleep(HEARTBEAT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_takes_what_is_there_up_to_its_bounds() {
        let (sender, incoming) = channel();
        let put = |size: usize| {
            let done = oneshot::channel::<()>().0;
            sender.send(WaitingNote { note: size, done }).expect("it is taken");
        };
        (0..MOST_NOTES + 3).for_each(|_| put(1));
        let len = || next_batch(&incoming, |&size| size).map(|batch| batch.len());
        assert_eq!((len(), len()), (Some(MOST_NOTES), Some(3)));
        [MOST_BYTES / 2, MOST_BYTES / 2, 1].into_iter().for_each(put);
        assert_eq!((len(), len()), (Some(2), Some(1)));
        drop(sender);
        assert!(next_batch(&incoming, |&size| size).is_none());
    }
}

#[cfg(test)]
mod request_threads_tests {
    use super::*;

    #[test]
    fn outage_is_news_once_and_a_late_failure_is_none() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut reached = EngineReached::default();
        assert!(!reached.succeeds(at(1)));
        assert!(reached.fails(at(2)));
        assert!(!reached.fails(at(3)));
        assert!(reached.succeeds(at(5)));
        assert!(!reached.fails(at(4)), "that call began before");
        assert!(!reached.succeeds(at(6)));
        assert!(reached.fails(at(9)));
        assert!(!reached.succeeds(at(8)), "that call ended before");
        assert!(!reached.fails(at(10)));
        assert!(reached.succeeds(at(11)));
    }
}
