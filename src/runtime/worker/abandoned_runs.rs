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
    pub(super) fn watch(takeover: Takeover, policy: HostPolicy) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&ends);
        let thread = std::thread::Builder::new().name("takeover".to_owned()).spawn(move || {
            let mut tried: HashMap<RunId, Instant> = HashMap::new();
            // Supervisors that an engine could not hear while it was down are first given the time to renew their leases.
            let mut earliest = Instant::now();
            while !end.load(Ordering::Relaxed) {
                if let Err(error) = takeover.look(&mut tried, earliest, policy) {
                    tracing::debug!("{error}");
                    earliest = Instant::now() + LEASE_TIME;
                }
                std::thread::sleep(LOOK_INTERVAL);
            }
        });
        Self { ends, thread: thread.ok() }
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

impl Takeover {
    /// Takes over the runs that are abandoned now, not before `earliest`.
    fn look(
        &self,
        tried: &mut HashMap<RunId, Instant>,
        earliest: Instant,
        policy: HostPolicy,
    ) -> Result<(), Error> {
        let runs = self.mirror.abandoned()?;
        if Instant::now() < earliest {
            return Ok(());
        }
        tried.retain(|_, last| last.elapsed() < RETRY_INTERVAL);
        for run in runs {
            if tried.contains_key(&run) {
                continue;
            }
            tried.insert(run.clone(), Instant::now());
            self.mirror.refresh_log(&run)?;
            let status = load_view(self.mirror.root(), &run)?.run.status;
            if status != RunStatus::Running {
                // Its supervisor died between its last record and the end of its lease.
                self.mirror.give_back(&run, status != RunStatus::Paused)?;
                continue;
            }
            let settings = self.mirror.settings(&run)?;
            if let Some(why) = policy.refusal_to_supervise(&settings) {
                tracing::warn!(
                    "the run {run} has lost its supervisor, and is not taken over here: {why}"
                );
                continue;
            }
            tracing::warn!("the run {run} has lost its supervisor, and is taken over here");
            if let Err(why) = self.launcher.launch(self.mirror.root(), &run) {
                tracing::warn!("the run {run} cannot be taken over: {why}");
            }
        }
        Ok(())
    }
}
