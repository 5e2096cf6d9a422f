//! An engine, as the supervisor of a run uses it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::id::RunId;
use crate::domain::settings::Settings;
use crate::engine::shared_log::{LogLine, RunLease};
use crate::engine::{Engine, EngineError};
use crate::runtime::directories::directory;
use crate::runtime::error::Error;
use crate::store;
use crate::store::files;
use crate::store::layout::RunsRoot;
use crate::store::log::SharedLine;

/// The time after which a run without a sign of its supervisor may be taken over.
pub(in crate::runtime) const LEASE_TIME: Duration = Duration::from_secs(6);

/// The time between two signs of a supervisor.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(2);

/// An engine, and the name that this raymond has there.
#[derive(Debug, Clone)]
pub struct RunEngine {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The name of this raymond, which no other one has: its machine and its process.
    pub holder: String,
}

/// The right to supervise a run in an engine.
#[derive(Debug, Clone)]
pub struct HeldRun {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The lease.
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

/// Returns the lines of an engine's log as the store has them.
pub(super) fn shared_lines(lines: Vec<LogLine>) -> Vec<SharedLine> {
    lines.into_iter().map(|LogLine { seq, text }| SharedLine { seq, text }).collect()
}

/// Returns the settings of a run as they hold on this machine: a run that was started on another one has a directory of
/// its own here, unless all machines have the same.
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

/// Makes a call to an engine on a thread of its own, because calls block and may not be made on a thread of actors.
pub(in crate::runtime) fn apart<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(call).join() {
        Ok(called) => called,
        Err(panicked) => std::panic::resume_unwind(panicked),
    })
}
