//! A host's way into service, and the reason why it has to leave it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::domain::host::{HostLabel, HostName, HostReport, HostStanding};
use crate::domain::host_work::WIRE_VERSION;
use crate::engine::host_registry::{HOST_SILENCE, HostClaim, RegisteredHost};
use crate::engine::{Engine, EngineError};
use crate::process::helper_environment::{NamedVariables, passed_on};
use crate::process::startup::claude_version;
use crate::runtime::error::Error;
use crate::runtime::sharing::apart;
use crate::runtime::supervise::InterruptReceiver;
use crate::runtime::worker::abandoned_runs::Takeover;
use crate::runtime::worker::policy::{CLAUDE, HostPolicy};
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;

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
