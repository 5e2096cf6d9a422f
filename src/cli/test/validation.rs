//! Checks a case against its workflow before anything runs: its first state, the states it names, its options.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;

use super::discovery::{LoadedCase, meant, shown};
use crate::cli::args::Cli;
use crate::cli::args::cases::TrustSwitches;
use crate::cli::exit::Error;
use crate::cli::person;
use crate::cli::subject::InspectedWorkflow;
use crate::language::cases::{CaseReplies, CaseSetting, Expectation};
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::places::WorkflowPlaces;
use crate::language::position::SourcePlace;
use crate::language::prompt::check::beginning;
use crate::language::replies::{self, ScriptedReplies};
use crate::runtime::trust::examine;
use crate::runtime::{Workflow, directories, settings_of};
use crate::store::layout::RunsRoot;
use crate::store::trust::FolderTrust;

/// Returns the mistakes of a case, each with its place.
///
/// # Errors
/// [`Error`] if the workflow cannot be opened.
pub(super) fn mistakes(loaded: &LoadedCase) -> Result<Vec<String>, Error> {
    let case = &loaded.case;
    let mut found = Vec::new();
    let at = |at: &SourcePlace, message: &str| {
        format!("{}:{}:{}: {message}", shown(&loaded.file), at.line, at.column)
    };
    if let Some((place, entry)) = &case.entry
        && !loaded.workflow.join(entry).exists()
    {
        let names = file_names(&loaded.workflow);
        let hint = meant(entry, names.iter().map(String::as_str));
        found.push(at(
            place,
            &format!("there is no state {entry} in {}{hint}", shown(&loaded.workflow)),
        ));
        return Ok(found);
    }
    for setting in &case.settings {
        if let Some(why) = refused_option(setting) {
            found.push(at(&setting.at, &why));
        }
    }
    let places = match places(loaded)? {
        Ok(places) => places,
        Err(why) => {
            found.push(at(&case.at, &format!("this case has no workflow: {why}")));
            return Ok(found);
        }
    };
    let mut keys: Vec<(SourcePlace, String)> = Vec::new();
    match &case.replies {
        CaseReplies::Workflow => {}
        CaseReplies::File(place, name) => {
            let path = loaded.beside(name.as_str());
            match std::fs::read_to_string(&path) {
                Err(error) => found.push(at(
                    place,
                    &format!(
                        "the replies {} cannot be read: {error}; name a file beside the case",
                        shown(&path)
                    ),
                )),
                Ok(text) => {
                    let (_, errors) = ScriptedReplies::examine(&text);
                    found.extend(
                        errors.all().iter().map(|error| format!("{}:{error}", shown(&path))),
                    );
                }
            }
        }
        CaseReplies::Keys(own) => keys.extend(own.iter().map(|(at, key, _)| (*at, key.clone()))),
    }
    for (place, key) in keys.iter().filter(|(_, key)| !places.may_be_asked(key)) {
        let hint = meant(key, places.asked());
        found.push(at(
            place,
            &format!("nothing in {} asks for the replies of {key}{hint}", shown(&loaded.workflow)),
        ));
    }
    for (_, expectation) in &case.expected {
        let Expectation::Path(_, _, states) = expectation else { continue };
        for (place, state) in states.iter().filter(|(_, state)| !places.has(state)) {
            let hint = meant(state, places.names());
            found.push(at(
                place,
                &format!("there is no state {state} in {}{hint}", shown(&loaded.workflow)),
            ));
        }
    }
    Ok(found)
}

/// Returns the places of a case's workflow, or the reason why there is none.
///
/// # Errors
/// [`Error`] if its folder cannot be opened.
pub(super) fn places(loaded: &LoadedCase) -> Result<Result<WorkflowPlaces, String>, Error> {
    let entry = loaded.case.entry.as_ref().map_or("", |(_, entry)| entry);
    let path = loaded.workflow.join(entry);
    let subject = InspectedWorkflow::open(if entry.is_empty() { &loaded.workflow } else { &path })?;
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
fn refused_option(setting: &CaseSetting) -> Option<String> {
    let arguments = ["raymond".into(), "run".into(), "flow".into(), option(setting)];
    let error = Cli::command().try_get_matches_from(arguments).err()?;
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    Some(first.trim_start_matches("error: ").to_owned())
}

/// Returns whether the workflow of a case is trusted: for this test, or as it is now.
///
/// # Errors
/// [`Error`] if it cannot be examined.
pub(super) fn is_trusted(loaded: &LoadedCase, given: &TrustSwitches) -> Result<bool, Error> {
    if person::trust_origin(&given.consent()).is_some() {
        return Ok(true);
    }
    let entry = loaded.case.entry.as_ref().map_or("", |(_, entry)| entry);
    let path = loaded.workflow.join(entry);
    let workflow = Workflow::open(if entry.is_empty() { &loaded.workflow } else { &path })?;
    let root = RunsRoot::new(std::env::temp_dir().join("raymond-test"));
    let settings = settings_of(&workflow);
    let examined = examine(&root, &workflow, &settings, &GraphVocabulary::default(), None)?;
    Ok(examined.trust(&directories::user_state()?)? == FolderTrust::Trusted)
}

/// Returns the keys of the workflow's own script, each with its list as JSON.
pub(super) fn own_replies(loaded: &LoadedCase) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(loaded.workflow.join(replies::FILE)).unwrap_or_default();
    replies::as_json(&text)
}
