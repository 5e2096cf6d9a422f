//! Takes runs over whose supervisor is gone: another raymond of this machine supervises them from then on.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::policy::HostPolicy;
use crate::domain::id::RunId;
use crate::domain::run::RunStatus;
use crate::runtime::error::Error;
use crate::runtime::sharing::{EngineMirror, LEASE_TIME};
use crate::store::layout::RunsRoot;
use crate::store::view::load_view;

/// The time between two looks at the runs.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The time before the same run is tried once more.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);

/// Starts supervisors in processes of their own.
pub trait SupervisorLauncher: Debug + Send + Sync {
    /// Starts a raymond that takes a run over. Its copy is in `copies`.
    ///
    /// # Errors
    /// The reason why there is no such process.
    fn launch(&self, copies: &RunsRoot, run: &RunId) -> Result<(), String>;
}

/// The takeover of abandoned runs.
#[derive(Debug, Clone)]
pub struct Takeover {
    /// The copies of the engine's runs on this machine.
    pub mirror: EngineMirror,
    /// The launcher of supervisors.
    pub launcher: Arc<dyn SupervisorLauncher>,
}

/// The thread that looks for abandoned runs, until this is dropped.
pub(super) struct AbandonedRuns {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AbandonedRuns {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub(super) fn watch(takeover: Takeover, policy: HostPolicy) -> Result<Self, Error> {
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("takeover".to_owned()).spawn(move || {
            let mut attempts = TakeoverAttempts::default();
            // Supervisors that an engine could not hear while it was down are first given the time to renew their leases.
            let mut earliest = Instant::now();
            while !end.load(Ordering::Relaxed) {
                if let Err(error) = takeover.look(&mut attempts, earliest, policy) {
                    tracing::debug!("{error}");
                    earliest = Instant::now() + LEASE_TIME;
                }
                std::thread::sleep(LOOK_INTERVAL);
            }
        });
        Ok(Self { ends, thread: Some(thread.map_err(Error::NoThread)?) })
    }
}

impl Drop for AbandonedRuns {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The attempts to take runs over.
#[derive(Debug, Default)]
struct TakeoverAttempts {
    /// The last attempt for each run.
    last: HashMap<RunId, Instant>,
    /// The reason that was told last about each run, so that it is told once.
    told: HashMap<RunId, String>,
}

impl TakeoverAttempts {
    /// Returns whether a run is to be tried now, and notes that it is.
    fn begin(&mut self, run: &RunId) -> bool {
        let is_due = self.last.get(run).is_none_or(|last| last.elapsed() >= RETRY_INTERVAL);
        if is_due {
            self.last.insert(run.clone(), Instant::now());
        }
        is_due
    }

    /// Says why a run is not taken over, once for each reason.
    fn tell(&mut self, run: &RunId, why: &str) {
        if self.told.get(run).is_none_or(|before| before != why) {
            tracing::warn!(
                "the run {run} has lost its supervisor, and this host does not take it over: {why}"
            );
            self.told.insert(run.clone(), why.to_owned());
        }
    }
}

impl Takeover {
    /// Takes over the runs that are abandoned now, not before `earliest`. One that cannot be taken over delays no other.
    fn look(
        &self,
        attempts: &mut TakeoverAttempts,
        earliest: Instant,
        policy: HostPolicy,
    ) -> Result<(), Error> {
        let runs = self.mirror.abandoned()?;
        if Instant::now() < earliest {
            return Ok(());
        }
        attempts.told.retain(|run, _| runs.contains(run));
        for run in runs.iter().filter(|run| attempts.begin(run)).cloned().collect::<Vec<_>>() {
            if let Err(why) = self.take(&run, policy) {
                attempts.tell(&run, &why);
            }
        }
        Ok(())
    }

    /// Takes a run over, or gives it back if it was to go on no more.
    ///
    /// # Errors
    /// The reason why neither is done.
    fn take(&self, run: &RunId, policy: HostPolicy) -> Result<(), String> {
        let text = |error: Error| error.to_string();
        self.mirror.refresh_log(run).map_err(text)?;
        let view = load_view(self.mirror.root(), run).map_err(|error| error.to_string())?;
        if view.run.status != RunStatus::Running {
            // Its supervisor died between its last record and the end of its lease.
            return self.mirror.give_back(run).map_err(text);
        }
        let settings = self.mirror.settings(run).map_err(text)?;
        if let Some(why) = policy.refusal_to_supervise(&settings) {
            return Err(why);
        }
        self.mirror.adopt_terms(run).map_err(text)?;
        tracing::warn!(
            "the run {run} has lost its supervisor: starting a raymond that takes it over"
        );
        self.launcher.launch(self.mirror.root(), run)
    }
}
