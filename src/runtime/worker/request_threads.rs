//! The threads of a worker that speak with the engine: one brings requests, one says that the host is alive.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use crate::domain::host::HostReport;
use crate::engine::host_mailbox::{HostRequest, MailReceiver};
use crate::engine::host_registry::HostClaim;
use crate::engine::{Engine, EngineError};
use crate::process::host;
use crate::runtime::error::Error;
use crate::runtime::sharing::PageSize;
use crate::runtime::worker::mail_batches::open_request;

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
    /// A request.
    Request(HostRequest),
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
    /// The reason that was told last why the engine refuses this thread.
    refused: RefCell<Option<String>>,
}

/// The state of the engine as the threads of a worker tell it to people: reached or not.
#[derive(Debug, Default)]
struct EngineReached {
    is_down: bool,
    /// The time of the last call that reached it.
    last: Option<Instant>,
}

impl EngineReached {
    /// Notes that a call has reached it now; returns whether that is news.
    fn succeeds(&mut self, now: Instant) -> bool {
        self.last = Some(now);
        std::mem::replace(&mut self.is_down, false)
    }

    /// Notes that a call which began then has not reached it; returns whether that is news. Another one may have reached it
    /// since.
    fn fails(&mut self, began: Instant) -> bool {
        let is_old = self.last.is_some_and(|last| began <= last);
        !is_old && !std::mem::replace(&mut self.is_down, true)
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
        (report, counts): (HostReport, Arc<HostCounts>),
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
        let mut own = Self { ends, threads: Vec::new() };
        let threads = [
            named("requests").spawn(move || side.receive()),
            named("heartbeat").spawn(move || beats.beat(&report, &counts)),
        ];
        // One that was started ends with it if the other one was not.
        for thread in threads {
            own.threads.push(thread.map_err(Error::NoThread)?);
        }
        Ok(own)
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
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        match called {
            Ok(brought) => {
                if reached.succeeds(Instant::now()) {
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
            Err(error) if error.is_mendable() => {
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
                let _ = self.mail.send(WorkerMail::Request(request));
            }
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
            // One that was not heard is made again at once.
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
        assert!(reached.fails(at(7)));
    }
}
