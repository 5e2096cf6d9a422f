//! The calls of the object of a host, and its answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::host::HostStanding;

/// A call that may change a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine::restate) enum HostCall {
    Register {
        worker: String,
        report: Value,
        /// The silence after which it is taken from another worker.
        silence_ms: u64,
    },
    Heartbeat {
        epoch: u64,
        report: Value,
    },
    SetStanding(HostStanding),
    Remove,
    /// A run has requests for it from now on.
    AddRun {
        run: String,
    },
    /// A run has none any more.
    DropRun {
        run: String,
    },
    /// There is a request.
    Mail,
    /// Notes who waits for more mail than was seen.
    Watch {
        awakeable: String,
        seen: u64,
    },
}

/// A question about a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine::restate) enum HostLook {
    /// Asks for the runs that have requests, if the epoch is the newest.
    Runs {
        epoch: u64,
    },
    State,
}

/// The answer of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::engine::restate) enum HostObjectAnswer {
    Done,
    /// The host is in this epoch. Its runs are to be told the oldest one that is not over.
    Epoch {
        epoch: u64,
        oldest_valid: u64,
        runs: Vec<String>,
    },
    Standing(HostStanding),
    Fenced,
    Taken,
    NoSuchHost,
    Runs(Vec<String>),
    State {
        epoch: u64,
        standing: HostStanding,
        silent_ms: u64,
        report: Value,
    },
}
