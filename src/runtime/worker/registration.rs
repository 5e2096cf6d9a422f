//! A host's way into service and out of it, the takeover of abandoned runs, and the sessions that the host keeps.

use std::collections::{BTreeSet, HashMap};
use std::fmt::{Debug, Display};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::domain::host::{HostLabel, HostName, HostReport, HostStanding};
use crate::domain::host_work::WIRE_VERSION;
use crate::domain::id::{RunId, SessionId};
use crate::domain::run::RunStatus;
use crate::domain::session::{
    KeptSession, MANIFEST_VERSION, MAX_KEPT_SESSION_BYTES, MAX_MANIFEST_BYTES,
    MAX_SESSION_PART_BYTES, SessionManifest, SessionPart, parts_to_keep,
};
use crate::domain::time::millis_of;
use crate::engine::connect::RunSpace;
use crate::engine::shared_log::{HOST_SILENCE, HostClaim, RegisteredHost};
use crate::engine::{Engine, EngineError};
use crate::language::source::checksum;
use crate::process::claude::session_files::{
    find_session, open_session, session_path, write_session,
};
use crate::process::launch::claude_version;
use crate::process::plugin_process::{NamedVariables, passed_on};
use crate::runtime::error::Error;
use crate::runtime::sharing::{EngineMirror, LEASE_TIME, apart, fetch_content, put_content};
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
        timeout_ms: options.timeout.map(millis_of),
    }
}

/// Takes a host into service. If another worker served it a moment ago, this waits, because that worker may have ended.
/// Returns `None` if the wait is interrupted.
///
/// # Errors
/// [`EngineError::HostTaken`] if the other worker is alive, or the engine cannot be asked.
pub(super) async fn take_into_service(
    engine: &Arc<dyn Engine>,
    host: &HostName,
    worker: &str,
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

/// Stops giving new agents to the host of a claim. A host that belongs to another worker by now, or was declared lost,
/// stays as it is.
pub(super) fn drain(engine: &dyn Engine, claim: &HostClaim) -> Result<(), EngineError> {
    let seen = engine.hosts()?;
    let sighting = seen.iter().find(|now| now.host == claim.host && now.epoch == claim.epoch);
    match sighting.map(|now| now.standing) {
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
    /// The labels that states can ask for, from `--host-label`.
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

// Takes runs over whose supervisor is gone: another raymond of this machine supervises them from then on.

/// The time between two looks at the runs.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The time before the same run is tried once more.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);

/// Starts supervisors in separate processes.
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
            // Supervisors that an engine could not hear while it was down are first given the time to renew their
            // leases.
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
    /// The last reported reason for each run, so that it is reported once.
    reported: HashMap<RunId, String>,
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
        if self.reported.get(run).is_none_or(|before| before != why) {
            tracing::warn!(
                "the run {run} has lost its supervisor, and this host does not take it over: {why}"
            );
            self.reported.insert(run.clone(), why.to_owned());
        }
    }
}

impl Takeover {
    /// Takes over the runs that are abandoned now, but not before `earliest`. A run that cannot be taken over does not
    /// delay the others.
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
        attempts.reported.retain(|run, _| runs.contains(run));
        for run in runs.iter().filter(|run| attempts.begin(run)).cloned().collect::<Vec<_>>() {
            if let Err(why) = self.take(&run, policy) {
                attempts.tell(&run, &why);
            }
        }
        Ok(())
    }

    /// Takes over a run, or gives it back if it is no longer running.
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

// Keeps sessions of Claude Code in an engine after their turns, and brings them to this host before a turn that needs
// them.

/// The most manifests that are remembered. Those of other sessions are read from the engine.
const MAX_REMEMBERED: usize = 4096;

/// The places of Claude Code for a turn.
#[derive(Debug, Clone)]
pub(super) struct ClaudePlaces {
    /// Its own directory.
    pub(super) config_dir: PathBuf,
    /// The directory that the turn runs in.
    pub(super) cwd: PathBuf,
}

/// The keeper of the sessions of a host.
pub(super) struct SessionKeeper {
    space: Arc<dyn RunSpace + Send + Sync>,
    /// The manifests of the sessions that are on this host, with their checksums, as far as they are remembered.
    here: Mutex<HashMap<SessionId, (Arc<str>, SessionManifest)>>,
}

impl SessionKeeper {
    pub(super) fn new(space: Arc<dyn RunSpace + Send + Sync>) -> Self {
        Self { space, here: Mutex::default() }
    }

    /// Has the engine keep a session after a turn. Of what it keeps already, under the manifest `before`, only what has
    /// changed is put.
    ///
    /// # Errors
    /// The reason why the session is only on this host.
    pub(super) fn keep(
        &self,
        places: &ClaudePlaces,
        session: &SessionId,
        before: Option<&str>,
    ) -> Result<KeptSession, String> {
        let path = find_session(&places.config_dir, &places.cwd, session).ok_or_else(|| {
            format!("Claude Code has left no file of it in {}", places.config_dir.display())
        })?;
        let unreadable = |error| format!("{} cannot be read: {error}", path.display());
        let mut file = open_session(&path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        if bytes > MAX_KEPT_SESSION_BYTES {
            let mib = MAX_KEPT_SESSION_BYTES / 1024 / 1024;
            return Err(format!("it has {bytes} bytes, and at most {mib} MiB are kept"));
        }
        let known = self.known(session, before).map_or_else(Vec::new, |known| known.parts);
        let mut parts = unchanged(&mut file, known).map_err(unreadable)?;
        parts.truncate(parts_to_keep(&parts, bytes));
        let start = parts.iter().map(|part| part.bytes).sum();
        file.seek(SeekFrom::Start(start)).map_err(unreadable)?;
        let mut rest = file.take(bytes.saturating_sub(start));
        loop {
            let mut part = Vec::new();
            rest.by_ref()
                .take(MAX_SESSION_PART_BYTES)
                .read_to_end(&mut part)
                .map_err(unreadable)?;
            if part.is_empty() {
                break;
            }
            parts.push(self.put(&part)?);
        }
        let session_id = session.clone();
        let manifest = SessionManifest { version: MANIFEST_VERSION, session_id, parts };
        let text = serde_json::to_vec(&manifest).map_err(|error| error.to_string())?;
        let sum = self.put(&text)?.checksum;
        self.remember(&sum, manifest);
        Ok(KeptSession { session_id: session.clone(), manifest: sum })
    }

    /// Brings a session to this host as it was kept. A session that is here with all of that, or more, stays as it is.
    ///
    /// # Errors
    /// The reason why it cannot be continued here.
    pub(super) fn bring(
        &self,
        places: &ClaudePlaces,
        session: &SessionId,
        sum: &str,
    ) -> Result<(), String> {
        // A session that has been here before may have gone on elsewhere since.
        if self.here().get(session).is_some_and(|(here, _)| **here == *sum) {
            return Ok(());
        }
        let unusable = || format!("{session} is not a valid session of Claude Code");
        let path = session_path(&places.config_dir, &places.cwd, session).ok_or_else(unusable)?;
        let manifest = self.manifest(session, sum)?;
        let unwritable = |error: &dyn Display| format!("{}: {error}", path.display());
        match open_session(&path) {
            Ok(mut file) => {
                let verified = unchanged(&mut file, manifest.parts.clone());
                if verified.map_err(|error| unwritable(&error))? == manifest.parts {
                    self.remember(sum, manifest);
                    return Ok(());
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(&error)),
        }
        let written = write_session(&path, |file| {
            manifest.parts.iter().try_for_each(|part| {
                let content = self.content(part).map_err(std::io::Error::other)?;
                file.write_all(&content)
            })
        });
        if let Some(aside) = written.map_err(|error| unwritable(&error))? {
            let (path, aside) = (path.display(), aside.display());
            tracing::warn!("{path} was not the session that was kept; it is now {aside}");
        }
        tracing::info!(
            "the session {session} was brought to this host, {} bytes",
            manifest.bytes()
        );
        self.remember(sum, manifest);
        Ok(())
    }

    fn put(&self, content: &[u8]) -> Result<SessionPart, String> {
        let put = put_content(&*self.space, content).map_err(|error| error.to_string())?;
        Ok(SessionPart { checksum: put.into(), bytes: content.len() as u64 })
    }

    fn content(&self, part: &SessionPart) -> Result<Vec<u8>, String> {
        let content = fetch_content(&*self.space, &part.checksum, part.bytes)?;
        if content.len() as u64 == part.bytes {
            return Ok(content);
        }
        Err(format!("its part {} has another length than its manifest says", part.checksum))
    }

    /// Returns the manifest of a session.
    fn manifest(&self, session: &SessionId, sum: &str) -> Result<SessionManifest, String> {
        let text = fetch_content(&*self.space, sum, MAX_MANIFEST_BYTES)?;
        let read = serde_json::from_slice::<SessionManifest>(&text);
        let usable = read.ok().filter(|manifest| manifest.is_usable_for(session));
        usable.ok_or_else(|| format!("{sum} is not a manifest of the session {session}"))
    }

    /// Returns the manifest under which a session was kept last. Without one, all of the session is put.
    fn known(&self, session: &SessionId, before: Option<&str>) -> Option<SessionManifest> {
        let here = self.here().get(session).map(|(_, manifest)| manifest.clone());
        here.or_else(|| self.manifest(session, before?).ok())
    }

    fn remember(&self, sum: &str, manifest: SessionManifest) {
        let mut here = self.here();
        if here.len() >= MAX_REMEMBERED {
            here.clear();
        }
        here.insert(manifest.session_id.clone(), (sum.into(), manifest));
    }

    fn here(&self) -> MutexGuard<'_, HashMap<SessionId, (Arc<str>, SessionManifest)>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns those of the first parts that a file begins with, unchanged.
fn unchanged(file: &mut File, mut parts: Vec<SessionPart>) -> std::io::Result<Vec<SessionPart>> {
    let mut content = Vec::new();
    for place in 0..parts.len() {
        let part = &parts[place];
        content.clear();
        Read::by_ref(file).take(part.bytes).read_to_end(&mut content)?;
        if content.len() as u64 != part.bytes || checksum(&content) != *part.checksum {
            parts.truncate(place);
            break;
        }
    }
    Ok(parts)
}

#[cfg(test)]
mod session_keeper_tests;

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
    fn worker_learns_why_it_has_to_end() {
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
