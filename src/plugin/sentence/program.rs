//! The records of programs, a line each for people.

use crate::domain::activity::Activity;
use crate::domain::body_command::BodyCommand;
use crate::domain::event::{Event, ProgramAdvanced, ProgramStatus, Record};
use crate::domain::fact::{Fact, FactChange};
use crate::domain::id::Folder;
use crate::domain::printable::{one_line, printable_line};
use crate::domain::program_execution::{RequestBody, RequestStatus};

pub(super) fn sentence(record: &Record) -> String {
    let folder = record.folder.as_ref();
    match &record.event {
        Event::ProgramDefined(event) => {
            let file = event.file.shown_in(event.folder.as_ref());
            format!("{file} defines {}", one_line(&event.name))
        }
        Event::ProgramStarted(event) => {
            let label = one_line(&event.label);
            format!("{}  {} begins as {label}", event.turn.agent, one_line(&event.name))
        }
        Event::ProgramLogged(event) => {
            let agent = &event.turn.agent;
            if event.warning {
                // A reason often ends with the remedy.
                format!("{agent}  warning: {}", printable_line(&event.text))
            } else {
                format!("{agent}  {}", one_line(&event.text))
            }
        }
        Event::RoleRequested(event) => {
            let asked = match &event.request.body {
                RequestBody::Prompt(task) => one_line(&task.prompt),
                RequestBody::Folder { folder, start, .. } => match folder {
                    Some(folder) => format!("runs {folder}/{start}"),
                    None => format!("runs {start}"),
                },
            };
            let (agent, name) = (&event.turn.agent, one_line(&event.request.name));
            format!("{agent}  asks {} ({name}): {asked}", one_line(&event.request.role))
        }
        Event::RoleResponded(event) => {
            let said = match &event.response {
                RequestStatus::Pending => String::new(),
                RequestStatus::Answer(text) => one_line(text),
                RequestStatus::Failed(why) => format!("failed: {}", one_line(why)),
            };
            let (agent, name) = (&event.turn.agent, one_line(&event.name));
            let state = event.state.shown_in(folder);
            format!("{agent}  {state} answers ({name}): {said}  {}", event.cost.amount)
        }
        Event::RoleDelegated(event) => {
            let (state, begins) = (event.state.shown_in(folder), event.spec.shown_state());
            format!("{}  {state} starts an agent at {begins}", event.turn.agent)
        }
        Event::FactsSeen { changes } => {
            const MAX_SHOWN_FACTS: usize = 4;
            let shown: Vec<String> = changes.iter().take(MAX_SHOWN_FACTS).map(seen).collect();
            let more = changes.len().saturating_sub(MAX_SHOWN_FACTS);
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            format!("seen: {}{more}", shown.join(", "))
        }
        _ => String::new(),
    }
}

/// Returns the state that a program has reached, and what it waits for.
pub(super) fn advanced(event: &ProgramAdvanced, folder: Option<&Folder>) -> String {
    let progress = &event.progress;
    let place = format!("{}  {}#{}", event.turn.agent, event.file.shown_in(folder), progress.state);
    let round = progress.iteration.map_or(String::new(), |round| format!(" (round {round})"));
    let then = match (progress.status, progress.awaiting.as_deref()) {
        (ProgramStatus::Running, _) => match &progress.position.activity {
            Some(Activity::Command(run)) => format!(": runs `{}`", one_line(&run.command)),
            Some(Activity::Commands(all)) => commands(all, event.turn.step)
                .unwrap_or_else(|| waits_for(progress.awaiting.as_deref())),
            Some(Activity::StartWorkflow(start)) => {
                format!(": starts the workflow {}", one_line(&start.program))
            }
            _ => String::new(),
        },
        (ProgramStatus::Waiting, awaiting) => waits_for(awaiting),
        (ProgramStatus::Completed, _) => ": completed".to_owned(),
        (ProgramStatus::Failed, _) => ": failed".to_owned(),
    };
    format!("{place}{round}{then}")
}

fn waits_for(awaiting: Option<&str>) -> String {
    format!(": waits for {}", one_line(awaiting.unwrap_or_default()))
}

/// Returns the commands of bodies that a step makes due; `None` if all ran already, which was told before.
fn commands(all: &[BodyCommand], step: u64) -> Option<String> {
    const MAX_SHOWN_COMMANDS: usize = 4;
    let new: Vec<&BodyCommand> = all.iter().filter(|one| one.id.step == step).collect();
    let shown = new.iter().take(MAX_SHOWN_COMMANDS);
    let shown: Vec<String> =
        shown.map(|one| format!("`{}`", one_line(&one.command.command))).collect();
    match new.len().saturating_sub(MAX_SHOWN_COMMANDS) {
        0 if new.is_empty() => None,
        0 => Some(format!(": runs {}", shown.join(", "))),
        more => Some(format!(": runs {}, and {more} more", shown.join(", "))),
    }
}

fn seen(change: &FactChange) -> String {
    match change {
        FactChange::Asserted(Fact { label, key, value, .. }) => {
            let value =
                if value.is_empty() { String::new() } else { format!(" = {}", one_line(value)) };
            format!("{} {}{value}", one_line(label), one_line(key))
        }
        FactChange::Retracted { label, key } => {
            format!("{} {} no longer", one_line(label), one_line(key))
        }
    }
}
