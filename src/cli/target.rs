//! What a target means: a prompt file, a folder with START.md, or a run.

use std::path::{Path, PathBuf};

use super::exit::Error;
use crate::domain::id::{RunId, StateName};
use crate::language::hint::closest;
use crate::language::manifest::{self, Manifest};
use crate::language::prompt::step;
use crate::language::source::{self, Source};
use crate::store::layout::Root;
use crate::store::view;
use crate::store::workflow::Directory;

/// The prompt a folder begins with.
const FIRST: &str = "START.md";

/// What to run.
#[derive(Debug)]
pub enum Target {
    /// A workflow, from its beginning.
    Workflow(Box<Workflow>),
    /// A run that was started before.
    Run(RunId),
}

/// A workflow.
#[derive(Debug)]
pub struct Workflow {
    /// Its directory.
    pub scope: Directory,
    /// Its first state.
    pub entry: StateName,
    /// What it says about itself.
    pub manifest: Manifest,
}

/// Finds out what a target means.
///
/// # Errors
/// [`Error::Usage`] if there is nothing of that name, [`Error::Workflow`] if it is no prompt.
pub fn resolve(target: &str, root: &Root) -> Result<Target, Error> {
    let path = Path::new(target);
    let run = RunId::parse(target).ok().filter(|id| root.run(id).path().is_dir());
    if let Some(id) = &run
        && path.symlink_metadata().is_ok()
    {
        return Err(Error::Usage(format!(
            "{id} is both a run and a path: `raymond resume {id}` goes on with the run, `raymond run ./{id}` runs what is at the path"
        )));
    }
    if path.is_dir() {
        return workflow(path, None);
    }
    if path.exists() || path.symlink_metadata().is_ok() {
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return workflow(
            folder,
            Some(path.file_name().and_then(|name| name.to_str()).unwrap_or_default()),
        );
    }
    run.map(Target::Run).ok_or_else(|| Error::Usage(nothing(target, root)))
}

fn workflow(folder: &Path, file: Option<&str>) -> Result<Target, Error> {
    let scope = Directory::open(folder).map_err(|error| Error::Io {
        doing: "open the directory",
        path: PathBuf::from(folder),
        error,
    })?;
    let manifest = manifest(&scope)?;
    let file = file.or(manifest.entry.as_deref()).unwrap_or(FIRST).to_owned();
    let entry = StateName::parse(&file)?;
    match scope.check(&entry) {
        Err(source::Error::Missing { .. }) if manifest.entry.as_deref() == Some(&*file) => {
            let error = format!("its `entry` is {file}, and there is no such file");
            let path = scope.root().join(manifest::FILE).display().to_string();
            Err(step::Error::from(source::Error::Unreadable { path, error }).into())
        }
        Err(source::Error::Missing { similar, .. }) if file == FIRST => {
            let hint = similar.map(|name| format!(" (there is {name})")).unwrap_or_default();
            let error = format!(
                "there is no {FIRST} in this folder{hint}; a workflow begins with it: make it, or name its first prompt"
            );
            Err(step::Error::from(source::Error::Unreadable {
                path: folder.display().to_string(),
                error,
            })
            .into())
        }
        Err(error) => Err(step::Error::from(error).into()),
        Ok(()) => Ok(Target::Workflow(Box::new(Workflow { scope, entry, manifest }))),
    }
}

/// What a workflow says about itself; nothing, if it has no manifest.
fn manifest(scope: &Directory) -> Result<Manifest, Error> {
    let name = StateName::parse(manifest::FILE)?;
    let path = scope.path(&name);
    match scope.read(&name) {
        Ok(text) => manifest::parse(&text).map_err(|error| Error::Manifest { path, error }),
        Err(source::Error::Missing { .. }) => Ok(Manifest::default()),
        Err(error) => Err(step::Error::from(error).into()),
    }
}

/// Nothing has this name: perhaps something similar does.
fn nothing(target: &str, root: &Root) -> String {
    const COMMANDS: [&str; 8] =
        ["run", "resume", "start", "status", "list", "log", "stop", "recover"];
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
        format!(": name a prompt file, a folder with {FIRST}, or a run of `raymond list`")
    };
    format!("{target}: there is no such file, and no such run in {}{hint}", root.runs().display())
}
