//! The meaning of a target: a prompt file, a folder with START.md, a run, or a defined program.

use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::args::Cli;
use super::exit::Error;
use super::help::meant_command;
use super::output;
use super::runnable::is_workflow;
use crate::domain::id::RunId;
use crate::language::hint::{closest, did_you_mean};
use crate::plain_file;
use crate::runtime::{FIRST_STATE, Workflow, directories};
use crate::store;
use crate::store::dataspace::{Dataspace, DefinedProgram};
use crate::store::layout::RunsRoot;
use crate::store::view;

/// The target of `run`.
#[derive(Debug)]
pub enum RunTarget {
    /// A workflow, or a program that was defined, from its beginning.
    Workflow(Box<Workflow>),
    /// A run that was started before.
    Run(RunId),
}

/// Finds the workflow or the run that a target names.
///
/// # Errors
/// [`Error::Usage`] if nothing has that name, [`Error::Runtime`] if it is not a prompt.
pub fn resolve(target: &str, root: &RunsRoot) -> Result<RunTarget, Error> {
    let path = Path::new(target);
    let run = RunId::parse(target).ok().filter(|id| root.run(id).path().is_dir());
    if let Some(id) = &run
        && path.symlink_metadata().is_ok()
    {
        return Err(Error::Usage(format!(
            "{id} is both a run and a path: `raymond resume {id}` resumes the run, `raymond run ./{id}` runs the workflow at that path"
        )));
    }
    if path.is_dir() || path.symlink_metadata().is_ok() {
        refuse_cases(path)?;
        let workflow = Workflow::open(path)?;
        note_defined(target, root);
        return Ok(RunTarget::Workflow(Box::new(workflow)));
    }
    if let Some(run) = run {
        return Ok(RunTarget::Run(run));
    }
    if !root.dataspace().is_dir() {
        return Err(Error::Usage(nothing(target, root)));
    }
    let space = Dataspace::of(root).with_key(&directories::user_state()?.key()?);
    match space.defined(target) {
        Ok(Some(defined)) => Ok(RunTarget::Workflow(Box::new(defined_workflow(&space, defined)?))),
        // A target that cannot be the name of a program is a path.
        Ok(None) | Err(store::Error::Unfit(_)) => Err(Error::Usage(nothing(target, root))),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a file of test cases.
///
/// # Errors
/// [`Error::Usage`] that names the command for it.
pub(super) fn refuse_cases(path: &Path) -> Result<(), Error> {
    let text = plain_file::text(path).unwrap_or_default();
    let is_case = |line: &str| line.starts_with("cases:") || line.starts_with("expect:");
    if path.extension().is_some_and(|end| end == "yaml") && text.lines().any(is_case) {
        let path = path.display();
        return Err(Error::Usage(format!(
            "{path}: this is a file of test cases; run them: raymond test {path}"
        )));
    }
    Ok(())
}

/// Tells that a path has the name of a defined program, too.
fn note_defined(target: &str, root: &RunsRoot) {
    if !root.dataspace().is_dir() {
        return;
    }
    let key = directories::user_state().ok().and_then(|state| state.key().ok());
    let defined = key.map(|key| Dataspace::of(root).with_key(&key).defined(target));
    if let Some(Ok(Some(_))) = defined {
        output::tell(&format!(
            "note: {target} is both a path and a defined program, and raymond uses the path; `raymond run {target}` in another directory uses the program"
        ));
    }
}

/// Opens a defined program, in its folder as it was when the program was defined.
///
/// # Errors
/// [`Error`] if its kept files cannot be read.
pub(super) fn defined_workflow(
    space: &Dataspace,
    defined: DefinedProgram,
) -> Result<Workflow, Error> {
    Ok(Workflow::kept(&space.file_of(&defined)?, defined.text)?)
}

/// Returns the file or folder whose name is most like that of a path which is not there.
pub(super) fn similar_path(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.collect();
    let similar = closest(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(folder.map_or_else(|| PathBuf::from(similar), |folder| folder.join(similar)))
}

/// Returns the error text for an unknown name, with a similar one if there is any.
fn nothing(target: &str, root: &RunsRoot) -> String {
    let ids = view::ids(root).unwrap_or_default();
    let path = similar_path(Path::new(target));
    let is_path = path.as_ref().is_some_and(|path| path.as_os_str().eq_ignore_ascii_case(target));
    let id = closest(target, ids.iter().map(RunId::as_str)).filter(|_| !is_path);
    let here = std::env::current_dir().unwrap_or_default();
    let hint = if here.ends_with(target) && is_workflow(&here) {
        "; you are in this folder: `raymond run .` runs it".to_owned()
    } else if let Some(id) = id {
        format!("; did you mean the run {id}?")
    } else if let Some(path) = path {
        format!("; {}", did_you_mean(target, &path.display().to_string()))
    } else if let Some(command) = meant_command(&Cli::command(), target) {
        format!("; did you mean the command `raymond {command}`? Options stand behind it")
    } else {
        format!(": name a prompt file, a folder with {FIRST_STATE}, or a run of `raymond list`")
    };
    format!("{target}: there is no such file, and no such run in {}{hint}", root.runs().display())
}
