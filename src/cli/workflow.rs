//! `raymond workflow`: defines, starts, watches and lists programs.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::args::RunArgs;
use super::exit::{CliExitCode, Error};
use super::{output, run};
use crate::actor::context::now;
use crate::cli::args::workflows::{DefineArgs, WorkflowCommand};
use crate::cli::args::{AllRunsArgs, SingleRunArgs};
use crate::cli::candidates::with_dir;
use crate::cli::list::all;
use crate::cli::log::{follow, json_line};
use crate::cli::summary::ClosingPlace;
use crate::cli::table::TableCell;
use crate::cli::target::defined_workflow;
use crate::cli::{settings, summary, table};
use crate::domain::agent::Agent;
use crate::domain::event::{Event, ProgramAdvanced, Record};
use crate::domain::fact::{Fact, FactChange};
use crate::domain::graph_execution::{ProgramExecution, RequestBody, RequestStatus};
use crate::domain::id::{AgentId, RunId};
use crate::domain::money::Usd;
use crate::domain::tool_call::{one_line, printable, printable_line};
use crate::language::diagnostic::Diagnostic;
use crate::language::program::interpreter::DEFINITION_LABEL;
use crate::language::program::read::read;
use crate::language::prompt::step;
use crate::language::source::WorkflowSource;
use crate::plugin::sentence::{moment, sentence};
use crate::runtime;
use crate::runtime::{Workflow, directories};
use crate::store::capture::WorkflowCapture;
use crate::store::dataspace::{Dataspace, DefinedProgram, FactStatement, ProgramListing};
use crate::store::record;
use crate::store::view::{RunView, load_view};

/// Runs `raymond workflow`.
///
/// # Errors
/// [`Error`] of its commands.
pub fn workflow(command: WorkflowCommand) -> Result<CliExitCode, Error> {
    match command {
        WorkflowCommand::Define(args) => define(&args),
        WorkflowCommand::Start(args) => begin(&args),
        WorkflowCommand::Watch(args) => watch(&args),
        WorkflowCommand::List(args) => list(&args),
    }
}

fn define(args: &DefineArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    let Workflow { scope, entry, .. } = program_at(&args.file)?;
    let text =
        scope.read(&entry).map_err(|error| runtime::Error::from(step::Error::from(error)))?;
    let reading = read(&scope.path(&entry), &text, &scope);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        reading.diagnostics.into_iter().partition(Diagnostic::is_error);
    let Some(program) = reading.program.filter(|_| errors.is_empty()) else {
        return Err(runtime::Error::Graph { diagnostics: errors, text }.into());
    };
    for warning in &warnings {
        output::warn(&warning.without_severity());
    }
    let file = scope.root().join(entry.as_str());
    let file = std::path::absolute(&file).unwrap_or(file);
    let capture = WorkflowCapture::of(scope.root(), root.path())?;
    if let Some(warning) = capture.warning() {
        output::warn(&warning);
    }
    let defined = DefinedProgram {
        name: program.name.to_string(),
        label: program.metadata.label,
        file,
        program: program.hash.to_string(),
        text,
        at: now(),
        pins: Some(capture.pins()),
    };
    let space = Dataspace::of(&root).with_key(&directories::user_state()?.key()?);
    space.define(&defined, &capture)?;
    let (key, value, source) = (&defined.name, &defined.program, "workflow define");
    let at = defined.at;
    space.assert(FactStatement { label: DEFINITION_LABEL, key, value, source, at }, None)?;
    if args.json {
        let DefinedProgram { name, file, program, .. } = &defined;
        return output::print_json(&json!({ "name": name, "file": file, "program": program }));
    }
    let name = printable_line(&defined.name);
    output::print(&format!("{name} is defined; start it: raymond workflow start {name}\n"))
}

fn begin(args: &RunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.real_root()?;
    if args.dry_run {
        return run::dry_run(args, &root);
    }
    let path = Path::new(&args.target);
    let space = Dataspace::of(&root).with_key(&directories::user_state()?.key()?);
    let defined = space.defined(&args.target)?;
    let workflow = match (path.symlink_metadata().is_ok(), defined) {
        (true, Some(defined)) => {
            return Err(Error::Usage(format!(
                "{0} is both a path and a defined program: `raymond workflow start ./{0}` starts the file at that path; remove or rename it to start the defined one, of {1}",
                args.target,
                defined.file.display()
            )));
        }
        (true, None) => program_at(path)?,
        (false, Some(defined)) => defined_workflow(&space, defined)?,
        (false, None) => return Err(Error::Usage(unknown(&space, &args.target))),
    };
    run::take_off(args, &root, run::create(args, &root, &workflow)?)
}

/// Opens the program in a file.
fn program_at(path: &Path) -> Result<Workflow, Error> {
    let workflow = Workflow::open(path)?;
    if workflow.entry.is_program() {
        return Ok(workflow);
    }
    Err(Error::Usage(format!(
        "{} is not a program: name a .lisp file; `raymond run` and `raymond start` run other workflows",
        path.display()
    )))
}

/// Returns the error text for an unknown program, with a similar name if there is any.
fn unknown(space: &Dataspace, name: &str) -> String {
    let all = space.all_defined().unwrap_or_default();
    let names = all.defined.iter().map(|defined| defined.name.as_str());
    let hint = match crate::language::hint::closest(name, names) {
        Some(similar) => format!("did you mean {similar}?"),
        None => "define one with `raymond workflow define FILE`, or name a file".to_owned(),
    };
    format!("{name}: there is no such file, and no program of that name is defined; {hint}")
}

// `raymond workflow list`: the runs of programs; as JSON also the programs that were defined.

fn list(args: &AllRunsArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let ProgramListing { defined, warnings } = Dataspace::of(&root).all_defined()?;
    for warning in &warnings {
        output::warn(warning);
    }
    let views = all(&root)?.into_iter().filter_map(|run| run.view.ok());
    let runs: Vec<ProgramRunRow> =
        views.filter(|view| !view.run.definitions.is_empty()).map(ProgramRunRow::of).collect();
    if args.json {
        return output::print_json(&json!({
            "definitions": defined.iter().map(definition).collect::<Vec<_>>(),
            "runs": runs,
        }));
    }
    let head = ["run", "status", "program", "state", ""];
    let shown = table::print(table::with_head(&head, runs.iter().flat_map(ProgramRunRow::cells)))?;
    if runs.is_empty() {
        output::tell("no runs of programs; start one: raymond workflow start FILE --id NAME");
    }
    output::tell("`raymond` lists the defined programs");
    Ok(shown)
}

fn definition(defined: &DefinedProgram) -> serde_json::Value {
    let DefinedProgram { name, label, file, program, at, .. } = defined;
    json!({ "name": name, "label": label, "file": file, "program": program, "at": at })
}

/// A run of programs.
#[derive(Serialize)]
struct ProgramRunRow {
    run: RunId,
    status: &'static str,
    programs: Vec<String>,
    executions: Vec<ProgramExecutionRow>,
    total_cost_usd: Usd,
}

/// A live execution of a program.
#[derive(Serialize)]
struct ProgramExecutionRow {
    agent: AgentId,
    name: String,
    label: String,
    state: String,
    awaiting: Option<String>,
}

impl ProgramRunRow {
    fn of(view: RunView) -> Self {
        let status = table::word(&view);
        let RunView { run, .. } = view;
        let execution = |agent: &Agent| {
            let ProgramExecution { name, label, position, .. } = agent.program()?;
            Some(ProgramExecutionRow {
                agent: agent.id.clone(),
                name: name.clone(),
                label: label.clone(),
                state: position.current.to_string(),
                awaiting: position.wait.as_ref().map(|wait| wait.awaiting.clone()),
            })
        };
        Self {
            status,
            programs: run.definitions.values().map(|program| program.name.clone()).collect(),
            executions: run.agents.values().filter_map(execution).collect(),
            total_cost_usd: run.total_cost_usd,
            run: run.workflow_id,
        }
    }

    /// Returns a row for each live execution; a single row without any.
    fn cells(&self) -> Vec<Vec<TableCell>> {
        let row = |program: &str, state: &str, waits: String| -> Vec<TableCell> {
            vec![
                self.run.to_string().into(),
                TableCell::of(table::tone(self.status), self.status),
                program.to_owned().into(),
                state.to_owned().into(),
                waits.into(),
            ]
        };
        if self.executions.is_empty() {
            return vec![row(&self.programs.join(", "), "", String::new())];
        }
        let of_execution = |execution: &ProgramExecutionRow| {
            let awaiting = execution.awaiting.as_ref();
            let waits = awaiting.map(|awaiting| format!("waits for {}", one_line(awaiting)));
            row(&execution.name, &execution.state, waits.unwrap_or_default())
        };
        self.executions.iter().map(of_execution).collect()
    }
}

// `raymond workflow watch`: the records of programs as forms, with requests and answers.

fn watch(args: &SingleRunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let id = settings::chosen(&args.named, &root)?;
    let goes_on = follow(&root, &id, true, |line| {
        let record = record::decode(line)?;
        if args.json {
            return Ok(is_shown(&record.event).then(|| json_line(&record)));
        }
        Ok(shown(&record).map(|text| printable(&format!("{}  {text}", moment(record.at)))))
    })?;
    if !goes_on {
        return Ok(CliExitCode::Success);
    }
    let view = load_view(&root, &id)?;
    if !args.json {
        output::tell(&with_dir(&summary::closing(&view.run, ClosingPlace::Alone), &root, &id));
        if let Some(refused) = summary::refused_tools(&view.run) {
            output::tell(&refused);
        }
    }
    Ok(CliExitCode::of(&view.run))
}

/// Returns whether a record is shown: those of programs, and those that end them.
fn is_shown(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStarted(_)
            | Event::RunResumed { .. }
            | Event::RunPaused { .. }
            | Event::AgentFailed(_)
            | Event::AgentParked(_)
            | Event::ProgramDefined(_)
            | Event::ProgramStarted(_)
            | Event::ProgramAdvanced(_)
            | Event::ProgramLogged(_)
            | Event::RoleRequested(_)
            | Event::RoleResponded(_)
            | Event::RoleDelegated(_)
            | Event::FactsSeen { .. }
    )
}

/// Formats a record as a form, with its text below.
fn shown(record: &Record) -> Option<String> {
    let text = match &record.event {
        Event::ProgramDefined(event) => {
            format!("(workflow-definition {} :program {})", atom(&event.name), event.program)
        }
        Event::ProgramStarted(event) => {
            let branch = event.branch.as_ref();
            let branch =
                branch.map_or(String::new(), |branch| format!(" :branch {}", atom(branch)));
            let (name, label) = (atom(&event.name), atom(&event.label));
            let context: Vec<String> = event
                .context
                .iter()
                .filter(|(_, text)| !text.is_empty())
                .map(|(key, text)| format!("({} {})", atom(key), quoted(text)))
                .collect();
            let context = if context.is_empty() {
                String::new()
            } else {
                format!(" :context ({})", context.join(" "))
            };
            format!(
                "(workflow-instance {} :definition {name} :label {label}{branch}{context})",
                event.turn.agent
            )
        }
        Event::ProgramAdvanced(event) => advanced(event),
        Event::ProgramLogged(event) => {
            let level = if event.warning { " :level warning" } else { "" };
            format!("(workflow/log {}{level} {})", event.turn.agent, quoted(&event.text))
        }
        Event::RoleRequested(event) => {
            let head = format!(
                "(agent-request {} :to {})",
                atom(&event.request.id),
                atom(&event.request.role)
            );
            match &event.request.body {
                RequestBody::Prompt(task) => form_with_text(&head, &task.prompt),
                RequestBody::Folder { folder, start, input } => {
                    let folder =
                        folder.as_ref().map_or(String::new(), |folder| format!("{folder}/"));
                    form_with_text(&format!("{head} runs {folder}{start}"), input)
                }
            }
        }
        Event::RoleResponded(event) => {
            let (status, text) = match &event.response {
                RequestStatus::Pending => ("pending", ""),
                RequestStatus::Answer(text) => ("answered", &**text),
                RequestStatus::Failed(why) => ("failed", why.as_str()),
            };
            let id = atom(&event.request);
            let head =
                format!("(agent-response {id} :status {status} :cost {})", event.cost.amount);
            form_with_text(&head, text)
        }
        Event::FactsSeen { changes } => {
            changes.iter().map(fact).collect::<Vec<_>>().join("\n                          ")
        }
        event if is_shown(event) => sentence(record),
        _ => return None,
    };
    Some(text)
}

fn advanced(event: &ProgramAdvanced) -> String {
    let progress = &event.progress;
    let status = serde_json::to_value(progress.status).unwrap_or_default();
    let mut text = format!(
        "(workflow/state {} :state {} :status {}",
        event.turn.agent,
        atom(&progress.state),
        status.as_str().unwrap_or_default()
    );
    if let Some(awaiting) = &progress.awaiting {
        let _ = write!(text, " :awaiting {}", quoted(awaiting));
    }
    if let Some(iteration) = progress.iteration {
        let _ = write!(text, " :iteration {iteration}");
    }
    text + ")"
}

fn fact(change: &FactChange) -> String {
    match change {
        FactChange::Asserted(Fact { label, key, value, .. }) => {
            format!("(assert {} :key {} :value {})", atom(label), atom(key), quoted(value))
        }
        FactChange::Retracted { label, key } => {
            format!("(retract {} :key {})", atom(label), atom(key))
        }
    }
}

/// Formats a form with a text below it.
fn form_with_text(head: &str, text: &str) -> String {
    let mut shown = head.to_owned();
    for line in text.lines() {
        shown.push_str("\n    ");
        shown.push_str(line);
    }
    shown
}

/// Formats a text for a form: without quotes if it needs none.
fn atom(text: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !"()\";~@:".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
