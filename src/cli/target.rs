//! The meaning of a target: a prompt file, a folder with START.md, or a run.

use std::path::Path;

use super::exit::Error;
use crate::domain::id::RunId;
use crate::language::hint::closest;
use crate::runtime::{FIRST_STATE, Workflow};
use crate::store::layout::RunsRoot;
use crate::store::view;

/// The target of `run`.
#[derive(Debug)]
pub enum RunTarget {
    /// A workflow, from its beginning.
    Workflow(Box<Workflow>),
    /// A run that was started before.
    Run(RunId),
}

/// Finds the workflow or the run that a target names.
///
/// # Errors
/// [`Error::Usage`] if there is nothing of that name, [`Error::Runtime`] if it is no prompt.
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
        return Ok(RunTarget::Workflow(Box::new(Workflow::open(path)?)));
    }
    run.map(RunTarget::Run).ok_or_else(|| Error::Usage(nothing(target, root)))
}

/// Returns the error text for an unknown name, with a similar one if there is any.
fn nothing(target: &str, root: &RunsRoot) -> String {
    const COMMANDS: [&str; 23] = [
        "run",
        "top",
        "resume",
        "start",
        "status",
        "list",
        "log",
        "tree",
        "show",
        "costs",
        "stop",
        "trust",
        "recover",
        "schema",
        "answer",
        "signal",
        "facts",
        "check",
        "graph",
        "workflow",
        "worktrees",
        "clean",
        "man",
    ];
    let ids = view::ids(root).unwrap_or_default();
    let folder = Path::new(target)
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let files: Vec<String> = std::fs::read_dir(folder)
        .map(|entries| {
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
        })
        .unwrap_or_default();
    let name = Path::new(target).file_name().and_then(|name| name.to_str()).unwrap_or(target);
    let hint = if let Some(id) = closest(target, ids.iter().map(RunId::as_str)) {
        format!("; did you mean the run {id}?")
    } else if let Some(file) = closest(name, files.iter().map(String::as_str)) {
        format!("; did you mean {}?", folder.join(file).display())
    } else if let Some(command) = closest(target, COMMANDS) {
        format!("; did you mean the command `raymond {command}`?")
    } else {
        format!(": name a prompt file, a folder with {FIRST_STATE}, or a run of `raymond list`")
    };
    format!("{target}: there is no such file, and no such run in {}{hint}", root.runs().display())
}
