//! `raymond stop`: asks the raymond that holds a run to let it hold still.
//!
//! The request lies in the run's inbox when the command returns, so it is not lost. A run that
//! nobody holds stands still already.

use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::args::StopArgs;
use super::exit::{Error, Exit};
use super::output;
use super::status::{left_running, word};
use crate::actor::clock::now;
use crate::domain::event::Command;
use crate::runtime::place;
use crate::store::layout::{Root, RunDir};
use crate::store::view::{is_held, look};
use crate::store::{self, inbox, lock};

/// How often it is looked whether the run is let go.
const LOOK: Duration = Duration::from_millis(50);

/// `raymond stop`
///
/// # Errors
/// [`Error`] if there is no such run.
pub fn stop(args: &StopArgs) -> Result<Exit, Error> {
    let id = &args.one.run;
    let root = Root::new(&args.one.dir.dir);
    let dir = root.run(id);
    // The run may have a long story: the request does not wait until it is read.
    let was_held = is_held(&root, id)?;
    if was_held {
        ask(&dir)?;
        while args.wait && lock::is_held(&dir.lock())?.is_some() {
            std::thread::sleep(LOOK);
        }
    }
    let after = look(&root, id)?;
    if args.one.json {
        return output::print_json(
            &json!({ "workflow_id": id, "asked": was_held, "status": word(&after) }),
        );
    }
    let said = match (was_held, after.held) {
        (false, _) => format!("{id} stands still already: no raymond holds it"),
        (true, true) => format!("{id} is asked to stop: its running turns may finish"),
        (true, false) => format!("{id} has stopped"),
    };
    let running = left_running(&place::root(&args.one.dir.dir)?, &after);
    output::print(&format!("{said}\n{running}"))
}

/// Puts the request into the run's inbox.
pub(super) fn ask(dir: &RunDir) -> Result<(), store::Error> {
    let name = format!("{:013}-{}", now().0, Uuid::new_v4().simple());
    inbox::put(&dir.inbox(), &name, &Command::Stop)
}
