//! Checks a case against its workflow before anything runs: its first state, the states it names, its options.

use std::path::Path;

use super::case_answers;
use super::case_options::refused_option;
use super::discovery::{CaseMistake, LoadedCase, meant, shown};
use crate::cli::exit::Error;
use crate::cli::subject::InspectedWorkflow;
use crate::language::cases::{CaseReplies, Expectation};
use crate::language::graph::profile::GraphProfile;
use crate::language::places::WorkflowPlaces;
use crate::language::position::SourcePlace;
use crate::language::prompt::check::beginning;

/// Returns the mistakes of a case, each with its place.
///
/// # Errors
/// [`Error`] if the workflow cannot be opened.
pub(super) fn mistakes(loaded: &LoadedCase) -> Result<Vec<String>, Error> {
    if let Some(mistake) = unknown_entry(loaded) {
        return Ok(vec![placed(loaded, mistake)]);
    }
    let settings = loaded.case.settings.iter();
    let mut found: Vec<CaseMistake> =
        settings.filter_map(|one| Some((one.at, refused_option(one)?))).collect();
    match places(loaded)? {
        Err(why) => found.push((loaded.case.at, format!("this case has no workflow: {why}"))),
        Ok(places) => {
            found.extend(case_answers::mistakes(loaded));
            found.extend(unknown_keys(loaded, &places));
            found.extend(unknown_states(loaded, &places));
        }
    }
    Ok(found.into_iter().map(|mistake| placed(loaded, mistake)).collect())
}

fn placed(loaded: &LoadedCase, (at, message): CaseMistake) -> String {
    format!("{}:{}:{}: {message}", shown(&loaded.file), at.line, at.column)
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
        Expectation::Result(..)
        | Expectation::Agents(_)
        | Expectation::CostAtMost(_)
        | Expectation::TurnsAtMost(_)
        | Expectation::FileExists(..)
        | Expectation::FileText(..)
        | Expectation::Fact(..)
        | Expectation::Failure(_)
        | Expectation::Status(_)
        | Expectation::Exit(_)
        | Expectation::NoWarning => &[],
    });
    let unknown = states.filter(|(_, state)| !places.has(state));
    let mistake = |(at, state): &(SourcePlace, String)| {
        let hint = meant(state, places.names());
        (*at, format!("unknown state {state} in {workflow}{hint}"))
    };
    unknown.map(mistake).collect()
}

/// Returns the places of a case's workflow, or the reason why there is none.
///
/// # Errors
/// [`Error`] if its folder cannot be opened.
pub(super) fn places(loaded: &LoadedCase) -> Result<Result<WorkflowPlaces, String>, Error> {
    let subject = InspectedWorkflow::open(&loaded.entry_path())?;
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
