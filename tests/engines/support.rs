//! Helpers of all tests: ids, lines, requests, and waits for what comes about.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use raymond::domain::host::{HostEpoch, HostName, HostReport};
use raymond::domain::id::RunId;
use raymond::engine::shared_log::{
    HostClaim, HostReply, HostRequest, LogLine, NewSharedRun, RunLease,
};
use raymond::engine::{Engine, EngineError};

/// The time after which a wait fails. It is far longer than any wait of the tests on a busy machine.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(5);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A lease that does not run out while a test runs.
pub(crate) const LONG: Duration = Duration::from_hours(1);

/// Waits until the condition holds; `what` explains a failure.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < WAIT_TIMEOUT, "never came about: {what}");
        std::thread::sleep(POLL_INTERVAL);
    }
}

static NEXT: AtomicU32 = AtomicU32::new(1);

/// Returns an id that no other run of the tests has.
pub(crate) fn new_run_id() -> RunId {
    let id = format!("run-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    RunId::parse(&id).expect("an id")
}

/// Returns a name that no other host of the tests has.
pub(crate) fn new_host() -> HostName {
    let name = format!("host-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    HostName::parse(&name).expect("a name")
}

/// Returns lines with these texts, the first of which has the number `first`.
pub(crate) fn lines(first: u64, texts: &[&str]) -> Vec<LogLine> {
    let numbered = texts.iter().zip(first..);
    numbered.map(|(text, seq)| LogLine { seq, text: (*text).to_owned() }).collect()
}

/// Returns all texts of a log.
pub(crate) fn texts(engine: &dyn Engine, run: &RunId) -> Vec<String> {
    let lines = engine.read(run, 0, usize::MAX).expect("a log");
    lines.into_iter().map(|line| line.text).collect()
}

pub(crate) fn new_run(texts: &[&str]) -> NewSharedRun {
    let (run, lines) = (new_run_id(), lines(1, texts));
    NewSharedRun { run, terms: r#"{"budget": 5}"#.to_owned(), lines }
}

/// Makes a run with one line, whose lease `here` has.
pub(crate) fn started_run(engine: &dyn Engine) -> RunLease {
    engine.create_run(&new_run(&["first"]), "here", LONG).expect("a new run")
}

/// Takes a run over, as another machine does when the lease has run out.
pub(crate) fn take_over(engine: &dyn Engine, lease: &RunLease) -> RunLease {
    engine.renew_lease(lease, Duration::ZERO).expect("a lease that runs out");
    engine.claim_run(&lease.run, "there", LONG).expect("a claim")
}

pub(crate) fn report(busy: u32) -> HostReport {
    HostReport {
        start: String::new(),
        slots: 4,
        room: Some(3),
        labels: BTreeSet::new(),
        busy,
        sessions: 0,
        raymond: "0.1.0".to_owned(),
        wire: 2,
        claude: Some("2.1.242".to_owned()),
        takes_runs: false,
        timeout_ms: None,
    }
}

/// Takes a new host into service.
pub(crate) fn served_host(engine: &dyn Engine) -> HostClaim {
    engine.register_host(&new_host(), "worker", &report(0), Duration::ZERO).expect("a claim")
}

pub(crate) fn request(lease: &RunLease, claim: &HostClaim, name: &str) -> HostRequest {
    HostRequest {
        key: key(lease, name),
        run: lease.run.clone(),
        host: claim.host.clone(),
        host_epoch: claim.epoch,
        body: format!(r#"{{"do": "{name}"}}"#),
    }
}

pub(crate) fn key(lease: &RunLease, name: &str) -> String {
    format!("{}/{name}", lease.run)
}

pub(crate) fn reply(lease: &RunLease, name: &str) -> HostReply {
    HostReply { key: key(lease, name), body: format!(r#"{{"done": "{name}"}}"#) }
}

/// Returns the names of requests or replies, which are the ends of their keys.
pub(crate) fn names<T>(mail: &[T], key: impl Fn(&T) -> &str) -> Vec<String> {
    let name = |one| key(one).rsplit('/').next().unwrap_or_default().to_owned();
    mail.iter().map(name).collect()
}

/// Returns the names of the requests that a host has not received, and receives them.
pub(crate) fn receive(engine: &dyn Engine, claim: &HostClaim, received: &[String]) -> Vec<String> {
    let requests = engine.requests(claim, received, false, 100).expect("requests");
    names(&requests, |request| &request.key)
}

pub(crate) fn later(claim: &HostClaim) -> HostClaim {
    HostClaim { host: claim.host.clone(), epoch: HostEpoch(claim.epoch.0 + 1) }
}

/// Calls about one request.
pub(crate) trait OneRequest {
    fn may_begin(&self, claim: &HostClaim, key: &str) -> Result<bool, EngineError>;
    fn reply_to(&self, claim: &HostClaim, reply: &HostReply) -> Result<(), EngineError>;
}

impl<E: Engine + ?Sized> OneRequest for E {
    fn may_begin(&self, claim: &HostClaim, key: &str) -> Result<bool, EngineError> {
        Ok(self.begin(claim, &[key.to_owned()])?.contains(key))
    }

    fn reply_to(&self, claim: &HostClaim, reply: &HostReply) -> Result<(), EngineError> {
        self.reply(claim, std::slice::from_ref(reply))
    }
}
