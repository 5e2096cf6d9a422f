//! The threads of a worker that speak with the engine: one brings requests, one says that the host is alive.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::large_mail::open_request;
use crate::domain::host::HostReport;
use crate::engine::host_mailbox::{HostRequest, MailReceiver};
use crate::engine::host_registry::HostClaim;
use crate::engine::{Engine, EngineError};
use crate::process::host;

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
    is_reached: Arc<Mutex<bool>>,
    /// The reason that was told last why the engine refuses this thread.
    refused: RefCell<Option<String>>,
}

impl RequestThreads {
    /// Starts the threads.
    pub(super) fn start(
        engine: &Arc<dyn Engine>,
        claim: &HostClaim,
        mail: UnboundedSender<WorkerMail>,
        (report, counts): (HostReport, Arc<HostCounts>),
    ) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let side = WorkerSide {
            engine: Arc::clone(engine),
            claim: claim.clone(),
            mail,
            ends: Arc::clone(&ends),
            is_reached: Arc::new(Mutex::new(true)),
            refused: RefCell::default(),
        };
        let beats = side.clone();
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let threads = [
            named("requests").spawn(move || side.receive()),
            named("heartbeat").spawn(move || beats.beat(&report, &counts)),
        ];
        Self { ends, threads: threads.into_iter().filter_map(Result::ok).collect() }
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

    /// Returns what a call brought; `None` if it failed, which is said once.
    fn brought<T>(&self, called: Result<T, EngineError>) -> Option<T> {
        let mut is_reached = self.is_reached.lock().unwrap_or_else(PoisonError::into_inner);
        match called {
            Ok(brought) => {
                if !std::mem::replace(&mut *is_reached, true) {
                    tracing::warn!("the engine {} is reached again", self.engine.address());
                }
                if self.refused.take().is_some() {
                    tracing::warn!("the engine {} refuses it no more", self.engine.address());
                }
                return Some(brought);
            }
            Err(error) if error.is_passing() => {
                if std::mem::replace(&mut *is_reached, false) {
                    tracing::warn!(
                        "{error}; running turns go on, and their outcomes are kept for it"
                    );
                }
            }
            Err(error) if error.is_mendable() => {
                let why = error.to_string();
                if self.refused.replace(Some(why.clone())).as_ref() != Some(&why) {
                    tracing::warn!("{why}; running turns go on, and it is asked again");
                }
            }
            Err(error) => {
                let _ = self.mail.send(WorkerMail::Fenced(error));
                self.ends.store(true, Ordering::Relaxed);
            }
        }
        drop(is_reached);
        std::thread::sleep(RETRY_PAUSE);
        None
    }

    fn receive(&self) {
        let (mut received, mut is_first) = (Vec::new(), true);
        while !self.has_ended() {
            let page = self.engine.requests(&self.claim, &received, is_first, PAGE);
            let Some(requests) = self.brought(page) else { continue };
            is_first = false;
            received = requests.iter().map(|request| request.key.clone()).collect();
            let is_full = requests.len() >= PAGE;
            for mut request in requests {
                while self.brought(open_request(&*self.engine, &mut request)).is_none() {
                    if self.has_ended() {
                        return;
                    }
                }
                let _ = self.mail.send(WorkerMail::Request(request));
            }
            if !is_full {
                let host = MailReceiver::Host(&self.claim.host);
                self.brought(self.engine.wait_for_mail(host, MAIL_WAIT));
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
            self.brought(self.engine.heartbeat(&self.claim, &report));
            std::thread::sleep(HEARTBEAT);
        }
    }
}
