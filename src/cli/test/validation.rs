//! Checks a case against its workflow before anything runs: its first state, the states it names, its options.
//! `raymond test` and `raymond check` report the mistakes.
//!
//! The answers to the prompts of a case: a script, or a cassette beside the case.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::check::InspectedWorkflow;
use crate::cli::exit::Error;
use crate::cli::test::case_options::refused_option;
use crate::cli::test::discovery::{CaseMistake, LoadedCase, diagnostic, meant, shown};
use crate::language::cases::{CaseCassette, CaseReplies, Expectation};
use crate::language::coverage::WorkflowPlaces;
use crate::language::diagnostic::Diagnostic;
use crate::language::graph::profile::GraphProfile;
use crate::language::position::SourcePlace;
use crate::language::prompt::check::beginning;
use crate::language::replies::{self, ScriptedReplies};
use crate::plain_file;
use crate::runtime::{Workflow, replay};
use crate::world::scripted_files::folder_below;

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
        settings.filter_map(|one| Some((one.at, refused_option(one)?))).collect();
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
    let hint = meant(entry, names.iter().map(String::as_str));
    Some((*place, format!("unknown state {entry} in {}{hint}", shown(&loaded.workflow))))
}

/// Returns the mistakes of replies that nothing asks for.
fn unknown_keys(loaded: &LoadedCase, places: &WorkflowPlaces) -> Vec<CaseMistake> {
    let CaseReplies::Keys(keys) = &loaded.case.replies else { return Vec::new() };
    let unknown = keys.iter().filter(|(_, key, _)| !places.may_be_asked(key));
    let workflow = shown(&loaded.workflow);
    let mistake = |(at, key, _): &(SourcePlace, String, String)| {
        let hint = meant(key, places.asked());
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
        let hint = meant(state, places.names());
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
    for own in paths.iter().filter_map(|path| places(path).ok()?.ok()) {
        all.extend(own);
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

/// Returns the mistakes of the files that answer.
fn reply_mistakes(loaded: &LoadedCase) -> Vec<CaseMistake> {
    match &loaded.case.replies {
        CaseReplies::Workflow | CaseReplies::Keys(_) => Vec::new(),
        CaseReplies::File(place, name) => script_mistakes(*place, &loaded.beside(name.as_str())),
        CaseReplies::Cassette(cassette) => {
            let why = cassette_dir(loaded, cassette).and_then(|dir| {
                let workflow = Workflow::open(&loaded.entry_path());
                let checked = workflow.and_then(|workflow| replay::check(&dir, &workflow));
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
            let mut own = own_replies(loaded);
            own.retain(|own, _| !keys.iter().any(|(_, key, _)| key == own));
            let keys = keys.iter().map(|(_, key, list)| (key, list));
            let line =
                |(key, list): (&String, &String)| format!("{}: {list}\n", serde_json::json!(key));
            Ok(Some(own.iter().chain(keys).map(line).collect()))
        }
    }
}

/// Returns the keys of the workflow's own script, each with its list as JSON.
fn own_replies(loaded: &LoadedCase) -> BTreeMap<String, String> {
    let text = plain_file::text(&loaded.workflow.join(replies::FILE)).unwrap_or_default();
    replies::as_json(&text)
}
