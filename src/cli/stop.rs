//! `raymond stop`: asks the raymond that holds a run to let it hold still, and waits until it does.

use std::time::Duration;

use uuid::Uuid;

use super::args::OneRun;
use super::exit::{Error, Exit};
use super::output;
use super::status::word;
use crate::actor::clock::now;
use crate::domain::event::Command;
use crate::store::layout::Root;
use crate::store::view::look;
use crate::store::{inbox, lock};

/// How often it is looked whether the run is let go.
const LOOK: Duration = Duration::from_millis(50);

/// `raymond stop`
///
/// # Errors
/// [`Error`] if there is no such run.
pub fn stop(args: &OneRun) -> Result<Exit, Error> {
    let root = Root::new(&args.dir.dir);
    let view = look(&root, &args.run)?;
    let dir = root.run(&args.run);
    if view.held {
        let name = format!("{:013}-{}", now().0, Uuid::new_v4().simple());
        inbox::put(&dir.inbox(), &name, &Command::Stop)?;
        while lock::is_held(&dir.lock())?.is_some() {
            std::thread::sleep(LOOK);
        }
    } else {
        output::tell(&format!("no raymond holds {}", args.run));
    }
    let view = look(&root, &args.run)?;
    if args.json {
        return output::print_json(
            &serde_json::json!({ "workflow_id": args.run, "status": word(&view) }),
        );
    }
    output::print(&format!("{}  {}\n", args.run, word(&view)))
}
