//! `raymond list`: all runs, a line each, the newest first; and `raymond pending`: all that waits for a person.

use std::io::{IsTerminal, stdout};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::args::{AllRunsArgs, ListArgs};
use super::exit::{CliExitCode, Error};
use super::logging::name_of;
use super::questions::quoted;
use super::table::TableCell;
use super::{arrived, output, table};
use crate::actor::context::now;
use crate::domain::id::RunId;
use crate::domain::person_wait::{AwaitedSignal, PersonWait, PersonWaitSubject, person_waits};
use crate::domain::restart::{AgentFailures, fails_strictly};
use crate::domain::run::{Run, RunStatus};
use crate::domain::time::Timestamp;
use crate::domain::tool_call::{flat, one_line};
use crate::domain::views::{PersonWaitRow, RunRow, UnreadableRunRow};
use crate::plugin::sentence::date;
use crate::plugin::styled::TextTone;
use crate::runtime::observing::agent_entries::with_inbox;
use crate::store;
use crate::store::layout::RunsRoot;
use crate::store::view::{RunView, load_view, newest_first};

/// The most runs that are shown on a terminal without `--limit`.
const DEFAULT_TERMINAL_LIMIT: usize = 50;

/// The columns that a narrow terminal leaves out, the first one first.
const DROPPED: [&str; 2] = ["took", "age"];

/// The maximum length of the reason why a run does not proceed.
const MAX_REASON_BYTES: usize = 4000;

/// Runs `raymond list`.
///
/// # Errors
/// [`Error`] if the directory cannot be read; a run that cannot be read is listed as such.
pub fn list(args: &ListArgs) -> Result<CliExitCode, Error> {
    let root = args.all_runs.dir.root();
    let is_for_a_person = stdout().is_terminal() && !args.all_runs.json;
    let limit = args.limit.or(is_for_a_person.then_some(DEFAULT_TERMINAL_LIMIT));
    let limit = limit.unwrap_or(usize::MAX);
    let all = newest_first(&root)?;
    let (mut shown, mut seen) = (Vec::new(), 0);
    for (id, started) in &all {
        if shown.len() >= limit {
            break;
        }
        seen += 1;
        let run = read(&root, id, *started);
        let is_wanted = |status| name_of(status) == word(&run);
        if args.status.is_empty() || args.status.iter().any(is_wanted) {
            shown.push(run);
        }
    }
    let none = match all.len() {
        0 => format!("no runs in {}; start one: raymond run PATH", root.path().display()),
        runs => format!("none of the {runs} runs in {} is shown", root.path().display()),
    };
    let exit = show(&root, &args.all_runs, &shown, &none)?;
    let older = all.len() - seen;
    if older > 0 && !args.all_runs.json {
        let runs = if older == 1 { "1 older run was" } else { &format!("{older} older runs were") };
        output::tell(&format!("{runs} not looked at; for all give --limit {}", all.len()));
    }
    Ok(exit)
}

/// A run's id with the time at which it was started, and its view or the error of reading it.
pub(super) struct ListedRun {
    pub(super) id: RunId,
    pub(super) started: Timestamp,
    pub(super) view: Result<RunView, store::Error>,
}

/// Reads all runs, the newest first.
pub(super) fn all(root: &RunsRoot) -> Result<Vec<ListedRun>, Error> {
    Ok(newest_first(root)?.iter().map(|(id, started)| read(root, id, *started)).collect())
}

/// Reads a run, if it can be read.
pub(super) fn read(root: &RunsRoot, id: &RunId, started: Timestamp) -> ListedRun {
    ListedRun { id: id.clone(), started, view: load_view(root, id) }
}

/// Returns the word for the status of a run.
pub(super) fn word_of(root: &RunsRoot, id: &RunId) -> &'static str {
    word(&read(root, id, Timestamp::default()))
}

fn word(run: &ListedRun) -> &'static str {
    run.view.as_ref().map_or("unreadable", table::word)
}

/// Shows runs as a table or as JSON.
pub(super) fn show(
    root: &RunsRoot,
    args: &AllRunsArgs,
    runs: &[ListedRun],
    none: &str,
) -> Result<CliExitCode, Error> {
    if args.json {
        return output::print_json(&runs.iter().map(ListedRow::of).collect::<Vec<_>>());
    }
    if runs.is_empty() {
        output::tell(none);
    }
    let mut head = vec!["run", "status", "age", "took", "agents", "cost", "workflow", ""];
    let mut rows: Vec<Vec<TableCell>> = runs.iter().map(|run| as_row(root, run)).collect();
    let most = table::columns().unwrap_or(usize::MAX);
    for dropped in DROPPED {
        let reason = head.len() - 1;
        let without_reason = rows.iter().map(|row| row[..row.len().min(reason)].to_vec());
        let lines = table::with_head(&head[..reason], without_reason);
        let column = head.iter().position(|title| *title == dropped);
        let is_wide = lines.iter().any(|line| line.width() > most);
        if let Some(column) = column.filter(|_| is_wide) {
            head.remove(column);
            rows.iter_mut().filter(|row| row.len() > column).for_each(|row| {
                row.remove(column);
            });
        }
    }
    let shown = table::print(table::with_head(&head, rows));
    for ListedRun { id, view, .. } in runs {
        if let Err(error) = view {
            output::tell(&format!("{id}: {error}"));
        }
    }
    shown
}

/// A run in the JSON of the list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ListedRow {
    /// A run that was read.
    Read(RunRow),
    /// A run that cannot be read.
    Unreadable(UnreadableRunRow),
}

impl ListedRow {
    /// Returns the row of a run.
    pub(super) fn of(listed: &ListedRun) -> Self {
        let ListedRun { id, started, view } = listed;
        match view {
            Ok(view) => Self::Read(RunRow::of(&view.run, view.held, *started)),
            Err(error) => Self::Unreadable(UnreadableRunRow {
                run: id.clone(),
                status: word(listed),
                started_at: *started,
                error: error.to_string(),
            }),
        }
    }
}

fn as_row(root: &RunsRoot, run: &ListedRun) -> Vec<TableCell> {
    let age = table::span(now().since(run.started));
    let word = word(run);
    let mut row = vec![
        TableCell::of(TextTone::Plain, run.id.as_str()),
        TableCell::of(table::tone(word), word),
        TableCell::of(TextTone::Faint, &age),
    ];
    if let Ok(view) = &run.view {
        let (live, ended) = (view.run.agents.len(), ended(&AgentFailures::of(&view.run)));
        row.extend([
            took(view).unwrap_or_default().into(),
            if live == 0 { ended } else { format!("{live} live, {ended}") }.into(),
            view.run.total_cost_usd.to_string().into(),
            workflow(&view.run).into(),
            arrived::in_short(root, view).unwrap_or_else(|| why(&view.run)).into(),
        ]);
    }
    row
}

/// Returns how long a run took so far, as text.
pub(super) fn took(view: &RunView) -> Option<String> {
    let goes_on = view.held && view.run.status == RunStatus::Running;
    view.times.duration_ms(goes_on.then(now)).map(table::took)
}

/// Returns the name of a run's workflow: that of its folder.
fn workflow(run: &Run) -> String {
    let root = Path::new(&run.scope_dir).file_name().unwrap_or_default().to_string_lossy();
    match &run.folder {
        Some(folder) => format!("{root}/{folder}"),
        None => root.into_owned(),
    }
}

/// Returns the number of agents that have ended, with that of the failed ones.
fn ended(failures: &AgentFailures) -> String {
    let AgentFailures { ended, failed, .. } = failures;
    match (ended - failed, failed) {
        (_, 0) => format!("{ended} ended"),
        (0, _) => format!("{failed} failed"),
        (finished, _) => format!("{finished} finished, {failed} failed"),
    }
}

/// Returns the reason why a run does not proceed, in short, or else what its agents failed of.
pub(super) fn why(run: &Run) -> String {
    match (&run.pause, run.limited(now()).filter(|_| run.status == RunStatus::Running)) {
        (Some(pause), _) => flat(&pause.to_string(), MAX_REASON_BYTES),
        (None, Some(until)) => format!("usage limit until {}", date(until)),
        (None, None) => {
            let failures = AgentFailures::of(run).to_string();
            let strict = if fails_strictly(run) { "(--strict)" } else { "" };
            format!("{failures} {strict}").trim().to_owned()
        }
    }
}

// `raymond pending`: all that waits for a person, over all runs.

/// The maximum length of the subject of a wait, in bytes.
const MAX_SUBJECT_BYTES: usize = 400;

/// Runs `raymond pending`.
///
/// # Errors
/// [`Error`] if the directory cannot be read; a run that cannot be read is named.
pub(super) fn pending(args: &AllRunsArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let mut waits: Vec<(RunId, PersonWait)> = Vec::new();
    for run in all(&root)? {
        match run.view {
            Ok(view) => {
                let of_run =
                    person_waits(&with_inbox(&root.run(&run.id), &view.run, view.held)).into_iter();
                waits.extend(of_run.map(|wait| (run.id.clone(), wait)));
            }
            Err(error) => output::tell(&format!("{}: {error}", run.id)),
        }
    }
    waits.sort_by_key(|(_, wait)| wait.since);
    if args.json {
        let waits: Vec<PersonWaitRow> =
            waits.iter().map(|(run, wait)| document(run, wait)).collect();
        return output::print_json(&waits);
    }
    if waits.is_empty() {
        output::tell("nothing waits for a person");
    }
    let rows = waits.iter().map(|(run, wait)| row(run, wait));
    table::print(table::with_head(&["run", "agent", "for", "waits", "command"], rows))
}

fn row(run: &RunId, wait: &PersonWait) -> Vec<TableCell> {
    vec![
        run.to_string().into(),
        wait.agent.to_string().into(),
        table::span(now().since(wait.since)).into(),
        subject(&wait.subject).into(),
        TableCell::of(TextTone::Faint, &command(run, wait)),
    ]
}

fn subject(subject: &PersonWaitSubject) -> String {
    match subject {
        PersonWaitSubject::Answer { question, .. } => format!("asks: {}", one_line(question)),
        PersonWaitSubject::Approval { call, .. } => {
            format!("asks for approval of {}", flat(call, MAX_SUBJECT_BYTES))
        }
        PersonWaitSubject::Signal(AwaitedSignal { label, key, value }) => {
            let key = key.as_ref().map(|key| format!(" of {}", one_line(key))).unwrap_or_default();
            let value = value.as_ref().map(|value| format!(" with {}", one_line(value)));
            format!("waits for the signal {}{key}{}", one_line(label), value.unwrap_or_default())
        }
        PersonWaitSubject::Held => "is held".to_owned(),
        PersonWaitSubject::Parked { reason } => {
            format!("is parked: {}", flat(reason, MAX_SUBJECT_BYTES))
        }
    }
}

/// Returns the command that ends a wait.
fn command(run: &RunId, PersonWait { agent, subject, .. }: &PersonWait) -> String {
    match subject {
        PersonWaitSubject::Answer { node, .. } => {
            format!("raymond answer {run} {}=TEXT", quoted(&format!("{agent}/{node}")))
        }
        PersonWaitSubject::Approval { name, .. } => format!("raymond answer {run} {name} allow"),
        PersonWaitSubject::Signal(AwaitedSignal { label, key, value }) => {
            let key = key.as_deref().map_or("KEY".to_owned(), quoted);
            let value = value.as_ref().map(|value| format!(" --value {}", quoted(value)));
            format!("raymond signal {} --key {key}{}", quoted(label), value.unwrap_or_default())
        }
        PersonWaitSubject::Held => format!("raymond release {run} {agent}"),
        PersonWaitSubject::Parked { .. } => format!("raymond resume {run}"),
    }
}

/// Returns the row of a wait for programs.
pub(super) fn document(run: &RunId, wait: &PersonWait) -> PersonWaitRow {
    PersonWaitRow::of(run, wait, command(run, wait))
}
