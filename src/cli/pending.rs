//! `raymond pending`: all that waits for a person, over all runs.

use super::args::AllRunsArgs;
use super::exit::{CliExitCode, Error};
use super::questions::quoted;
use super::table::{self, TableCell};
use super::{list, output};
use crate::actor::context::now;
use crate::domain::id::RunId;
use crate::domain::person_wait::AwaitedSignal;
use crate::domain::person_wait::{PersonWait, PersonWaitSubject, person_waits};
use crate::domain::printable::{flat, one_line};
use crate::domain::views::PersonWaitRow;
use crate::plugin::styled::TextTone;
use crate::runtime::observing::agent_entries::with_inbox;

/// The maximum length of the subject of a wait, in bytes.
const MAX_SUBJECT_BYTES: usize = 400;

/// Runs `raymond pending`.
///
/// # Errors
/// [`Error`] if the directory cannot be read; a run that cannot be read is named.
pub(super) fn pending(args: &AllRunsArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let mut waits: Vec<(RunId, PersonWait)> = Vec::new();
    for run in list::all(&root)? {
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
    let head = ["run", "agent", "for", "waits", "command"];
    let head = head.map(|title| TableCell::of(TextTone::Faint, title)).to_vec();
    let head = (!waits.is_empty()).then_some(head);
    let rows = head.into_iter().chain(waits.iter().map(|(run, wait)| row(run, wait)));
    table::print(table::lines(&rows.collect::<Vec<_>>()))
}

fn row(run: &RunId, wait: &PersonWait) -> Vec<TableCell> {
    vec![
        run.to_string().into(),
        wait.agent.to_string().into(),
        table::text(now().since(wait.since)).into(),
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
