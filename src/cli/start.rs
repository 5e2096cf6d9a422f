//! `raymond start`: a run in the background.

use super::args::RunArgs;
use super::exit::{Error, Exit};
use super::run::{create, root};
use super::target::{self, Target};
use super::{background, output, settings};
use crate::domain::id::RunId;
use crate::store;
use crate::store::view;

/// `raymond start`: what can be checked is checked here, and the run is durable when its id is printed.
///
/// # Errors
/// [`Error`] if it cannot begin.
pub fn start(args: &RunArgs) -> Result<Exit, Error> {
    let root = root(args)?;
    let (id, further) = match target::resolve(&args.target, &root)? {
        Target::Workflow { scope, entry } => {
            (create(args, &root, &scope, entry)?.release(), Vec::new())
        }
        Target::Run(id) => {
            let view = view::look(&root, &id)?;
            if view.held {
                return Err(store::Error::Held { id, pid: None }.into());
            }
            settings::again(args, view.run.settings)?;
            let further = given_options(&id);
            (id, further)
        }
    };
    drop(background::take_up(&root, &id, &further)?);
    output::print(&format!("{id}\n"))
}

/// The options this process was given, without the command, the target and the directory.
fn given_options(id: &RunId) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    let mut arguments = std::env::args().skip(2).peekable();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--dir" => drop(arguments.next()),
            dir if dir.starts_with("--dir=") => {}
            target if target == id.as_str() => {}
            _ => options.push(argument),
        }
    }
    options
}
