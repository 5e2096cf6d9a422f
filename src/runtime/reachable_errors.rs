//! The errors of `raymond check` in the files that a first state leads to.

use std::path::Path;

use super::error::Error;
use crate::domain::id::StateName;
use crate::domain::settings::Settings;
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::read::read;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::manifest;
use crate::language::position::SourcePlace;
use crate::language::prompt::check::{CheckSubject, beginning, check};
use crate::language::prompt::workflow_map::FolderGraph;
use crate::language::source::{self, WorkflowSource};
use crate::runtime::error::{RefusalScope, WorkflowErrors};
use crate::store::workflow::WorkflowDir;

/// The code of mistakes in `raymond.yaml`, or in a file that should have this name.
pub(super) const MANIFEST: &str = "RF003";

/// The code of mistakes in `replies.yaml`. They stop only a run that takes its answers from there.
pub(super) const SCRIPT: &str = "RF004";

/// The code of a reply in `replies.yaml` for a state that does not exist.
pub(super) const UNKNOWN_STATE: &str = "RF005";

/// Returns the errors that `raymond check` finds in the files that a first state leads to.
pub(super) fn errors_from(
    scope: &WorkflowDir,
    entry: &StateName,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Vec<Diagnostic> {
    let mut found = found_from(scope, entry, settings, vocabulary);
    found.retain(Diagnostic::is_error);
    found
}

/// Returns all that `raymond check` finds there.
pub(super) fn found_from(
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
        graphs: &|source, name| {
            read_graph((scope, source), Some(entry), vocabulary, GraphProfile::Lenient, name)
        },
    });
    findings.diagnostics
}

/// Reads a graph of a folder whose first state is `entry`, or the usual one, or of another folder that is entered
/// from there.
pub fn read_graph(
    (scope, source): (&WorkflowDir, &dyn WorkflowSource),
    entry: Option<&StateName>,
    vocabulary: &GraphVocabulary,
    profile: GraphProfile,
    name: &StateName,
) -> FolderGraph {
    let text = match source.read(name) {
        Ok(text) => text,
        Err(error) => return unreadable(source, name, &error),
    };
    let path = source.path(name);
    let is_own = path == scope.path(name);
    let is_first = (is_own && entry == Some(name)) || name.as_str() == manifest::GRAPH;
    let folder = if is_own { Some(scope.root()) } else { Path::new(&path).parent() };
    let directory = folder.and_then(|folder| folder.file_name()?.to_str()).filter(|_| is_first);
    let reading = read(&path, directory, &text, vocabulary, source, profile);
    FolderGraph { graph: reading.graph, diagnostics: reading.diagnostics }
}

/// Returns a graph that only has the error of reading it. A missing one is reported where it is named.
fn unreadable(source: &dyn WorkflowSource, name: &StateName, error: &source::Error) -> FolderGraph {
    if matches!(error, source::Error::Missing { .. }) {
        return FolderGraph::default();
    }
    let SourcePlace { line, column } = error.place();
    let diagnostic = Diagnostic {
        path: source.path(name),
        line,
        column,
        code: "WF001",
        severity: Severity::Error,
        message: error.reason(),
    };
    FolderGraph { graph: None, diagnostics: vec![diagnostic] }
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
