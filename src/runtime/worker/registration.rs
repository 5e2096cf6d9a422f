//! A host's way into service, and the reason why it has to leave it.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::host::{HostName, HostReport, HostStanding};
use crate::engine::host_registry::{HOST_SILENCE, HostClaim, RegisteredHost};
use crate::engine::{Engine, EngineError};
use crate::runtime::error::Error;
use crate::runtime::sharing::apart;
use crate::runtime::supervise::InterruptReceiver;

/// The pause before a host is asked for again that another worker serves.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of times that such a host is asked for: until the other worker has been silent for long enough.
const ATTEMPTS: u64 = HOST_SILENCE.as_secs() + 2;

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
                        "another worker served the host {host} a moment ago: this one waits until that is silent"
                    );
                }
            }
            taken => return Ok(Some(taken?)),
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            Some(()) = interrupts.recv() => break,
        }
    }
    Ok(None)
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
            assert!(error.contains("this one begins nothing more"), "{error}");
        }
    }
}
