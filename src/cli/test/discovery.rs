//! Finds the files of cases, reads them, and checks each case against its workflow.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use clap::CommandFactory;

use crate::cli::args::Cli;
use crate::cli::check::InspectedWorkflow;
use crate::cli::exit::Error;
use crate::language::cases::{CaseCassette, CaseReplies, CaseSetting, Expectation, TestCase};
use crate::language::coverage::WorkflowPlaces;
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::profile::GraphProfile;
use crate::language::hint::closest;
use crate::language::prompt::check::beginning;
use crate::language::prompt::scopes::STARTS;
use crate::language::replies::ScriptedReplies;
use crate::language::source::SourcePlace;
use crate::language::{cases, manifest, replies, yaml};
use crate::plain_file;
use crate::runtime::{Workflow, recording};
use crate::world::recorded_files::folder_below;

/// The folder beside a workflow that has its cases.
const FOLDER: &str = "tests";

/// The maximum depth at which workflows are searched below the named folder.
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

/// Returns the entries of a folder, or none if the folder does not exist.
fn entries(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let unreadable = Error::io("read the folder", folder);
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
    let bytes = plain_file::read(file, MAX_BYTES).map_err(Error::io("read", file))?;
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
            .map(|yaml::Error { at, message }| diagnostic(file, (at, message)))
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
pub(super) fn hint<'names>(name: &str, names: impl IntoIterator<Item = &'names str>) -> String {
    let similar = closest(name, names);
    similar.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

// Checks a case against its workflow before anything runs: its first state, the states it names, its options.
// `raymond test` and `raymond check` report the mistakes.

/// Returns the mistakes of a case, each with its place.
///
/// # Errors
/// [`Error`] if the workflow cannot be opened.
pub(super) fn mistakes(
    loaded: &LoadedCase,
    workflows: &mut MappedWorkflows,
) -> Result<Vec<Diagnostic>, Error> {
    if let Some(mistake) = unknown_entry(loaded) {
        return Ok(vec![diagnostic(&loaded.file, mistake)]);
    }
    let settings = loaded.case.settings.iter();
    let mut found: Vec<CaseMistake> =
        settings.filter_map(|setting| Some((setting.at, refused_option(setting)?))).collect();
    match workflows.places(loaded)? {
        Err(why) => found.push((loaded.case.at, format!("this case has no workflow: {why}"))),
        Ok(places) => {
            found.extend(reply_mistakes(loaded));
            found.extend(unknown_keys(loaded, places));
            found.extend(unknown_states(loaded, places));
        }
    }
    Ok(found.into_iter().map(|mistake| diagnostic(&loaded.file, mistake)).collect())
}

/// Returns the mistake of a first state that the workflow does not have.
fn unknown_entry(loaded: &LoadedCase) -> Option<CaseMistake> {
    let (place, entry) = loaded.case.entry.as_ref()?;
    if loaded.workflow.join(entry).exists() {
        return None;
    }
    let names = file_names(&loaded.workflow);
    let hint = hint(entry, names.iter().map(String::as_str));
    Some((*place, format!("unknown state {entry} in {}{hint}", shown(&loaded.workflow))))
}

/// Returns the mistakes of replies that nothing asks for.
fn unknown_keys(loaded: &LoadedCase, places: &WorkflowPlaces) -> Vec<CaseMistake> {
    let CaseReplies::Keys(keys) = &loaded.case.replies else { return Vec::new() };
    let unknown = keys.iter().filter(|(_, key, _)| !places.may_be_asked(key));
    let workflow = shown(&loaded.workflow);
    let mistake = |(at, key, _): &(SourcePlace, String, String)| {
        let hint = hint(key, places.asked());
        (*at, format!("nothing in {workflow} asks for the replies of {key}{hint}"))
    };
    unknown.map(mistake).collect()
}

/// Returns the mistakes of expected states that the workflow does not have.
fn unknown_states(loaded: &LoadedCase, places: &WorkflowPlaces) -> Vec<CaseMistake> {
    let workflow = shown(&loaded.workflow);
    let states = loaded.case.expected.iter().flat_map(|(_, expectation)| match expectation {
        Expectation::Path(_, _, states) => states.as_slice(),
        _ => &[],
    });
    let unknown = states.filter(|(_, state)| !places.has(state));
    let mistake = |(at, state): &(SourcePlace, String)| {
        let hint = hint(state, places.names());
        (*at, format!("unknown state {state} in {workflow}{hint}"))
    };
    unknown.map(mistake).collect()
}

/// The workflows of cases by their paths, each read and mapped once: its places, or the reason why there is none.
#[derive(Default)]
pub(super) struct MappedWorkflows(BTreeMap<PathBuf, Result<WorkflowPlaces, String>>);

impl MappedWorkflows {
    /// Returns the places of a case's workflow.
    ///
    /// # Errors
    /// [`Error`] if its folder cannot be opened.
    fn places(&mut self, loaded: &LoadedCase) -> Result<&Result<WorkflowPlaces, String>, Error> {
        Ok(match self.0.entry(loaded.entry_path()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let places = places(new.key())?;
                new.insert(places)
            }
        })
    }
}

/// Returns the places of all workflows of some cases, as far as they can be read.
pub(super) fn all_places<'case>(cases: impl Iterator<Item = &'case LoadedCase>) -> WorkflowPlaces {
    let paths: BTreeSet<PathBuf> = cases.map(LoadedCase::entry_path).collect();
    let mut all = WorkflowPlaces::default();
    for places in paths.iter().filter_map(|path| places(path).ok()?.ok()) {
        all.extend(places);
    }
    all
}

fn places(workflow: &Path) -> Result<Result<WorkflowPlaces, String>, Error> {
    let subject = InspectedWorkflow::open(workflow)?;
    let entry = match beginning(&subject.scope, subject.entry.as_ref()) {
        Ok(entry) => entry,
        Err(found) => {
            return Ok(Err(found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")));
        }
    };
    let graphs = subject.graphs(GraphProfile::Lenient);
    Ok(Ok(WorkflowPlaces::of(&entry, &subject.scope, &graphs)))
}

fn file_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

// The answers to the prompts of a case: a script, or a cassette beside the case.

/// Returns the mistakes of the files that answer.
fn reply_mistakes(loaded: &LoadedCase) -> Vec<CaseMistake> {
    match &loaded.case.replies {
        CaseReplies::Workflow | CaseReplies::Keys(_) => Vec::new(),
        CaseReplies::File(place, name) => script_mistakes(*place, &loaded.beside(name.as_str())),
        CaseReplies::Cassette(cassette) => {
            let why = cassette_dir(loaded, cassette).and_then(|dir| {
                let workflow = Workflow::open(&loaded.entry_path());
                let checked = workflow.and_then(|workflow| recording::check(&dir, &workflow));
                checked.map_err(|error| error.to_string())
            });
            why.err().into_iter().map(|why| (cassette.at, format!("cassette: {why}"))).collect()
        }
    }
}

fn script_mistakes(place: SourcePlace, path: &Path) -> Vec<CaseMistake> {
    let text = match plain_file::text(path) {
        Ok(text) => text,
        Err(error) => {
            let path = shown(path);
            let why =
                format!("the replies {path} cannot be read: {error}; name a file beside the case");
            return vec![(place, why)];
        }
    };
    let (_, errors) = ScriptedReplies::examine(&text);
    errors.all().iter().map(|error| (place, format!("{}:{error}", shown(path)))).collect()
}

/// Returns the directory of the cassette of a case.
fn cassette_dir(loaded: &LoadedCase, cassette: &CaseCassette) -> Result<PathBuf, String> {
    // A case comes with a workflow that may be untrusted: no link leads the reader elsewhere.
    folder_below(&loaded.beside(""), cassette.dir.as_str())
        .map_err(|why| format!("{why}; make one with `raymond record RUN -o DIR`"))
}

/// Returns the options of `raymond run` that name the source of the answers.
pub(super) fn arguments(loaded: &LoadedCase) -> Vec<OsString> {
    let scripted = vec!["--agent".into(), "scripted".into()];
    let CaseReplies::Cassette(cassette) = &loaded.case.replies else { return scripted };
    // It was there when the case was read; without a name the run is refused.
    let mut replay = OsString::from("replay:");
    replay.push(cassette_dir(loaded, cassette).unwrap_or_default());
    let mut arguments = vec!["--agent".into(), replay];
    arguments.extend(cassette.is_strict.then(|| "--strict-replay".into()));
    arguments
}

/// Returns the script of the case, if it is not the workflow's own.
pub(super) fn script(loaded: &LoadedCase) -> Result<Option<String>, String> {
    match &loaded.case.replies {
        CaseReplies::Workflow | CaseReplies::Cassette(_) => Ok(None),
        CaseReplies::File(_, name) => {
            let path = loaded.beside(name.as_str());
            let read = plain_file::text(&path);
            read.map(Some).map_err(|error| format!("{}: cannot read it: {error}", path.display()))
        }
        CaseReplies::Keys(keys) => {
            let mut replies = workflow_replies(loaded);
            replies.retain(|replied, _| !keys.iter().any(|(_, key, _)| key == replied));
            let keys = keys.iter().map(|(_, key, list)| (key, list));
            let line =
                |(key, list): (&String, &String)| format!("{}: {list}\n", serde_json::json!(key));
            Ok(Some(replies.iter().chain(keys).map(line).collect()))
        }
    }
}

/// Returns the keys of the workflow's own script, each with its list as JSON.
fn workflow_replies(loaded: &LoadedCase) -> BTreeMap<String, String> {
    let text = plain_file::text(&loaded.workflow.join(replies::FILE)).unwrap_or_default();
    replies::as_json(&text)
}

// The settings of a case as options of `raymond run`, and the options that it would refuse.

/// Returns the options of `raymond run` for the settings of a case.
pub(super) fn options(settings: &[CaseSetting]) -> Vec<OsString> {
    settings.iter().map(option).collect()
}

fn option(CaseSetting { name, value, .. }: &CaseSetting) -> OsString {
    let name = name.replace('_', "-");
    match value {
        Some(value) => format!("--{name}={value}").into(),
        None => format!("--{name}").into(),
    }
}

/// Returns the reason why `raymond run` would refuse an option.
pub(super) fn refused_option(setting: &CaseSetting) -> Option<String> {
    let arguments = ["raymond".into(), "run".into(), "flow".into(), option(setting)];
    let error = Cli::command().try_get_matches_from(arguments).err()?;
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    Some(first.trim_start_matches("error: ").to_owned())
}
