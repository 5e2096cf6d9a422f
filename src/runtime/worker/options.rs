//! The options of a worker.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::abandoned_runs::Takeover;
use super::policy::HostPolicy;
use crate::domain::host::{HostLabel, HostName};
use crate::store::layout::RunsRoot;
use crate::store::user_state::UserState;

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
