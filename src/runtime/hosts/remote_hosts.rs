//! The hosts of a run that several machines share, from its start until it is released.
//!
//! Requests and answers of a supervisor that are too large for the mailbox.
//!
//! The end of threads that pause between two looks: it wakes them.

use std::rc::Rc;

use tokio::sync::mpsc;

use super::host_calls::HostCalls;
use super::mail_thread::HostMailThread;
use super::remote_executor::RemoteExecutor;
use super::remote_runner::RemoteRunner;
use crate::actor::activity_executor::ActivityExecutor;
use crate::actor::launch::HostFeed;
use crate::actor::runner::StepRunner;
use crate::actor::supervisor::PlacementMode;
use crate::domain::settings::Settings;
use crate::runtime::error::Error;
use crate::runtime::sharing::{EngineMirror, HeldRun, apart};

/// The hosts of a run.
pub(in crate::runtime) struct RemoteHosts {
    held: HeldRun,
    calls: HostCalls,
    /// The keys of the requests that an earlier supervisor sent.
    sent: Vec<String>,
    feed: Option<HostFeed>,
    /// True if the hosts exchange work by a git repository.
    exchanges_work: bool,
    threads: HostMailThread,
}

impl RemoteHosts {
    /// Begins to speak with the hosts of a run.
    ///
    /// # Errors
    /// [`Error::Engine`], [`Error::NoThread`].
    pub(in crate::runtime) fn connect(
        held: &HeldRun,
        mirror: EngineMirror,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let sent = apart(|| held.engine.sent(&held.lease))?;
        let (seen, hosts) = mpsc::unbounded_channel();
        let (threads, calls) = HostMailThread::start(held, mirror, seen)?;
        let mode = match settings.shared_dir {
            Some(_) => PlacementMode::SharedDirectory,
            None => PlacementMode::OwnDirectories,
        };
        let feed = Some(HostFeed { mode, seen: hosts });
        let exchanges_work = settings.git_exchange.is_some();
        Ok(Self { held: held.clone(), calls, sent, feed, exchanges_work, threads })
    }

    /// Returns the runner of turns at the hosts.
    pub(in crate::runtime) fn runner(&self, settings: &Settings) -> Rc<dyn StepRunner> {
        Rc::new(RemoteRunner::new(self.calls.clone(), settings, self.sent.clone()))
    }

    /// Returns the executor of activities at the hosts; `here` is that of what stays on this machine.
    pub(in crate::runtime) fn executor(
        &self,
        here: Rc<dyn ActivityExecutor>,
    ) -> Rc<dyn ActivityExecutor> {
        Rc::new(RemoteExecutor::new(self.calls.clone(), here, self.exchanges_work))
    }

    /// Returns what the supervisor is told about the hosts; once.
    pub(in crate::runtime) fn feed(&mut self) -> Option<HostFeed> {
        self.feed.take()
    }

    /// Releases the run once its supervisor is gone. Of a run that has ended nothing is kept in the mailbox.
    pub(in crate::runtime) fn release(self, has_ended: bool) {
        if has_ended {
            self.calls.forget_all();
        }
        drop(self.threads);
        if let Err(error) = self.held.engine.release_run(&self.held.lease, has_ended) {
            tracing::debug!("the lease of the run runs out by itself: {error}");
        }
    }
}
