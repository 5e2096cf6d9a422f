//! `raymond stop`: asks the raymond that holds a run to stop it.
//!
//! The request lies in the run's inbox once it is made, so it is not lost. The command waits a moment until it is
//! taken, to report that; a run that ends by itself meanwhile is reported as ended. A run that is not locked is
//! stopped already.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::agent_orders::stop_agent;
use super::args::StopArgs;
use super::exit::{CliExitCode, Error};
use super::status_word::word;
use super::{engine, output, run_choice};
use crate::cli::hosts::WaitedHosts;
use crate::cli::status::left_running;
use crate::domain::id::RunId;
use crate::proof::ProofKey;
use crate::runtime::command_name::command_name;
use crate::runtime::directories;
use crate::store::engine_note::EngineNote;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{is_held, load_view};
use crate::store::{self, inbox, lock, received_commands};

/// The poll interval of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The longest time until a raymond takes a request: it looks five times a second.
const TAKING_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a request to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopRequestState {
    /// The run was not locked, so there was nobody to ask.
    NotHeld,
    /// The request is in the inbox, or was taken.
    Made,
    /// The run was released before the request could be taken.
    Void,
    /// The supervisor of a shared run was gone, and no worker takes the run over now.
    LeftStopped,
}

/// Runs `raymond stop`.
///
/// # Errors
/// [`Error`] if there is no such run.
pub fn stop(args: &StopArgs) -> Result<CliExitCode, Error> {
    if let Some(agent) = args.agent.get() {
        return stop_agent(&args.one.named, (&args.one.dir, args.one.json), agent);
    }
    let root = args.one.dir.root();
    let id = &run_choice::chosen(&args.one.named, &root)?;
    engine::must_be_named(&args.one.dir, &root, id)?;
    let dir = root.run(id);
    // The run may have a long story: the request does not wait until it is read.
    let mut state = StopRequestState::NotHeld;
    if is_held(&root, id)? {
        state = await_taken(&dir, ask(&dir, &directories::user_state()?.key()?)?.as_deref())?;
        let mut hosts = WaitedHosts::of(&args.one.dir)?;
        while args.wait && lock::is_held(&dir.lock())?.is_some() {
            hosts.look(&dir)?;
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    if EngineNote::of(dir.path())?.is_some_and(|note| note.is_abandoned)
        && let Some(connected) = engine::connected(&args.one.dir)?
    {
        engine::mirror(connected)?.leave_stopped(id)?;
        state = StopRequestState::LeftStopped;
    }
    let mut after = load_view(&root, id)?;
    while args.wait && after.held && state == StopRequestState::Made {
        std::thread::sleep(POLL_INTERVAL);
        after = load_view(&root, id)?;
    }
    if args.one.json {
        let asked = match state {
            StopRequestState::Made | StopRequestState::LeftStopped => true,
            StopRequestState::NotHeld | StopRequestState::Void => false,
        };
        return output::print_json(&json!({ "run": id, "asked": asked, "status": word(&after) }));
    }
    let said = match (state, after.held) {
        (StopRequestState::NotHeld, _) => format!("{id} is not live, so there is nothing to stop"),
        (StopRequestState::LeftStopped, _) => {
            format!(
                "{id} has lost its supervisor; no worker takes it over until `raymond resume {id}`"
            )
        }
        (StopRequestState::Made, true) => {
            format!("{id} stops once its running turns have finished")
        }
        (StopRequestState::Made, false) => format!("{id} has stopped"),
        (StopRequestState::Void, _) => {
            format!("{id} ended before it could be stopped: it is {}", word(&after))
        }
    };
    let running = left_running(&directories::root(root.path())?, &after);
    output::print(&format!("{said}\n{running}"))
}

/// Asks a run of this machine to stop, as `raymond stop` does; returns what it tells as JSON.
///
/// # Errors
/// [`Error`] if there is no such run.
pub(super) fn request(root: &RunsRoot, id: &RunId) -> Result<Value, Error> {
    let dir = root.run(id);
    let mut is_made = false;
    if is_held(root, id)? {
        let name = ask(&dir, &directories::user_state()?.key()?)?;
        is_made = await_taken(&dir, name.as_deref())? == StopRequestState::Made;
    }
    let after = load_view(root, id)?;
    Ok(json!({ "run": id, "asked": is_made, "status": word(&after) }))
}

/// Puts the request into the run's inbox, and returns its name; `None` if the run is being released.
pub(super) fn ask(dir: &RunDir, key: &ProofKey) -> Result<Option<String>, store::Error> {
    let name = command_name();
    Ok(received_commands::put(dir, &name, key)?.then_some(name))
}

/// Waits until a request is taken, or is void because the run is no longer locked; not for ever.
fn await_taken(dir: &RunDir, name: Option<&str>) -> Result<StopRequestState, store::Error> {
    let Some(name) = name else { return Ok(StopRequestState::Void) };
    let deadline = Instant::now() + TAKING_TIMEOUT;
    while received_commands::is_waiting(dir, name) {
        if lock::is_held(&dir.lock())?.is_none() {
            // The raymond that held it was killed. The next one must not find what was meant for that one.
            inbox::remove(&dir.inbox(), name)?;
        } else if Instant::now() > deadline {
            return Ok(StopRequestState::Made);
        } else {
            std::thread::sleep(POLL_INTERVAL);
        }
    }
    let is_taken = received_commands::was_taken(dir, name)?;
    Ok(if is_taken { StopRequestState::Made } else { StopRequestState::Void })
}
