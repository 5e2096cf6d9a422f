//! The hosts that an engine knows: taken into service, alive by their heartbeats, drained or declared lost by people.

use std::time::Duration;

use super::EngineError;
use super::shared_log::RunLease;
use raymond_model::host::{HostEpoch, HostName, HostReport, HostStanding};

/// The time without a heartbeat after which a host counts as silent.
pub const HOST_SILENCE: Duration = Duration::from_secs(6);

/// The right of a worker to act for a host, until the host is declared lost or another worker takes the name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostClaim {
    /// The host.
    pub host: HostName,
    /// Its epoch.
    pub epoch: HostEpoch,
}

/// A host as an engine lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredHost {
    /// Its name.
    pub host: HostName,
    /// Its newest epoch.
    pub epoch: HostEpoch,
    /// Its standing.
    pub standing: HostStanding,
    /// The time since its last heartbeat, by the clock of the engine.
    pub silent_for: Duration,
    /// Its last report.
    pub report: HostReport,
}

impl RegisteredHost {
    /// Returns whether its worker was heard of a moment ago, and may act for it.
    pub fn is_alive(&self) -> bool {
        self.silent_for < HOST_SILENCE && self.standing != HostStanding::Lost
    }
}

/// The hosts.
pub trait HostRegistry {
    /// Takes a host into service with a new epoch; a draining or lost host becomes active. `worker` is a value that the worker
    /// keeps over its restarts: a host that was not lost, and is served by the same worker again, keeps its epoch. Of
    /// another worker the host is taken once it was silent for `silence`, by the clock of the engine.
    ///
    /// # Errors
    /// [`EngineError::HostTaken`] if another worker was heard of since then.
    fn register_host(
        &self,
        host: &HostName,
        worker: &str,
        report: &HostReport,
        silence: Duration,
    ) -> Result<HostClaim, EngineError>;

    /// Reports that a host is alive, and returns its standing.
    ///
    /// # Errors
    /// [`EngineError::HostFenced`] if the claim is not the newest or the host was declared lost.
    fn heartbeat(
        &self,
        claim: &HostClaim,
        report: &HostReport,
    ) -> Result<HostStanding, EngineError>;

    /// Returns all hosts, in the order of their names.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn hosts(&self) -> Result<Vec<RegisteredHost>, EngineError>;

    /// Sets the standing of a host. One that is declared lost gets a new epoch, so its worker can do nothing more.
    ///
    /// # Errors
    /// [`EngineError::NoSuchHost`].
    fn set_standing(&self, host: &HostName, standing: HostStanding) -> Result<(), EngineError>;

    /// Makes sure that a host in an epoch before the oldest valid one begins nothing more of a run. Whoever gives its work to
    /// another host does this first. An engine that looks at the host whenever it begins something has nothing to do.
    ///
    /// # Errors
    /// [`EngineError`] if the engine cannot be asked.
    fn end_epochs(
        &self,
        _lease: &RunLease,
        _host: &HostName,
        _oldest_valid: HostEpoch,
    ) -> Result<(), EngineError> {
        Ok(())
    }

    /// Removes a host that is not served any more.
    ///
    /// # Errors
    /// [`EngineError::NoSuchHost`].
    fn remove_host(&self, host: &HostName) -> Result<(), EngineError>;
}
