//! `raymond start`: a run in the background.

use std::ffi::OsString;

use super::args::RunArgs;
use super::exit::{CliExitCode, Error};
use super::run::create;
use super::target::{self, RunTarget};
use super::{background, dry_run, output, person, settings};
use crate::cli::options;
use crate::domain::id::RunId;
use crate::runtime::PreparedRun;
use crate::store;
use crate::store::layout::RunsRoot;
use crate::store::snapshot;

/// Runs `raymond start`: makes all checks here, and prints the run's id once the run is durable.
///
/// # Errors
/// [`Error`] if it cannot begin.
pub fn start(args: &RunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    if args.dry_run {
        return dry_run::dry_run(args, &root);
    }
    let id = match target::resolve(&args.target, &root)? {
        RunTarget::Workflow(workflow) => {
            return take_off(args, &root, create(args, &root, &workflow)?);
        }
        RunTarget::Run(id) => {
            person::must_resume(&root, &id)?;
            id
        }
    };
    let view = snapshot::load_view(&root, &id)?;
    if view.held {
        return Err(store::Error::Held { id, pid: view.holder }.into());
    }
    let settings = settings::for_resume(&args.new_run, &args.options, view.run.settings.clone())?;
    settings::check_budget(args.options.budget, &settings, &view.run)?;
    in_background(&root, &id, &given_options(&id))
}

/// Continues a new run in the background.
pub(super) fn take_off(
    args: &RunArgs,
    root: &RunsRoot,
    prepared: PreparedRun,
) -> Result<CliExitCode, Error> {
    let id = release(&prepared);
    drop(prepared);
    in_background(root, &id, &args.options.not_kept())
}

fn in_background(root: &RunsRoot, id: &RunId, further: &[OsString]) -> Result<CliExitCode, Error> {
    background::resume_detached(root, id, further)?.wait_until_held(root, id)?;
    output::print(&format!("{id}\n"))
}

/// Reports the plug-ins, notes and warnings of a prepared run, and returns its id.
fn release(prepared: &PreparedRun) -> RunId {
    for line in options::announced(prepared) {
        output::tell(&line);
    }
    for note in &prepared.notes {
        output::tell(note);
    }
    for warning in &prepared.warnings {
        output::warn(warning);
    }
    prepared.id().clone()
}

/// Returns the options of this process, without the command, the target and the directory.
fn given_options(id: &RunId) -> Vec<OsString> {
    let mut arguments = std::env::args_os().skip(2);
    let mut options = Vec::new();
    let mut target = Some(id.as_str());
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--") => {
                options.push(argument);
                options.extend(arguments);
                break;
            }
            Some("--dir") => drop(arguments.next()),
            Some(dir) if dir.starts_with("--dir=") => {}
            text if text.is_some() && text == target => target = None,
            _ => options.push(argument),
        }
    }
    options
}
