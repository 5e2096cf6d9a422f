//! `raymond workflow watch`: the records of programs as forms, with requests and answers.

use std::fmt::Write as _;

use crate::cli::args::OneRunArgs;
use crate::cli::exit::{CliExitCode, Error};
use crate::cli::log::{follow, json_line};
use crate::cli::runs_dir::with_dir;
use crate::cli::summary::ClosingPlace;
use crate::cli::{output, run_choice, summary};
use crate::domain::event::{Event, ProgramAdvanced, Record};
use crate::domain::fact::{Fact, FactChange};
use crate::domain::printable::printable;
use crate::domain::program_execution::{RequestBody, RequestStatus};
use crate::plugin::sentence::{moment, sentence};
use crate::store::record;
use crate::store::view::load_view;

pub(super) fn watch(args: &OneRunArgs) -> Result<CliExitCode, Error> {
    let root = args.dir.root();
    let id = run_choice::chosen(&args.named, &root)?;
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
