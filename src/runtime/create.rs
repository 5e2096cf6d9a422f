//! Makes a new run, once everything that can be checked beforehand has been.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::answerer::runner_for;
use super::companions;
use super::error::Error;
use super::graphs::Graphs;
use super::place::directory;
use super::supervise::Prepared;
use super::workflow::Workflow;
use crate::actor::clock::now;
use crate::actor::supervisor::Start;
use crate::domain::agent::Terms;
use crate::domain::event::{Event, Record, RunStarted};
use crate::domain::id::{AgentId, RunId, SessionId, StateName};
use crate::domain::run::STATE_VERSION;
use crate::domain::settings::Settings;
use crate::domain::transition::Variables;
use crate::language::diagnostic::Diagnostic;
use crate::language::graph::answers;
use crate::language::graph::read::{Profile, read};
use crate::language::prompt::step::{Position, step};
use crate::language::prompt::survey::survey;
use crate::language::source::Source;
use crate::process::command::Marker;
use crate::store::layout::Root;
use crate::store::run_store::RunStore;

/// What is said about a new run besides its settings.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Its id; one is chosen if absent.
    pub id: Option<RunId>,
    /// The text for `{{input}}` in its first state.
    pub input: Option<String>,
}

/// Makes a new run from a workflow, once everything that can be checked has been.
///
/// # Errors
/// [`Error`] if anything about it is wrong; nothing is left of it then.
pub fn create(
    root: &Root,
    workflow: &Workflow,
    request: &Request,
    settings: Settings,
    graphs: Graphs,
) -> Result<Prepared, Error> {
    let Workflow { scope, entry, .. } = workflow;
    let workflow_id = request.id.clone().unwrap_or_else(|| new_id(scope.root(), entry));
    let variables: Variables =
        [("input".to_owned(), request.input.clone().unwrap_or_default())].into();
    let first = if entry.is_graph() {
        first_graph(workflow, &graphs, &settings)?
    } else {
        first_prompt(workflow, &workflow_id, request, &settings)?
    };
    let First { terms, warnings, asks } = first;
    if asks {
        runner_for(&settings, scope, PathBuf::new(), root, &workflow_id)?;
    }
    companions::check(
        &settings,
        &Marker { run: workflow_id.clone(), dir: root.path().to_owned() },
    )?;
    let started = RunStarted {
        version: STATE_VERSION,
        workflow_id,
        scope_dir: directory(scope.root())?,
        entry: entry.clone(),
        terms,
        session: SessionId::new(&Uuid::new_v4().to_string()),
        variables,
        settings,
    };
    let first = Record { seq: 1, at: now(), event: Event::RunStarted(Box::new(started)) };
    let (store, run) = RunStore::create(root, &first)?;
    Ok(Prepared { store, run, start: Start::New(Box::new(first)), warnings, graphs })
}

/// What the first state says.
struct First {
    terms: Terms,
    warnings: Vec<String>,
    /// Whether it asks Claude Code at all.
    asks: bool,
}

fn first_prompt(
    workflow: &Workflow,
    id: &RunId,
    request: &Request,
    settings: &Settings,
) -> Result<First, Error> {
    let Workflow { scope, entry, .. } = workflow;
    let position = Position {
        workflow: id.clone(),
        agent: AgentId::main(),
        state: entry.clone(),
        variables: Variables::new(),
        run_variables: settings.variables.clone(),
    };
    let ask = step(&position, scope)?;
    for (node, text) in ahead(settings) {
        if let Some(state) = StateName::parse(node).ok().filter(StateName::is_prompt) {
            scope.check(&state).map_err(|error| unasked(node, text, error.to_string()))?;
        }
    }
    let mut warnings = survey(entry, scope);
    let missed = ask.unfilled.iter().find(|one| one.name == "input" && request.input.is_none());
    warnings.extend(
        missed.map(|missed| {
            format!("{}: there is no --input, so {{{{input}}}} is empty", missed.place)
        }),
    );
    Ok(First { terms: ask.terms, warnings, asks: true })
}

fn first_graph(workflow: &Workflow, graphs: &Graphs, settings: &Settings) -> Result<First, Error> {
    let Workflow { scope, entry, .. } = workflow;
    let source = scope.clone().with_workspace(Path::new(&settings.cwd));
    let source = source.map_err(|error| Error::Io {
        doing: "open the workspace",
        path: PathBuf::from(&settings.cwd),
        error,
    })?;
    let text = source.read(entry).map_err(crate::language::prompt::step::Error::from)?;
    let folder = scope.root().file_name().and_then(|name| name.to_str());
    let path = source.path(entry);
    let reading = read(&path, folder, &text, graphs.vocabulary(), &source, Profile::Lenient);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        reading.diagnostics.into_iter().partition(Diagnostic::is_error);
    let Some(program) = reading.program.filter(|_| errors.is_empty()) else {
        return Err(Error::Graph { diagnostics: errors });
    };
    for (node, text) in ahead(settings) {
        answers::check(&program, node, text).map_err(|why| unasked(node, text, why))?;
    }
    let warnings = warnings.iter().map(ToString::to_string).collect();
    Ok(First { terms: Terms::default(), warnings, asks: program.asks_claude() })
}

/// The answers that were given ahead of time, each with the name it is asked under.
fn ahead(settings: &Settings) -> impl Iterator<Item = (&str, &str)> {
    let answers = settings.answers.iter();
    answers.flat_map(|(node, texts)| texts.iter().map(|text| (node.as_str(), text.as_str())))
}

fn unasked(node: &str, text: &str, why: String) -> Error {
    Error::Answer { node: node.to_owned(), text: text.to_owned(), why }
}

/// `tour-20260115-143022-1a2b` for `workflows/tour/START.md`.
fn new_id(scope: &Path, entry: &StateName) -> RunId {
    let folder = scope.file_name().and_then(|name| name.to_str()).unwrap_or("run");
    let base =
        if ["START.md", "workflow.yaml"].contains(&entry.as_str()) { folder } else { entry.stem() };
    let plain: String = base
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(32)
        .collect();
    let name = if plain.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        plain
    } else {
        format!("run{plain}")
    };
    let time = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let unique = &Uuid::new_v4().simple().to_string()[..4];
    RunId::parse(&format!("{name}-{time}-{unique}"))
        .unwrap_or_else(|_| new_id(Path::new("run"), entry))
}
