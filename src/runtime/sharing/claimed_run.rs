//! A run in an engine: its claim, its terms, its lease and its log; silent hosts, and calls that are made again.
//!
//! A claimed run stays as it was before unless somebody starts to supervise it. Otherwise a refused resume, for example
//! without a required plug-in, would leave a lease that runs out, and another machine would take over a run that a
//! person has stopped, or a run that has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::host::{HostName, HostStanding};
use crate::domain::id::RunId;
use crate::domain::sealed_terms::{RunSeal, SealedTerms, WorkflowPins};
use crate::domain::settings::Settings;
use crate::engine::shared_log::{RegisteredHost, RunLease, SharedRun};
use crate::engine::{Engine, EngineError};
use crate::runtime::directories::directory;
use crate::runtime::error::Error;
use crate::store;
use crate::store::files;
use crate::store::layout::RunsRoot;
use crate::store::log::{LineBatch, RunLog};

// The claim of a run without a supervisor.

/// The standing of a run before it was claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StandingBefore {
    /// It was given back: it was stopped or paused, or is new.
    GivenBack,
    /// It had ended.
    Ended,
    /// Its supervisor was gone, so it is to be taken over: the lease runs out once more.
    Abandoned,
}

/// The claim of a run.
#[derive(Debug)]
pub struct ClaimedRun {
    held: HeldRun,
    before: StandingBefore,
    /// Keeps the lease until the run has a supervisor.
    keeper: Option<LeaseKeeper>,
    is_supervised: bool,
}

impl StandingBefore {
    fn of(run: Option<&SharedRun>) -> Self {
        match run {
            Some(run) if run.has_ended => Self::Ended,
            Some(run) if run.is_abandoned || run.holder.is_some() => Self::Abandoned,
            Some(_) | None => Self::GivenBack,
        }
    }
}

impl ClaimedRun {
    /// Returns the claim of a new run.
    pub(super) fn new(held: HeldRun) -> Self {
        Self::kept(held, StandingBefore::GivenBack)
    }

    fn kept(held: HeldRun, before: StandingBefore) -> Self {
        let keeper = Some(LeaseKeeper::start(&held));
        Self { held, before, keeper, is_supervised: false }
    }

    /// Claims a run.
    ///
    /// # Errors
    /// [`EngineError`] if another raymond supervises it, or the engine cannot be asked.
    pub(super) fn claim(from: &RunEngine, run: &RunId) -> Result<Self, EngineError> {
        let runs = from.engine.runs()?;
        let before = StandingBefore::of(runs.iter().find(|known| known.run == *run));
        let lease = from.engine.claim_run(run, &from.holder, LEASE_TIME)?;
        Ok(Self::kept(HeldRun { engine: from.engine.clone(), lease }, before))
    }

    /// Returns the right to supervise the run.
    pub fn held(&self) -> &HeldRun {
        &self.held
    }

    /// Has the engine keep the settings under which the run goes on, so that other machines supervise it under the
    /// same.
    ///
    /// # Errors
    /// [`Error`] if the engine cannot be asked, or its terms cannot be read.
    pub fn share_terms(&self, settings: &Settings) -> Result<(), Error> {
        let HeldRun { engine, lease } = &self.held;
        let mut terms = terms(&**engine, &lease.run)?;
        let Some(before) = terms.terms.pop().filter(|before| before.settings != *settings) else {
            return Ok(());
        };
        // Until the run's next record the earlier ones are in force.
        let next = SealedTerms { settings: settings.clone(), ..before.clone() };
        terms.terms = vec![before, next];
        let text = serde_json::to_string(&terms)
            .map_err(|error| Error::NotShared { run: lease.run.clone(), why: error.to_string() })?;
        Ok(engine.set_terms(lease, &text)?)
    }

    /// Notes that the run has a supervisor from now on, which keeps its lease and gives it back itself.
    pub(in crate::runtime) fn begin(&mut self) {
        self.keeper = None;
        self.is_supervised = true;
    }

    /// Gives a run back that turned out to have ended.
    pub fn end(mut self) {
        self.before = StandingBefore::Ended;
    }

    fn give_back(&self) -> Result<(), EngineError> {
        let HeldRun { engine, lease } = &self.held;
        match self.before {
            StandingBefore::GivenBack => engine.release_run(lease, false),
            StandingBefore::Ended => engine.release_run(lease, true),
            StandingBefore::Abandoned => Ok(()),
        }
    }
}

impl Drop for ClaimedRun {
    fn drop(&mut self) {
        self.keeper = None;
        if self.is_supervised {
            return;
        }
        if let Err(error) = apart(|| self.give_back()) {
            tracing::debug!("the lease of the run runs out by itself: {error}");
        }
    }
}

// The terms of a run that several machines share: what another machine needs to supervise it, besides its log.

/// The version of [`SharedTerms`].
pub(super) const TERMS_VERSION: u32 = 1;

/// The part of the terms that each version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
struct TermsVersion {
    /// The version of the document.
    version: u32,
}

/// The terms of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedTerms {
    /// The version of this document.
    pub(super) version: u32,
    /// The workflow's folder on the machine where the run was started.
    pub(super) scope_dir: String,
    /// The first session, which no other run has.
    pub(super) first_session: String,
    /// The terms that a person confirmed.
    pub(super) terms: Vec<SealedTerms>,
    /// The workflow's files; the engine has their contents by their checksums.
    pub(super) pins: WorkflowPins,
    /// The checksums of the two files of the cassette that answers its prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cassette: Option<CassetteBlobs>,
}

/// The checksums of the files of a cassette.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CassetteBlobs {
    pub(super) header: String,
    pub(super) turns: String,
}

impl SharedTerms {
    /// Returns the seal of the run's copy on this machine.
    pub(super) fn seal(&self, run: &RunId, root: &RunsRoot) -> RunSeal {
        RunSeal {
            run: run.clone(),
            directory: root.path().display().to_string(),
            scope_dir: self.scope_dir.clone(),
            first_session: self.first_session.clone(),
            terms: self.terms.clone(),
            journal: None,
        }
    }
}

/// Returns the name of a blob for a checksum: its digits.
pub(super) fn blob_name(checksum: &str) -> &str {
    checksum.strip_prefix("sha256:").unwrap_or(checksum)
}

/// Returns the terms of a run.
pub(super) fn terms(engine: &dyn Engine, run: &RunId) -> Result<SharedTerms, Error> {
    let text = engine.terms(run)?;
    let unreadable = |error: serde_json::Error| damaged(engine, run, &error.to_string());
    // Those of another version may have other parts.
    let version: TermsVersion = serde_json::from_str(&text).map_err(unreadable)?;
    if version.version != TERMS_VERSION {
        let (found, known) = (version.version, TERMS_VERSION);
        let engine = engine.address().to_string();
        return Err(EngineError::Version { engine, found, known }.into());
    }
    serde_json::from_str(&text).map_err(unreadable)
}

/// Returns the error about data of a run that no raymond writes.
pub(super) fn damaged(engine: &dyn Engine, run: &RunId, why: &str) -> Error {
    let engine = engine.address().to_string();
    EngineError::Damaged { engine, what: format!("the run {run}"), why: why.to_owned() }.into()
}

// The thread that renews the lease of a run until the writer of its log does: a long log takes a while to load.

/// The renewals of a lease, until this is dropped.
#[derive(Debug)]
pub(super) struct LeaseKeeper {
    /// The thread ends when this is dropped; no message is sent.
    _end: Sender<()>,
}

impl LeaseKeeper {
    /// Starts the thread. If another raymond has taken the lease, it is no longer renewed, and the next write fails.
    pub(super) fn start(held: &HeldRun) -> Self {
        let (end, ended) = channel::<()>();
        let held = held.clone();
        let renewals = move || {
            while ended.recv_timeout(RENEWAL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                match held.engine.renew_lease(&held.lease, LEASE_TIME) {
                    Ok(()) => {}
                    Err(error) if error.is_passing() || error.is_fixable() => {
                        tracing::debug!("the lease is not renewed yet: {error}");
                    }
                    Err(error) => return tracing::debug!("the lease is kept no more: {error}"),
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("lease".to_owned()).spawn(renewals) {
            tracing::warn!(
                "cannot start a thread ({error}), so another raymond may take over the run if loading takes long"
            );
        }
        Self { _end: end }
    }
}

// Calls to an engine that are made again until it has carried them out.

/// The pause before a call is made again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Repeats a call while the engine cannot be reached.
///
/// # Errors
/// Any other error.
pub(in crate::runtime) fn until_reached<T>(
    has_ended: impl Fn() -> bool,
    mut call: impl FnMut() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    loop {
        match call() {
            // Others say that it cannot be reached.
            Err(error) if error.is_passing() && !has_ended() => std::thread::sleep(RETRY_PAUSE),
            called => return called,
        }
    }
}

/// Repeats a call also while the engine refuses it for a reason that a person can fix, such as a full disk, and says so
/// once.
///
/// # Errors
/// Any other error: somebody else acts for the run or the host now.
pub(in crate::runtime) fn until_fixed<T>(
    has_ended: impl Fn() -> bool,
    mut call: impl FnMut() -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let mut is_reported = false;
    loop {
        match until_reached(&has_ended, &mut call) {
            Err(error) if error.is_fixable() && !has_ended() => {
                if !std::mem::replace(&mut is_reported, true) {
                    tracing::warn!("{error}; retrying until this is fixed");
                }
                std::thread::sleep(RETRY_PAUSE);
            }
            called => return called,
        }
    }
}

// Silent hosts: raymond reports those that it waits for, and some count as lost after a while.

/// The number of looks after which a silence is reported. A host is silent at the first looks after the engine was
/// down.
const LOOKS_BEFORE_REPORT: u32 = 8;

/// The number of looks after which a silent host may count as lost: 16 seconds. Within them a worker that could not
/// reach the engine either notices that its call has failed, makes it again, and is heard.
const LOOKS_BEFORE_LOST: u32 = 32;

/// The silence of one host.
#[derive(Debug, Default)]
struct HostSilence {
    /// The number of looks in a row at which the host was silent.
    looks: u32,
    is_reported: bool,
}

/// The hosts that are silent, at looks every half second.
#[derive(Debug, Default)]
pub struct SilentHosts(BTreeMap<HostName, HostSilence>);

impl SilentHosts {
    /// Notes the state of the hosts. Returns the sentences about silent hosts that raymond waits for, and about hosts
    /// that respond again.
    pub fn news(
        &mut self,
        seen: &[RegisteredHost],
        is_waited_for: impl Fn(&HostName) -> bool,
    ) -> Vec<String> {
        let mut news = Vec::new();
        for host in seen {
            let name = &host.host;
            let is_lost = host.standing == HostStanding::Lost;
            if is_lost || host.is_alive() {
                let was_reported = self.0.remove(name).is_some_and(|silence| silence.is_reported);
                if was_reported && !is_lost {
                    news.push(format!("host {name} responds again"));
                }
                continue;
            }
            let known = self.0.entry(name.clone()).or_default();
            known.looks = known.looks.saturating_add(1);
            if known.looks > LOOKS_BEFORE_REPORT && !known.is_reported && is_waited_for(name) {
                known.is_reported = true;
                news.push(silence(host));
            }
        }
        news
    }

    /// Notes that the engine could not be asked. No host could be heard in the meantime, so each silence has to be
    /// observed again.
    pub(in crate::runtime) fn start_again(&mut self) {
        for known in self.0.values_mut() {
            known.looks = 0;
        }
    }

    /// Returns those hosts that have been silent for longer than their workers said, also at every look of late.
    pub(in crate::runtime) fn overdue<'a>(
        &self,
        seen: &'a [RegisteredHost],
    ) -> Vec<&'a RegisteredHost> {
        let is_overdue = |host: &&RegisteredHost| {
            let looks = self.0.get(&host.host).map_or(0, |known| known.looks);
            looks >= LOOKS_BEFORE_LOST && host.report.is_overdue(host.silent_for)
        };
        seen.iter().filter(is_overdue).collect()
    }
}

/// Returns the sentence about a host that is silent while raymond waits for it.
fn silence(host: &RegisteredHost) -> String {
    let (name, seconds) = (&host.host, host.silent_for.as_secs());
    format!(
        "host {name} has been silent for {seconds} s, and raymond waits for its turns: restart its worker, or declare it lost with `raymond hosts lost {name}`"
    )
}

/// Returns a sentence about each host that is silent now while raymond waits for it.
pub fn silences(seen: &[RegisteredHost], is_waited_for: impl Fn(&HostName) -> bool) -> Vec<String> {
    let is_silent = |host: &&RegisteredHost| {
        host.standing != HostStanding::Lost && !host.is_alive() && is_waited_for(&host.host)
    };
    seen.iter().filter(is_silent).map(silence).collect()
}

// The error of a repeated call: raymond reports it once, and reports once that it is over.

/// The number of consecutive calls that have to fail before raymond reports it.
const FAILURES: u32 = 2;

/// The maximum number of errors that are reported for the same calls.
const MAX_REPORTED: usize = 3;

/// The errors of a call that stand now. One call may fail by chance, such as when another program writes the same file.
#[derive(Debug)]
pub(in crate::runtime) struct ReportedError {
    /// The consequence of a failure, and the state once the call succeeds again.
    sentences: (&'static str, &'static str),
    /// The number of calls in a row that failed.
    failures: u32,
    /// The reported errors, until a call succeeds.
    reported: BTreeSet<String>,
}

impl ReportedError {
    /// Returns one about calls whose failure means the first, and whose success the second.
    pub(in crate::runtime) fn about(failed: &'static str, fixed: &'static str) -> Self {
        Self { sentences: (failed, fixed), failures: 0, reported: BTreeSet::new() }
    }

    /// Notes what came of a call, and warns of an error that is new.
    pub(in crate::runtime) fn note(&mut self, called: Result<(), Error>) {
        if let Err(error) = &called {
            tracing::debug!("{error}");
        }
        if let Some(news) = self.news(called) {
            tracing::warn!("{news}");
        }
    }

    /// Returns what to report now.
    fn news(&mut self, called: Result<(), Error>) -> Option<String> {
        let (failed, fixed) = self.sentences;
        let error = match called {
            Ok(()) => {
                self.failures = 0;
                let was_reported = !std::mem::take(&mut self.reported).is_empty();
                return was_reported.then(|| fixed.to_owned());
            }
            // The writer of the log says that the engine cannot be reached, and that another raymond has the run.
            Err(Error::Engine(error)) if !error.is_fixable() => return None,
            Err(error) => error.to_string(),
        };
        self.failures = self.failures.saturating_add(1);
        let is_news = self.failures >= FAILURES && self.reported.len() < MAX_REPORTED;
        let is_news = is_news && self.reported.insert(error.clone());
        is_news.then(|| format!("{error}; until this is fixed, {failed}"))
    }
}

// An engine, as the supervisor of a run uses it.

/// The time after which a run without a sign of its supervisor may be taken over.
pub(in crate::runtime) const LEASE_TIME: Duration = Duration::from_secs(6);

/// The time between two signs of a supervisor.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);

/// An engine, and the name that this raymond has there.
#[derive(Debug, Clone)]
pub struct RunEngine {
    /// The connection to the engine, which clones share.
    pub engine: Arc<dyn Engine>,
    /// The name of this raymond, which no other one has: its machine and its process.
    pub holder: String,
}

/// The right to supervise a run in an engine.
#[derive(Debug, Clone)]
pub struct HeldRun {
    /// The connection to the engine that gave the lease.
    pub engine: Arc<dyn Engine>,
    /// The run and its epoch. The engine refuses it once another raymond has taken the run over.
    pub lease: RunLease,
}

/// The part of a machine in the exchange of commands.
#[derive(Debug, Clone, Copy)]
pub enum CommandRole<'a> {
    /// It gives commands.
    Sender,
    /// It supervises the run, and takes them.
    Supervisor(&'a RunLease),
}

/// Returns the error of the store for an error of an engine.
pub(super) fn store_error(error: &EngineError, run: &RunId) -> store::Error {
    match error {
        EngineError::TakenOver { .. } => store::Error::TakenOver { id: run.clone() },
        other => store::Error::Engine(other.to_string()),
    }
}

/// Returns the settings of a run for this machine. A run that was started on another machine has a separate directory
/// here, unless all machines have the same directory.
pub(in crate::runtime) fn settings_here(
    settings: &Settings,
    held: Option<&HeldRun>,
    root: &RunsRoot,
    run: &RunId,
) -> Result<Settings, Error> {
    if held.is_none() || Path::new(&settings.cwd).is_dir() {
        return Ok(settings.clone());
    }
    let workspace = root.path().join("workspaces").join(run.as_str());
    files::make_dir(&workspace)?;
    Ok(Settings { cwd: directory(&workspace)?, ..settings.clone() })
}

/// Calls an engine on a separate thread, because calls block and must not be made on an actor thread.
pub(in crate::runtime) fn apart<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(call).join() {
        Ok(called) => called,
        Err(panicked) => std::panic::resume_unwind(panicked),
    })
}

// The log of a run in an engine. While the engine cannot be reached, it is asked again; running turns go on meanwhile.

/// The first pause before an engine that could not be reached is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The time to wait for a further line. A call costs the engine more than the lines that it carries, and replies that
/// arrive at the same moment are recorded one after the other.
const GATHERING_TIME: Duration = Duration::from_millis(1);

/// The log of a run in an engine.
struct EngineLog {
    held: HeldRun,
    /// False from the first call that did not reach the engine until one does.
    is_reached: bool,
}

impl HeldRun {
    /// Returns the log of the run.
    pub fn log(&self) -> Box<dyn RunLog> {
        Box::new(EngineLog { held: self.clone(), is_reached: true })
    }
}

impl EngineLog {
    /// Makes a call, and tells people once that the engine cannot be reached, and once that it is again. Returns
    /// whether it was reached.
    fn reach(
        &mut self,
        call: impl Fn(&HeldRun) -> Result<(), EngineError>,
    ) -> Result<bool, store::Error> {
        let called = call(&self.held);
        let is_reached = match &called {
            Ok(()) => true,
            Err(error) if error.is_passing() => false,
            Err(error) => return Err(store_error(error, &self.held.lease.run)),
        };
        if let (true, Err(error)) = (self.is_reached, &called) {
            tracing::warn!(
                "{error}; the run waits for the engine, running turns continue, and nothing is lost"
            );
        }
        if is_reached && !self.is_reached {
            let engine = self.held.engine.address();
            tracing::warn!("the engine {engine} can be reached again; the run continues");
        }
        self.is_reached = is_reached;
        Ok(is_reached)
    }
}

impl RunLog for EngineLog {
    fn append(&mut self, batch: &LineBatch) -> Result<(), store::Error> {
        let mut pause = FIRST_PAUSE;
        while !self.reach(|held| held.engine.append(&held.lease, &batch.shared))? {
            sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }

    fn renewal_interval(&self) -> Option<Duration> {
        Some(RENEWAL_INTERVAL)
    }

    fn renew(&mut self) -> Result<(), store::Error> {
        // What was not reached now is tried again at the next append, or after the interval.
        self.reach(|held| held.engine.renew_lease(&held.lease, LEASE_TIME)).map(drop)
    }

    fn gathering_time(&self) -> Duration {
        GATHERING_TIME
    }
}

#[cfg(test)]
mod patience_tests {
    use std::cell::Cell;

    use super::*;
    use crate::domain::id::RunId;

    fn errors() -> [EngineError; 3] {
        let (engine, why) = ("postgres://x".to_owned(), "it is full".to_owned());
        let run = RunId::parse("t").expect("an id");
        [
            EngineError::Unreachable { engine: engine.clone(), why: why.clone() },
            EngineError::Refused { engine, why },
            EngineError::TakenOver { run },
        ]
    }

    /// Returns what comes of a call that gives these errors one after the other, and then succeeds, and how often it
    /// was made.
    fn outcome(given: &[&EngineError], ends: bool) -> (Result<usize, EngineError>, usize) {
        let calls = Cell::new(0);
        let call = || {
            let number = calls.replace(calls.get() + 1);
            given.get(number).map_or(Ok(number), |&error| Err(error.clone()))
        };
        (until_fixed(|| ends, call), calls.get())
    }

    #[test]
    fn call_is_repeated_until_somebody_else_acts() {
        let [unreachable, refused, taken] = errors();
        assert_eq!(outcome(&[&unreachable, &refused, &unreachable], false), (Ok(3), 4));
        assert_eq!(outcome(&[&refused, &taken, &refused], false), (Err(taken.clone()), 2));
        assert_eq!(outcome(&[&refused], true), (Err(refused), 1), "the run is over");
        assert_eq!(until_reached(|| false, || Err::<(), _>(taken.clone())), Err(taken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standing_is_that_before_the_claim() {
        let run = |holder: Option<&str>, has_ended, is_abandoned| SharedRun {
            run: RunId::parse("r").expect("an id"),
            last: 1,
            holder: holder.map(str::to_owned),
            has_ended,
            is_abandoned,
        };
        for (run, before) in [
            (None, StandingBefore::GivenBack),
            (Some(run(None, false, false)), StandingBefore::GivenBack),
            (Some(run(None, true, false)), StandingBefore::Ended),
            (Some(run(None, false, true)), StandingBefore::Abandoned),
            // Its lease has run out between the look and the claim.
            (Some(run(Some("a"), false, false)), StandingBefore::Abandoned),
        ] {
            assert_eq!(StandingBefore::of(run.as_ref()), before, "{run:?}");
        }
    }
}

#[cfg(test)]
mod silent_hosts_tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::host::HostEpoch;

    fn host(standing: HostStanding, silent_for: u64) -> RegisteredHost {
        let report = r#"{"slots":1,"busy":0,"sessions":0,"raymond":"1","wire":1}"#;
        RegisteredHost {
            host: HostName::parse("a").expect("a name"),
            epoch: HostEpoch(1),
            standing,
            silent_for: Duration::from_secs(silent_for),
            report: serde_json::from_str(report).expect("a report"),
        }
    }

    #[test]
    fn silence_of_awaited_host_is_reported_once_with_its_end() {
        let mut silent = SilentHosts::default();
        let mut news_of = |standing, silent_for, is_waited_for| {
            let seen = [host(standing, silent_for)];
            (0..20).flat_map(|_| silent.news(&seen, |_| is_waited_for)).collect::<Vec<String>>()
        };
        assert_eq!(news_of(HostStanding::Active, 1, true), [""; 0]);
        assert_eq!(news_of(HostStanding::Active, 30, false), [""; 0], "nobody waits for it");
        let news = news_of(HostStanding::Draining, 40, true);
        assert!(news.len() == 1 && news[0].contains("silent for 40 s"), "{news:?}");
        assert_eq!(news_of(HostStanding::Active, 0, true), ["host a responds again"]);
        news_of(HostStanding::Active, 30, true);
        assert_eq!(news_of(HostStanding::Lost, 50, true), [""; 0]);
    }

    #[test]
    fn host_is_overdue_once_it_was_silent_at_every_look_while_the_engine_answered() {
        let timeout = |silent_for| {
            let mut host = host(HostStanding::Active, silent_for);
            host.report.timeout_ms = Some(60_000);
            [host]
        };
        let mut silent = SilentHosts::default();
        let mut overdue = |seen: &[RegisteredHost; 1], looks| {
            let mut count = 0;
            for _ in 0..looks {
                silent.news(seen, |_| true);
                count += silent.overdue(seen).len();
            }
            count
        };
        assert_eq!(overdue(&timeout(700), 31), 0, "the engine may have been down for so long");
        assert_eq!(overdue(&timeout(0), 1), 0);
        assert_eq!(overdue(&timeout(59), 40), 0, "it has a minute");
        assert_eq!(overdue(&timeout(60), 1), 1);
        assert_eq!(overdue(&[host(HostStanding::Active, 700)], 40), 0, "only a person declares it");
        let mut lost = timeout(700);
        lost[0].standing = HostStanding::Lost;
        assert_eq!(overdue(&lost, 40), 0, "it is already");
        silent.news(&timeout(60), |_| true);
        silent.start_again();
        let mut looks = (0..40).map(|_| {
            silent.news(&timeout(60), |_| true);
            silent.overdue(&timeout(60)).len()
        });
        assert_eq!(looks.by_ref().take(31).sum::<usize>(), 0, "it is heard anew");
        assert_eq!(looks.next(), Some(1));
    }
}

#[cfg(test)]
mod reported_error_tests {
    use super::*;
    use crate::engine::EngineError;

    #[test]
    fn error_that_a_person_can_fix_is_reported_once_with_its_end() {
        let (engine, why) = ("postgres://x".to_owned(), "no right".to_owned());
        let refused =
            || Error::from(EngineError::Refused { engine: engine.clone(), why: why.clone() });
        let down =
            || Error::from(EngineError::Unreachable { engine: engine.clone(), why: why.clone() });
        let mut error = ReportedError::about("commands wait", "commands are taken");
        let mut news = |called| error.news(called).unwrap_or_default();
        assert_eq!(news(Ok(())), "");
        assert_eq!(news(Err(down())), "", "others tell it");
        assert_eq!(news(Err(refused())), "", "it may have failed by chance");
        assert_eq!(
            news(Err(refused())),
            "the engine postgres://x refused: no right; until this is fixed, commands wait"
        );
        assert_eq!([news(Err(refused())), news(Err(down())), news(Err(refused()))], [""; 3]);
        assert!(news(Err(Error::Nothing)).ends_with("; until this is fixed, commands wait"));
        assert_eq!([news(Err(refused())), news(Err(Error::Nothing))], [""; 2], "both were told");
        assert_eq!([news(Ok(())), news(Ok(()))], ["commands are taken", ""]);
        assert_eq!([news(Err(refused())), news(Ok(()))], [""; 2]);
    }
}
