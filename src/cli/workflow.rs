//! `raymond workflow`: defines, starts, watches and lists programs.

mod list;
mod watch;

use std::path::Path;

use serde_json::json;

use super::args::RunArgs;
use super::exit::{CliExitCode, Error};
use super::{dry_run, output, run, start};
use crate::actor::context::now;
use crate::cli::args::workflows::{DefineArgs, WorkflowCommand};
use crate::cli::target::defined_workflow;
use crate::domain::printable::printable_line;
use crate::language::diagnostic::Diagnostic;
use crate::language::program::interpreter::DEFINITION_LABEL;
use crate::language::program::read::read;
use crate::language::prompt::step;
use crate::language::source::WorkflowSource;
use crate::runtime::{self, Workflow, directories};
use crate::store::capture::WorkflowCapture;
use crate::store::dataspace::{Dataspace, DefinedProgram, FactStatement};

/// Runs `raymond workflow`.
///
/// # Errors
/// [`Error`] of its commands.
pub fn workflow(command: WorkflowCommand) -> Result<CliExitCode, Error> {
    match command {
        WorkflowCommand::Define(args) => define(&args),
        WorkflowCommand::Start(args) => begin(&args),
        WorkflowCommand::Watch(args) => watch::watch(&args),
        WorkflowCommand::List(args) => list::list(&args),
    }
}

fn define(args: &DefineArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    let Workflow { scope, entry, .. } = program_at(&args.file)?;
    let text =
        scope.read(&entry).map_err(|error| runtime::Error::from(step::Error::from(error)))?;
    let reading = read(&scope.path(&entry), &text, &scope);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        reading.diagnostics.into_iter().partition(Diagnostic::is_error);
    let Some(program) = reading.program.filter(|_| errors.is_empty()) else {
        return Err(runtime::Error::Graph { diagnostics: errors, text }.into());
    };
    for warning in &warnings {
        output::warn(&warning.without_severity());
    }
    let file = scope.root().join(entry.as_str());
    let file = std::path::absolute(&file).unwrap_or(file);
    let capture = WorkflowCapture::of(scope.root(), root.path())?;
    if let Some(warning) = capture.warning() {
        output::warn(&warning);
    }
    let defined = DefinedProgram {
        name: program.name.to_string(),
        label: program.metadata.label,
        file,
        program: program.hash.to_string(),
        text,
        at: now(),
        pins: Some(capture.pins()),
    };
    let space = Dataspace::of(&root).with_key(&directories::user_state()?.key()?);
    space.define(&defined, &capture)?;
    let (key, value, source) = (&defined.name, &defined.program, "workflow define");
    let at = defined.at;
    space.assert(FactStatement { label: DEFINITION_LABEL, key, value, source, at }, None)?;
    if args.json {
        let DefinedProgram { name, file, program, .. } = &defined;
        return output::print_json(&json!({ "name": name, "file": file, "program": program }));
    }
    let name = printable_line(&defined.name);
    output::print(&format!("{name} is defined; start it: raymond workflow start {name}\n"))
}

fn begin(args: &RunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    if args.dry_run {
        return dry_run::dry_run(args, &root);
    }
    let path = Path::new(&args.target);
    let space = Dataspace::of(&root).with_key(&directories::user_state()?.key()?);
    let defined = space.defined(&args.target)?;
    let workflow = match (path.symlink_metadata().is_ok(), defined) {
        (true, Some(defined)) => {
            return Err(Error::Usage(format!(
                "{0} is both a path and a defined program: `raymond workflow start ./{0}` starts the file at that path; remove or rename it to start the defined one, of {1}",
                args.target,
                defined.file.display()
            )));
        }
        (true, None) => program_at(path)?,
        (false, Some(defined)) => defined_workflow(&space, defined)?,
        (false, None) => return Err(Error::Usage(unknown(&space, &args.target))),
    };
    start::take_off(args, &root, run::create(args, &root, &workflow)?)
}

/// Opens the program in a file.
fn program_at(path: &Path) -> Result<Workflow, Error> {
    let workflow = Workflow::open(path)?;
    if workflow.entry.is_program() {
        return Ok(workflow);
    }
    Err(Error::Usage(format!(
        "{} is not a program: name a .lisp file; `raymond run` and `raymond start` run other workflows",
        path.display()
    )))
}

/// Returns the error text for an unknown program, with a similar name if there is any.
fn unknown(space: &Dataspace, name: &str) -> String {
    let all = space.all_defined().unwrap_or_default();
    let names = all.defined.iter().map(|defined| defined.name.as_str());
    let hint = match crate::language::hint::closest(name, names) {
        Some(similar) => format!("did you mean {similar}?"),
        None => "define one with `raymond workflow define FILE`, or name a file".to_owned(),
    };
    format!("{name}: there is no such file, and no program of that name is defined; {hint}")
}
