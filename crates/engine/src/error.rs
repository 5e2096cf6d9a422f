//! Errors of engines. Each text names the engine or the run, the reason and the remedy.

use raymond_model::host::HostName;
use raymond_model::id::RunId;

#[cfg(any(feature = "postgres", feature = "restate"))]
use crate::EngineAddress;

/// The reason why an engine did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The text is not the address of an engine.
    #[error(
        "`{address}` is not the address of an engine: {why}; write postgres://USER@HOST/DATABASE or restate://HOST:PORT"
    )]
    Address {
        /// The address, without a password.
        address: String,
        /// The error in it.
        why: String,
    },
    /// This raymond was built without that engine.
    #[error(
        "this raymond was built without the engine {kind}: build it with `cargo install --path . --features {kind}` in its source"
    )]
    NotBuilt {
        /// The name of the engine, which is that of the feature.
        kind: &'static str,
    },
    /// It cannot be reached, or not now. The same call may succeed later.
    #[error("the engine {engine} cannot be reached: {why}")]
    Unreachable { engine: String, why: String },
    /// It refused: the user may not do that, or the database has no room.
    #[error("the engine {engine} refused: {why}")]
    Refused {
        engine: String,
        /// The reason, and the remedy.
        why: String,
    },
    /// It cannot store what it was given, now or later.
    #[error("the engine {engine} cannot store that: {why}")]
    Unstorable { engine: String, why: String },
    /// Its data is of another version.
    #[error("the engine {engine} holds data of version {found}, and this raymond ({raymond}) uses version {known}: use the raymond that the other machines use", raymond = env!("CARGO_PKG_VERSION"))]
    Version {
        engine: String,
        /// The version found.
        found: u32,
        /// The version that this program knows.
        known: u32,
    },
    /// It has no such run.
    #[error("the engine {engine} has no run {run}; `raymond list` shows those that it has")]
    NoSuchRun { engine: String, run: RunId },
    /// The id is taken.
    #[error(
        "the engine {engine} has a run {run} already; continue it with `raymond resume {run}` if it has not ended, or choose another --id"
    )]
    RunExists { engine: String, run: RunId },
    /// Another raymond supervises the run.
    #[error(
        "the run {run} is supervised by another raymond, {holder}; `raymond stop {run}` stops that"
    )]
    Supervised {
        engine: String,
        run: RunId,
        /// The holder of the lease, as it named itself.
        holder: String,
    },
    /// Another raymond has taken the run over. Nothing more that this one does for it counts.
    #[error(
        "another raymond has taken over the run {run}; this one has stopped, and its work since then does not count"
    )]
    TakenOver { run: RunId },
    /// The host was declared lost, or another worker serves under its name.
    #[error(
        "the host {host} was declared lost, or another worker has its name; this one starts no new work: end it, and start it again to return it to service"
    )]
    HostFenced { host: HostName },
    /// The host was declared lost.
    #[error(
        "the host {host} was declared lost, and this worker starts no new work: start it again to return it to service"
    )]
    HostLost { host: HostName },
    /// Another worker serves the host now.
    #[error(
        "another worker serves the host {host} now, and this one starts no new work: give one of them another name with --host"
    )]
    HostRelieved { host: HostName },
    /// The host was removed.
    #[error(
        "the host {host} was removed, and this worker starts no new work: start it again to return it to service"
    )]
    HostRemoved { host: HostName },
    /// Another worker serves the host.
    #[error(
        "another worker serves the host {host}, and was alive a moment ago: give this one another name with --host, or end the other one first"
    )]
    HostTaken { host: HostName },
    /// There is no such host.
    #[error("the engine {engine} knows no host {host}; `raymond hosts` shows those that it knows")]
    NoSuchHost { engine: String, host: HostName },
    /// It holds something that no raymond writes.
    #[error("the engine {engine} holds damaged data of {what}: {why}")]
    Damaged {
        engine: String,
        /// What the data is of.
        what: String,
        /// The error in it.
        why: String,
    },
}

#[cfg(any(feature = "postgres", feature = "restate"))]
impl EngineError {
    /// Returns an error that may pass.
    pub(crate) fn unreachable(engine: &EngineAddress, why: impl Into<String>) -> Self {
        Self::Unreachable { engine: engine.to_string(), why: why.into() }
    }

    /// Returns an error that stays.
    pub(crate) fn refused(engine: &EngineAddress, why: impl Into<String>) -> Self {
        Self::Refused { engine: engine.to_string(), why: why.into() }
    }

    /// Returns an error about what is stored.
    pub(crate) fn damaged(
        engine: &EngineAddress,
        what: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self::Damaged { engine: engine.to_string(), what: what.into(), why: why.into() }
    }
}

impl EngineError {
    /// Returns whether the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }

    /// Returns whether the engine refused for a reason that a person can fix while the caller waits.
    pub fn is_fixable(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Damaged { .. })
    }
}
