//! Refuses a new run whose workflow has errors, before it costs anything; and warns of missing programs.
//!
//! An error of `raymond check` is certain to fail once an agent comes there, so one anywhere the first state leads to
//! stops the run. Files that nothing leads to stop none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::graphs::GraphSetup;
use super::request::RunRequest;
use super::workflow::Workflow;
use crate::domain::id::{Folder, StateName};
use crate::domain::settings::{AnswererKind, Settings};
use crate::language::diagnostic::{Diagnostic, Severity};
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::manifest;
use crate::language::prompt::scopes::STARTS;
use crate::language::prompt::script::programs;
use crate::language::prompt::step;
use crate::language::replies;
use crate::language::source::WorkflowSource;
use crate::language::turn_options::HINT_CODES;
use crate::plain_file;
use crate::process::command::locate;
use crate::runtime::error::{RefusalScope, WorkflowErrors};
use crate::runtime::workflow::{
    MANIFEST, SCRIPT, UNKNOWN_STATE, errors_from, found_from, manifest_of,
};
use crate::store::workflow::WorkflowDir;

/// The variables that send requests to a gateway, which may know other models.
const GATEWAYS: [&str; 4] = [
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// Returns whether the environment names a gateway.
pub fn has_gateway() -> bool {
    GATEWAYS.iter().any(|name| std::env::var_os(name).is_some())
}

/// Returns a warning if what a script needs is not installed; `found` is the note that a state is a script.
pub fn missing_program(found: &Diagnostic) -> Option<Diagnostic> {
    if found.code != "RF603" {
        return None;
    }
    let text = plain_file::text(Path::new(&found.path)).ok()?;
    let name = StateName::parse(found.path.rsplit('/').next()?).ok()?;
    let search_path = std::env::var_os("PATH");
    let is_missing = |program: &String| locate(program, search_path.as_deref()).is_none();
    let program = programs(&name, &text).into_iter().find(is_missing)?;
    Some(Diagnostic {
        code: "RF408",
        severity: Severity::Warning,
        message: format!(
            "the program {program}, which executes this script, is not installed here; install it, or correct its name"
        ),
        ..found.clone()
    })
}

/// Returns a warning if a manifest lies beside a workflow's folder, and belongs to no other workflow.
pub fn stray_manifest(folder: &Path) -> Option<Diagnostic> {
    let above = folder.parent()?;
    let begins = |name: &&str| above.join(name).is_file();
    let is_workflow = STARTS.iter().chain(&[manifest::GRAPH, manifest::PROGRAM]).any(begins);
    let path = above.join(manifest::FILE);
    let found = manifest::examine(&plain_file::text(&path).ok()?).manifest;
    let is_stray = !is_workflow && found.entry.is_none();
    is_stray.then(|| Diagnostic {
        path: path.display().to_string(),
        line: 1,
        column: 1,
        code: "RF003",
        severity: Severity::Warning,
        message: format!("this file has no effect; move it into {}", folder.display()),
    })
}

/// Refuses a workflow that has an error in what its first state leads to. Returns the warnings about scripted replies
/// or about names of models, whichever answer the run.
///
/// # Errors
/// [`WorkflowErrors`] with all of them, [`Error::Io`] if the workspace cannot be opened.
pub(super) fn refuse_errors(
    workflow: &Workflow,
    request: &RunRequest,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Result<Vec<String>, Error> {
    let Workflow { scope, entry, .. } = workflow;
    // The file of a program whose text was kept may be another one by now. Its own errors are found when it is read.
    let is_kept = |text: &String| scope.read(entry).is_ok_and(|now| now == *text);
    if request.no_check || workflow.program.as_ref().is_some_and(|text| !is_kept(text)) {
        return Ok(Vec::new());
    }
    refuse_errors_from(scope, entry, RefusalScope::Workflow, settings, vocabulary)
}

/// Refuses the files of a workflow if one has an error that agents come to from these states, each in a folder below
/// the root of their run.
///
/// # Errors
/// [`WorkflowErrors`] with those of the first such state, [`Error`] if a folder cannot be read.
pub(super) fn refuse_errors_of_states(
    root: &WorkflowDir,
    states: impl IntoIterator<Item = (Option<Folder>, StateName)>,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Result<(), Error> {
    for (folder, state) in states.into_iter().collect::<BTreeSet<_>>() {
        let scope = root.at(folder.as_ref()).map_err(step::Error::from)?;
        manifest_of(&scope)?;
        refuse_errors_from(&scope, &state, RefusalScope::Continued, settings, vocabulary)?;
    }
    Ok(())
}

fn refuse_errors_from(
    scope: &WorkflowDir,
    entry: &StateName,
    refusal: RefusalScope,
    settings: &Settings,
    vocabulary: &GraphVocabulary,
) -> Result<Vec<String>, Error> {
    let scope = with_workspace(scope, settings)?;
    let is_script_read = settings.answerer == AnswererKind::Scripted;
    let (mut errors, mut warnings): (Vec<_>, Vec<_>) =
        found_from(&scope, entry, settings, vocabulary).into_iter().partition(Diagnostic::is_error);
    warnings.retain(|diagnostic| match settings.answerer {
        _ if diagnostic.code == MANIFEST => true,
        AnswererKind::Scripted => [UNKNOWN_STATE, SCRIPT].contains(&diagnostic.code),
        AnswererKind::Claude => HINT_CODES.contains(&diagnostic.code) && !has_gateway(),
        AnswererKind::Replay => false,
    });
    errors.retain(|diagnostic| diagnostic.code != SCRIPT || is_script_read);
    let is_script_wrong = errors.iter().any(|diagnostic| diagnostic.code == SCRIPT);
    let refusal = match refusal {
        RefusalScope::Workflow if is_script_wrong => RefusalScope::WithRequired(replies::FILE),
        RefusalScope::Continued if is_script_wrong => RefusalScope::ContinuedWith(replies::FILE),
        other => other,
    };
    match WorkflowErrors::new(&scope, entry, errors, refusal) {
        Some(found) => Err(found.into()),
        None => Ok(warnings.iter().map(Diagnostic::without_severity).collect()),
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
    errors.retain(|diagnostic| diagnostic.path == path);
    WorkflowErrors::new(&scope, entry, errors, RefusalScope::FirstState).map_or(error, Error::from)
}

/// Returns the files of a workflow with the workspace of its run.
pub(super) fn with_workspace(
    scope: &WorkflowDir,
    settings: &Settings,
) -> Result<WorkflowDir, Error> {
    scope.clone().with_workspace(Path::new(&settings.cwd)).map_err(|error| Error::Io {
        doing: "open the workspace",
        path: PathBuf::from(&settings.cwd),
        error,
    })
}
