//! The exchange of a run's work by a git repository: begun where the run is started, cloned at each host.

use std::path::PathBuf;

use super::error::Error;
use super::graphs::{waited_for, world_of, world_of_exchange};
use crate::domain::git_exchange::{ExchangeName, GitExchange};
use crate::domain::host::HostEpoch;
use crate::domain::id::RunId;
use crate::domain::settings::Settings;
use crate::process::working_dirs::ExchangeCopy;
use crate::store::layout::RunsRoot;
use crate::world::exchange::StartedExchange;
use crate::world::outcome::OperationError;
use crate::world::perform::WorkspaceExecutor;

/// The base of a new run, which is removed from the exchange again unless the run is made.
pub(super) struct PushedBase {
    world: WorkspaceExecutor,
    started: StartedExchange,
    is_kept: bool,
}

/// Begins the exchange of a new run, if it has one.
///
/// # Errors
/// [`Error::NotExchanged`].
pub(super) fn begin(
    root: &RunsRoot,
    id: &RunId,
    settings: &mut Settings,
    name: Option<&ExchangeName>,
) -> Result<Option<PushedBase>, Error> {
    let Some(name) = name else { return Ok(None) };
    let world = world_of(root, id, settings);
    let started = done(waited_for(world.begin_exchange(name)))
        .map_err(|why| Error::NotExchanged { run: id.clone(), why })?;
    settings.git_exchange = Some(started.exchange.clone());
    Ok(Some(PushedBase { world, started, is_kept: false }))
}

/// Leaves the base in the exchange, because the run is made.
pub(super) fn keep(base: Option<PushedBase>) {
    if let Some(mut base) = base {
        base.is_kept = true;
    }
}

impl PushedBase {
    /// Returns what people should know: files that hosts do not get as they are.
    pub(super) fn warning(&self) -> Option<String> {
        let (files, at) = match self.started.uncommitted {
            0 => return None,
            1 => ("1 file is".to_owned(), self.world.root().display()),
            number => (format!("{number} files are"), self.world.root().display()),
        };
        Some(format!("{files} not committed in {at}, and left out: hosts begin at the last commit"))
    }
}

impl Drop for PushedBase {
    fn drop(&mut self) {
        let exchange = &self.started.exchange;
        if self.is_kept || !self.started.is_new {
            return;
        }
        if let Err(why) = done(waited_for(self.world.withdraw_exchange(exchange))) {
            tracing::warn!("the base of the run stays in {}: {why}", exchange.address);
        }
    }
}

/// Returns the place of a host's clone of the exchange.
fn copy_of(root: &RunsRoot, id: &RunId, exchange: &GitExchange, epoch: HostEpoch) -> ExchangeCopy {
    let home = root.path().join("workspaces").join(id.as_str());
    ExchangeCopy { exchange: exchange.clone(), epoch, home }
}

/// Makes sure that the clone of the exchange at a host is there, and returns it.
///
/// # Errors
/// The reason why it cannot be made.
pub(super) fn cloned(
    root: &RunsRoot,
    id: &RunId,
    settings: &Settings,
    epoch: HostEpoch,
) -> Result<Option<ExchangeCopy>, String> {
    let Some(exchange) = &settings.git_exchange else { return Ok(None) };
    let copy = copy_of(root, id, exchange, epoch);
    let world = world_of_exchange(root, id, settings, copy.clone());
    let moved: Option<PathBuf> = done(waited_for(world.clone_exchange()))?;
    if let Some(moved) = moved {
        tracing::warn!(
            "{id}: this host was declared lost, so what it had of the run does not count; it was moved to {}",
            moved.display()
        );
    }
    Ok(Some(copy))
}

fn done<T>(waited: Result<Result<T, OperationError>, String>) -> Result<T, String> {
    waited?.map_err(|error| error.to_string())
}
