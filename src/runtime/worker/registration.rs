//! A host's way into service, and the reason why it has to leave it.
//!
//! Takes runs over whose supervisor is gone: another raymond of this machine supervises them from then on.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::domain::host::{HostLabel, HostName, HostReport, HostStanding};
use crate::domain::host_work::WIRE_VERSION;
use crate::domain::id::RunId;
use crate::domain::run::RunStatus;
use crate::engine::host_registry::{HOST_SILENCE, HostClaim, RegisteredHost};
use crate::engine::{Engine, EngineError};
use crate::process::helper_environment::{NamedVariables, passed_on};
use crate::process::launch::claude_version;
use crate::runtime::error::Error;
use crate::runtime::sharing::{EngineMirror, LEASE_TIME, apart};
use crate::runtime::supervise::InterruptReceiver;
use crate::runtime::worker::policy::{CLAUDE, HostPolicy};
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;
use crate::store::view::load_view;

/// The pause before a host is asked for again that another worker serves.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of times that such a host is asked for: until the other worker has been silent for long enough.
const ATTEMPTS: u64 = HOST_SILENCE.as_secs() + 2;

/// Returns the report with which a worker takes its host into service. Warns if Claude Code is missing.
pub(super) async fn first_report(options: &WorkerOptions) -> HostReport {
    let variables = passed_on(std::env::vars_os(), &NamedVariables::default());
    let claude = claude_version(CLAUDE, variables).await;
    if claude.is_none() {
        tracing::warn!(
            "`{CLAUDE}` is not found here: turns of Claude Code fail on this host; install it, or give those agents another host by a label"
        );
    }
    HostReport {
        start: Uuid::new_v4().simple().to_string(),
        slots: options.slots,
        room: None,
        labels: options.labels.clone(),
        busy: 0,
        sessions: 0,
        raymond: env!("CARGO_PKG_VERSION").to_owned(),
        wire: WIRE_VERSION,
        claude,
        takes_runs: options.takeover.is_some(),
        timeout_ms: options.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
    }
}

/// Takes a host into service. One that another worker served a moment ago is waited for, because that one may have ended;
/// `None` if the wait is interrupted.
///
/// # Errors
/// [`EngineError::HostTaken`] if the other worker is alive, or the engine cannot be asked.
pub(super) async fn take_into_service(
    engine: &Arc<dyn Engine>,
    (host, worker): (&HostName, &str),
    report: &HostReport,
    interrupts: &mut InterruptReceiver,
) -> Result<Option<HostClaim>, Error> {
    for attempt in 1.. {
        match apart(|| engine.register_host(host, worker, report, HOST_SILENCE)) {
            Err(EngineError::HostTaken { .. }) if attempt < ATTEMPTS => {
                if attempt == 1 {
                    tracing::warn!(
                        "another worker served the host {host} a moment ago: waiting until it is silent"
                    );
                }
            }
            taken => {
                let claim = taken?;
                if attempt > 1 {
                    tracing::warn!("this worker serves the host {host} now");
                }
                return Ok(Some(claim));
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            Some(()) = interrupts.recv() => break,
        }
    }
    Ok(None)
}

/// Has the host of a claim be given no new agents. One that is another worker's by now, or was declared lost, stays as it is.
pub(super) fn drain(engine: &dyn Engine, claim: &HostClaim) -> Result<(), EngineError> {
    let seen = engine.hosts()?;
    let own = seen.iter().find(|now| now.host == claim.host && now.epoch == claim.epoch);
    match own.map(|now| now.standing) {
        Some(HostStanding::Active) => engine.set_standing(&claim.host, HostStanding::Draining),
        Some(HostStanding::Draining | HostStanding::Lost) | None => Ok(()),
    }
}

/// Returns the error with which a worker ends that may do nothing more, with its reason if the engine tells it.
pub(super) fn reason_to_end(engine: &dyn Engine, claim: &HostClaim, error: EngineError) -> Error {
    match error {
        EngineError::HostFenced { host } => match engine.hosts() {
            Ok(seen) => fence_reason(claim, &seen).into(),
            Err(_) => EngineError::HostFenced { host }.into(),
        },
        other => other.into(),
    }
}

/// Returns why a claim does not hold, by what the hosts are now.
fn fence_reason(claim: &HostClaim, seen: &[RegisteredHost]) -> EngineError {
    let host = claim.host.clone();
    let now = seen.iter().find(|now| now.host == host);
    match now.map(|now| now.standing) {
        Some(HostStanding::Lost) => EngineError::HostLost { host },
        Some(HostStanding::Active | HostStanding::Draining) => EngineError::HostRelieved { host },
        None => EngineError::HostRemoved { host },
    }
}

/// The options of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The name of the host.
    pub host: HostName,
    /// The number of turns that it runs at the same time.
    pub slots: u32,
    /// Its labels.
    pub labels: BTreeSet<HostLabel>,
    /// The directory of the runs that it hosts.
    pub root: RunsRoot,
    /// The directory that all hosts share.
    pub shared_dir: Option<PathBuf>,
    /// The permissions that it gives to runs.
    pub policy: HostPolicy,
    /// The user's own state.
    pub state: UserState,
    /// The silence after which the host counts as lost; `None` if a person decides.
    pub timeout: Option<Duration>,
    /// The takeover of runs whose supervisor is gone; `None` if it takes none.
    pub takeover: Option<Takeover>,
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::host::HostEpoch;

    fn host(standing: HostStanding) -> RegisteredHost {
        let report = r#"{"slots":1,"busy":0,"sessions":0,"raymond":"1","wire":1}"#;
        RegisteredHost {
            host: HostName::parse("a").expect("a name"),
            epoch: HostEpoch(2),
            standing,
            silent_for: Duration::ZERO,
            report: serde_json::from_str(report).expect("a report"),
        }
    }

    #[test]
    fn worker_is_told_why_it_has_to_end() {
        let [lost, active] = [HostStanding::Lost, HostStanding::Active].map(host);
        let claim = HostClaim { host: lost.host.clone(), epoch: HostEpoch(1) };
        let cases = [
            (&[lost][..], "was declared lost"),
            (&[active][..], "another worker serves the host a now"),
            (&[][..], "was removed"),
        ];
        for (seen, why) in cases {
            let error = fence_reason(&claim, seen).to_string();
            assert!(error.contains(why), "{error}");
            assert!(error.contains("starts no new work"), "{error}");
        }
    }
}
