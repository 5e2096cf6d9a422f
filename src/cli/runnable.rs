//! `raymond` without arguments: what can be run here, each workflow with its description.

use std::path::Path;

use super::output;
use super::table::{self, TableCell};
use crate::domain::id::StateKind;
use crate::domain::tool_call::flat;
use crate::language::graph;
use crate::language::graph::profile::GraphProfile;
use crate::language::graph::vocabulary::GraphVocabulary;
use crate::language::prompt::document;
use crate::language::source::WorkflowSource as _;
use crate::language::{manifest, program};
use crate::plugin::styled::TextTone;
use crate::runtime::Workflow;
use crate::store::dataspace::Dataspace;
use crate::store::layout::RunsRoot;

/// The maximum length of a description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 200;

/// The maximum number of files and folders that are looked at.
const MAX_ENTRIES: usize = 1_000;

/// Something that `raymond run` takes.
#[derive(Debug, PartialEq, Eq)]
struct Runnable {
    target: String,
    description: String,
}

/// Prints what can be run in the current directory. Returns whether there is anything.
pub(super) fn show(root: &RunsRoot) -> bool {
    let found = all(Path::new("."), root);
    if found.is_empty() {
        return false;
    }
    let row = |runnable: &Runnable| {
        let description = TableCell::of(TextTone::Faint, &runnable.description);
        vec![runnable.target.clone().into(), description]
    };
    let rows: Vec<Vec<TableCell>> = found.iter().map(row).collect();
    let _ = table::print(table::lines(&rows));
    output::tell("run one: raymond run NAME; `raymond help` shows the commands");
    true
}

/// Returns the workflows of a folder and of those in it, and the programs that were defined.
fn all(folder: &Path, root: &RunsRoot) -> Vec<Runnable> {
    let mut found = Vec::new();
    if is_workflow(folder) {
        found.extend(at(folder, "."));
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let path = folder.join(name);
        let is_program =
            Path::new(name).extension().is_some_and(|end| end == "lisp" || end == "duet");
        let is_first = FIRST_STATES.contains(&name.as_str());
        if (path.is_dir() && is_workflow(&path)) || (is_program && !is_first) {
            found.extend(at(&path, name));
        }
    }
    let defined = Dataspace::of(root).all_defined().map(|listing| listing.defined);
    found.extend(defined.unwrap_or_default().into_iter().map(|program| Runnable {
        description: format!("defined in {}", program.file.display()),
        target: program.name,
    }));
    found
}

/// The files with which a workflow begins.
pub(super) const FIRST_STATES: [&str; 3] =
    [manifest::FIRST_STATE, manifest::GRAPH, manifest::PROGRAM];

/// Returns whether a folder is a workflow.
pub(super) fn is_workflow(folder: &Path) -> bool {
    FIRST_STATES.iter().chain(&[manifest::FILE]).any(|name| folder.join(name).is_file())
}

/// Returns the workflow at a path, if it is one.
fn at(path: &Path, target: &str) -> Option<Runnable> {
    let workflow = Workflow::open(path).ok()?;
    let description = flat(&description(&workflow), MAX_DESCRIPTION_BYTES);
    Some(Runnable { target: target.to_owned(), description })
}

/// Returns the description of a workflow: that of its manifest or its first state, or the first line of a prompt.
fn description(workflow: &Workflow) -> String {
    let Workflow { scope, entry, manifest, .. } = workflow;
    if let Some(description) = &manifest.description {
        return description.clone();
    }
    let Ok(text) = scope.read(entry) else { return String::new() };
    let path = scope.path(entry);
    let description = match StateKind::of(entry) {
        Some(StateKind::Graph) => {
            let vocabulary = GraphVocabulary::default();
            let profile = GraphProfile::Lenient;
            let reading = graph::read::read(&path, None, &text, &vocabulary, scope, profile);
            reading.graph.and_then(|graph| graph.description)
        }
        Some(StateKind::Program) => {
            let reading = program::read::read(&path, &text, scope);
            reading.program.and_then(|program| program.metadata.description)
        }
        Some(StateKind::Script) => None,
        Some(StateKind::Prompt) | None => {
            let body = document::examine(&text).document.body;
            body.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
        }
    };
    description.unwrap_or_default()
}
