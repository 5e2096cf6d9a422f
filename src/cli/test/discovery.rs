//! Finds the files of cases, and reads them.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::cli::exit::Error;
use crate::language::cases::{self, TestCase};
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::hint::closest;
use crate::language::manifest;
use crate::language::position::SourcePlace;
use crate::language::prompt::first_state::STARTS;
use crate::language::{replies, yaml};
use crate::plain_file;

/// The folder beside a workflow that has its cases.
const FOLDER: &str = "tests";

/// The deepest folder in which workflows are looked for, below the one that is named.
const MAX_DEPTH: usize = 8;

/// The longest file of cases, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The files, beside those of a first prompt or script, that show that a folder is a workflow.
const WORKFLOW_FILES: [&str; 3] = [manifest::GRAPH, manifest::PROGRAM, manifest::FILE];

/// A case and its place.
#[derive(Debug, Clone)]
pub(super) struct LoadedCase {
    /// The workflow's folder, as it was named.
    pub(super) workflow: PathBuf,
    /// The file of the case.
    pub(super) file: PathBuf,
    /// The case.
    pub(super) case: TestCase,
}

/// A mistake of a case, with its place in the file.
pub(super) type CaseMistake = (SourcePlace, String);

/// Returns a mistake of a file of cases as `raymond check` reports it.
pub(super) fn diagnostic(file: &Path, (at, message): CaseMistake) -> Diagnostic {
    let (path, severity) = (shown(file), Severity::Error);
    Diagnostic { path, line: at.line, column: at.column, code: "RF008", severity, message }
}

impl LoadedCase {
    /// Returns its title: the workflow's folder and the name.
    pub(super) fn title(&self) -> String {
        format!("{}: {}", shown(&self.workflow), self.case.name)
    }

    /// Returns the path of the workflow, with the state that the case begins with.
    pub(super) fn entry_path(&self) -> PathBuf {
        match &self.case.entry {
            Some((_, entry)) if !entry.is_empty() => self.workflow.join(entry),
            _ => self.workflow.clone(),
        }
    }

    /// Returns a file beside the case.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new(".")).join(name)
    }
}

/// Returns a path without the `./` before it.
pub(super) fn shown(path: &Path) -> String {
    let plain = path.strip_prefix(".").ok().filter(|rest| !rest.as_os_str().is_empty());
    plain.unwrap_or(path).display().to_string()
}

/// Returns the files of cases of a workflow's folder, sorted.
///
/// # Errors
/// [`Error::Io`] if the folder cannot be read.
pub(super) fn files_of(workflow: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = yaml_files(&workflow.join(FOLDER))?;
    files.sort();
    Ok(files)
}

/// Returns the files of cases that a path names, sorted.
///
/// # Errors
/// [`Error::Usage`] if there are none.
pub(super) fn case_files(path: &Path) -> Result<Vec<PathBuf>, Error> {
    if path.is_file() {
        if !is_yaml(path) || path.ends_with(replies::FILE) {
            return Err(Error::Usage(format!(
                "{}: this is not a file of cases; name the workflow's folder, or a YAML file in its folder {FOLDER}",
                path.display()
            )));
        }
        return Ok(vec![path.to_owned()]);
    }
    if !path.is_dir() {
        return Err(Error::Usage(format!("{}: there is no such file or folder", path.display())));
    }
    let mut files = yaml_files(&path.join(FOLDER))?;
    let name = std::path::absolute(path).ok();
    if name.is_some_and(|path| path.file_name().is_some_and(|name| name == FOLDER)) {
        files.extend(yaml_files(path)?);
    }
    below(path, 0, &mut files)?;
    files.sort();
    files.dedup();
    if files.is_empty() {
        return Err(Error::Usage(format!(
            "{}: no cases found; write one into the folder of a workflow, such as {FOLDER}/main.yaml with `expect: {{ path: [START.md] }}`",
            path.display()
        )));
    }
    Ok(files)
}

/// Adds the files of the workflows below a folder.
fn below(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    if STARTS.iter().chain(&WORKFLOW_FILES).any(|name| folder.join(name).is_file()) {
        files.extend(yaml_files(&folder.join(FOLDER))?);
    }
    if depth >= MAX_DEPTH {
        return Ok(());
    }
    for entry in entries(folder)? {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_skipped = name.starts_with('.') || ["target", "node_modules"].contains(&&*name);
        if !is_skipped && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            below(&entry.path(), depth + 1, files)?;
        }
    }
    Ok(())
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths = entries(folder)?.into_iter().map(|entry| entry.path());
    Ok(paths.filter(|path| path.is_file() && is_yaml(path)).collect())
}

/// Returns what is in a folder; nothing of one that is not there.
fn entries(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let unreadable = |error| Error::Io { doing: "read the folder", path: folder.to_owned(), error };
    match fs::read_dir(folder) {
        Err(error) if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(Vec::new())
        }
        found => found.and_then(Iterator::collect).map_err(unreadable),
    }
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml")
}

/// The cases of a file, or its mistakes.
type ReadCases = Result<Vec<LoadedCase>, Vec<Diagnostic>>;

/// Reads a file of cases.
///
/// # Errors
/// [`Error::Io`] if it cannot be read.
pub(super) fn load(file: &Path) -> Result<ReadCases, Error> {
    let unreadable = |error| Error::Io { doing: "read", path: file.to_owned(), error };
    let bytes = plain_file::read(file, MAX_BYTES).map_err(unreadable)?;
    let text = String::from_utf8_lossy(&bytes);
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let folder = file.parent().unwrap_or(Path::new("."));
    let workflow = above(folder);
    Ok(match cases::read(&stem, &text) {
        Ok(cases) => Ok(cases
            .into_iter()
            .map(|case| LoadedCase { workflow: workflow.clone(), file: file.to_owned(), case })
            .collect()),
        Err(errors) => Err(errors
            .into_iter()
            .map(|yaml::Error { line, column, message }| {
                diagnostic(file, (SourcePlace { line, column }, message))
            })
            .collect()),
    })
}

/// Returns the folder above another one, named as that one is.
fn above(folder: &Path) -> PathBuf {
    match folder.components().next_back() {
        None | Some(Component::CurDir | Component::ParentDir) => folder.join(".."),
        Some(_) => match folder.parent() {
            Some(above) if !above.as_os_str().is_empty() => above.to_owned(),
            _ => ".".into(),
        },
    }
}

/// Returns the message that no case has the name that was asked for.
pub(super) fn no_such_case(path: &Path, total: usize, names: &[String]) -> String {
    let asked = names.join("`, `");
    format!(
        "{}: none of the {total} cases has `{asked}` in its name; leave out --case to run all",
        path.display()
    )
}

/// Returns the name that was probably meant.
pub(super) fn meant<'names>(name: &str, names: impl IntoIterator<Item = &'names str>) -> String {
    let similar = closest(name, names);
    similar.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}
