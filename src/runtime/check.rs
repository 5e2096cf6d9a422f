//! Refuses a new run whose workflow has errors, before it costs anything.
//!
//! An error of `raymond check` is certain to fail once an agent comes there, so one anywhere the first state leads to
//! stops the run. Files that nothing leads to stop none.

use std::path::{Path, PathBuf};

use super::error::Error;
use super::request::RunRequest;
use super::workflow::Workflow;
use super::workflow_errors::WorkflowErrors;
use crate::domain::id::StateName;
use crate::domain::settings::Settings;
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::excerpt::excerpt_in;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::manifest;
use crate::language::position::SourcePlace;
use crate::language::prompt::check::{CheckSubject, check};
use crate::language::prompt::workflow_map::FolderGraph;
use crate::language::source::{self, WorkflowSource};
use crate::store::workflow::WorkflowDir;

/// The code of mistakes in `replies.yaml`. They are reported where the script is read, if it is.
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
    let scope = scope.clone().with_workspace(Path::new(&settings.cwd));
    let scope = scope.map_err(|error| Error::Io {
        doing: "open the workspace",
        path: PathBuf::from(&settings.cwd),
        error,
    })?;
    let variables: Vec<String> = settings.variables.keys().cloned().collect();
    let findings = check(CheckSubject {
        source: &scope,
        entry: Some(entry),
        variables: &variables,
        consent: &settings.consent,
        graphs: &|name| read_graph(&scope, Some(entry), vocabulary, GraphProfile::Lenient, name),
    });
    let is_refused = |one: &Diagnostic| one.is_error() && one.code != SCRIPT;
    let errors: Vec<Diagnostic> = findings.diagnostics.into_iter().filter(is_refused).collect();
    if errors.is_empty() {
        return Ok(());
    }
    let excerpts = errors.iter().map(|one| excerpt_in(one, &scope)).collect();
    Err(WorkflowErrors { entry: scope.path(entry), errors, excerpts }.into())
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
