//! Refuses a new run whose workflow has errors, before it costs anything.
//!
//! An error of `raymond check` is certain to fail once an agent comes there, so one anywhere the first state leads to
//! stops the run. Files that nothing leads to stop none.

use std::path::{Path, PathBuf};

use super::error::Error;
use super::graphs::GraphSetup;
use super::request::RunRequest;
use super::workflow::Workflow;
use super::workflow_errors::{RefusalScope, WorkflowErrors};
use crate::domain::id::StateName;
use crate::domain::settings::{AnswererKind, Settings};
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::manifest;
use crate::language::position::SourcePlace;
use crate::language::prompt::check::{CheckSubject, beginning, check};
use crate::language::prompt::step;
use crate::language::prompt::workflow_map::FolderGraph;
use crate::language::replies;
use crate::language::source::{self, WorkflowSource};
use crate::store::workflow::WorkflowDir;

/// The code of mistakes in `replies.yaml`. They stop only a run that takes its answers from there.
const SCRIPT: &str = "RF004";

/// Refuses a workflow that has an error in what its first state leads to.
///
/// # Errors
/// [`WorkflowErrors`] with all of them, [`Error::Io`] if the workspace cannot be opened.
pub(super) fn refuse_errors(
    workflow: &Workflow,
    request: &RunRequest,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Result<(), Error> {
    let Workflow { scope, entry, .. } = workflow;
    // The file of a program whose text was kept may be another one by now. Its own errors are found when it is read.
    let is_kept = |text: &String| scope.read(entry).is_ok_and(|now| now == *text);
    if request.no_check || request.program.as_ref().is_some_and(|text| !is_kept(text)) {
        return Ok(());
    }
    let scope = with_workspace(scope, settings)?;
    let is_script_read = settings.answerer == AnswererKind::Scripted;
    let mut errors = errors_from(&scope, entry, settings, vocabulary);
    errors.retain(|one| one.code != SCRIPT || is_script_read);
    let refusal = if errors.iter().any(|one| one.code == SCRIPT) {
        RefusalScope::WithRequired(replies::FILE)
    } else {
        RefusalScope::Workflow
    };
    match WorkflowErrors::new(&scope, entry, errors, refusal) {
        Some(found) => Err(found.into()),
        None => Ok(()),
    }
}

/// Replaces the first error of a first state that no run can begin with by all errors of its file.
pub(super) fn with_all_errors_of_entry(
    error: Error,
    workflow: &Workflow,
    settings: &Settings,
    graphs: &GraphSetup,
) -> Error {
    let Workflow { scope, entry, .. } = workflow;
    let Error::Workflow(step::Error::Document { .. }) = error else { return error };
    let Ok(scope) = with_workspace(scope, settings) else { return error };
    let path = scope.path(entry);
    let mut errors = errors_from(&scope, entry, settings, graphs.vocabulary());
    errors.retain(|one| one.path == path);
    WorkflowErrors::new(&scope, entry, errors, RefusalScope::FirstState).map_or(error, Error::from)
}

/// Returns all errors of a workflow whose manifest has some: without its manifest no run can begin.
pub(super) fn with_all_errors_of_manifest(
    error: Error,
    scope: &WorkflowDir,
    given: Option<&StateName>,
) -> Error {
    let Ok(entry) = beginning(scope, given) else { return error };
    let vocabulary = GraphVocabulary::default();
    let mut errors = errors_from(scope, &entry, &Settings::default(), &vocabulary);
    let manifest = StateName::parse(manifest::FILE).map(|file| scope.path(&file)).ok();
    // Whether the script is read is known only with the options that are given.
    errors.retain(|one| one.code != SCRIPT);
    let is_manifest = |one: &Diagnostic| Some(&one.path) == manifest.as_ref();
    if !errors.iter().any(is_manifest) {
        return error;
    }
    let refusal = RefusalScope::WithRequired(manifest::FILE);
    WorkflowErrors::new(scope, &entry, errors, refusal).map_or(error, Error::from)
}

fn with_workspace(scope: &WorkflowDir, settings: &Settings) -> Result<WorkflowDir, Error> {
    scope.clone().with_workspace(Path::new(&settings.cwd)).map_err(|error| Error::Io {
        doing: "open the workspace",
        path: PathBuf::from(&settings.cwd),
        error,
    })
}

/// Returns the errors that `raymond check` finds in the files that a first state leads to.
fn errors_from(
    scope: &WorkflowDir,
    entry: &StateName,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Vec<Diagnostic> {
    let variables: Vec<String> = settings.variables.keys().cloned().collect();
    let findings = check(CheckSubject {
        source: scope,
        entry: Some(entry),
        variables: &variables,
        consent: &settings.consent,
        graphs: &|name| read_graph(scope, Some(entry), vocabulary, GraphProfile::Lenient, name),
    });
    findings.diagnostics.into_iter().filter(Diagnostic::is_error).collect()
}

/// Reads a graph of a folder, whose first state is `entry`, or the usual one.
#[must_use]
pub fn read_graph(
    scope: &WorkflowDir,
    entry: Option<&StateName>,
    vocabulary: &GraphVocabulary,
    profile: GraphProfile,
    name: &StateName,
) -> FolderGraph {
    let text = match scope.read(name) {
        Ok(text) => text,
        Err(error) => return unreadable(scope, name, &error),
    };
    let is_first = entry == Some(name) || name.as_str() == manifest::GRAPH;
    let folder = scope.root().file_name().and_then(|name| name.to_str());
    let directory = folder.filter(|_| is_first);
    let reading = read(&scope.path(name), directory, &text, vocabulary, scope, profile);
    FolderGraph { program: reading.program, diagnostics: reading.diagnostics }
}

/// Returns a graph that only has the error of reading it. A missing one is reported where it is named.
fn unreadable(scope: &WorkflowDir, name: &StateName, error: &source::Error) -> FolderGraph {
    if matches!(error, source::Error::Missing { .. }) {
        return FolderGraph::default();
    }
    let SourcePlace { line, column } = error.place();
    let diagnostic = Diagnostic {
        path: scope.path(name),
        line,
        column,
        code: "WF001",
        severity: Severity::Error,
        message: error.reason(),
    };
    FolderGraph { program: None, diagnostics: vec![diagnostic] }
}
