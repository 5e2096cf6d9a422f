//! A record as one line for people, in `raymond run` on a pipe and in `raymond log`.

mod command;
mod fork;
mod program;
pub mod wait;

use jiff::Zoned;
use jiff::tz::TimeZone;

use crate::domain::event::{Event, Record, StepFinished, TurnFailed};
use crate::domain::id::{Folder, StateName};
use crate::domain::printable::{joined_lines, one_line};
use crate::domain::refusal::headline;
use crate::domain::retry::RetriedAgent;
use crate::domain::settings::{AnswererKind, Settings};
use crate::domain::time::{Timestamp, seconds};
use crate::domain::transition::Transition;
use crate::domain::turn::FailureCause;

/// Returns the event of a record as a printable line without its time.
pub fn sentence(record: &Record) -> String {
    let names_them = matches!(&record.event, Event::AgentFailed(failed) if failed.cause == FailureCause::ToolRefused);
    let cost = record.event.cost().filter(|_| !names_them);
    let refused = cost.and_then(|cost| headline(&cost.refused_tools));
    let refused = refused.map(|refused| format!("  ({refused})")).unwrap_or_default();
    joined_lines(&format!("{}{refused}", event_sentence(record)))
}

/// Returns the same without the tools that were refused.
pub fn sentence_without_refusals(record: &Record) -> String {
    joined_lines(&event_sentence(record))
}

fn event_sentence(record: &Record) -> String {
    let folder = record.folder.as_ref();
    let shown = |state: &StateName| state.shown_in(folder);
    match &record.event {
        Event::RunStarted(started) => {
            format!(
                "run {} starts at {}{}{}",
                started.workflow_id,
                started.entry.shown_in(started.folder.as_ref()),
                origin(&started.settings),
                answered(&started.settings)
            )
        }
        Event::StepFinished(event) => step(event, folder),
        Event::TransitionProposed(event) => format!(
            "{}  {} → {} looks at it ({})  {}",
            event.turn.agent,
            shown(&event.state),
            shown(&event.evaluator),
            one_line(&event.transition.to_string()),
            event.cost.amount
        ),
        Event::GraphAdvanced(event) => wait::advanced(event, folder),
        Event::ProgramAdvanced(event) => program::advanced(event, folder),
        Event::LanguageAdvanced(event) => wait::language_advanced(event, folder),
        Event::ProgramDefined(_)
        | Event::ProgramStarted(_)
        | Event::ProgramLogged(_)
        | Event::RoleRequested(_)
        | Event::RoleResponded(_)
        | Event::RoleDelegated(_)
        | Event::FactsSeen { .. } => program::sentence(record),
        Event::QuestionAnswered(event) => format!(
            "{}  {}: answered {}{}",
            event.turn.agent,
            event.node,
            one_line(&event.answer.raw),
            if event.used_answers.is_some() { ", as given ahead of time" } else { "" },
        ),
        Event::QuestionTimedOut(event) => format!(
            "{}  no answer in time, so it continues at {} instead of {}",
            event.turn.agent,
            shown(&event.enters),
            shown(&event.state)
        ),
        Event::ApprovalAsked(_) | Event::ApprovalAnswered(_) | Event::TurnSuspended(_) => {
            command::sentence(record)
        }
        Event::JoinBegun(_) | Event::JoinFinished(_) => fork::joins(record),
        Event::TurnHeld(event) => format!(
            "{}  {}: held by the plug-in {} until {}{}",
            event.turn.agent,
            shown(&event.state),
            event.by,
            date(event.until),
            because(&event.reason)
        ),
        Event::TurnRejected(event) => {
            format!("{}  {}: {}; reminded", event.turn.agent, shown(&event.state), event.violation)
        }
        Event::TurnFailed(event) => failed(event, folder),
        Event::AgentFailed(event) => {
            let others = if event.ends_run { "; all other agents end with it" } else { "" };
            format!("{}  failed ({}): {}{others}", event.turn.agent, event.cause, event.error)
        }
        Event::CostCounted { turn, cost } => {
            let (agent, amount) = (&turn.agent, cost.amount);
            format!("{agent}  the turn that ended with the run cost {amount}")
        }
        Event::AgentParked(event) => {
            format!("{}  waits for a person: {}", event.turn.agent, event.reason)
        }
        Event::LimitReached { until, message } => {
            format!("usage limit: {message}; no turn starts before {}", date(*until))
        }
        Event::RunBranched(event) => format!(
            "run {} branches off {} after record {}",
            event.run, event.origin.run, event.origin.seq
        ),
        Event::AgentsRetried { agents } => retried(agents),
        Event::AgentsPlaced { lost } => wait::placed(&record.placed, lost),
        Event::RunPaused { pause } => format!("run paused: {pause}"),
        Event::RunResumed { settings } => format!("run resumed{}", answered(settings)),
        Event::CommandReceived { command, .. } => command::given(command),
        Event::MessagesTaken { turn, message: None } => {
            format!("{}  gets the message with its next prompt", turn.agent)
        }
        Event::MessagesTaken { turn, message: Some(_) } => {
            format!("{}  gets the message within its turn", turn.agent)
        }
    }
}

/// Returns a point in time in the local date format.
pub fn date(at: Timestamp) -> String {
    local(at).strftime("%b %-d, %H:%M %Z").to_string()
}

/// Returns a point in time with its date and its seconds, in the local time zone, with the offset from UTC.
pub fn moment(at: Timestamp) -> String {
    local(at).strftime("%Y-%m-%d %H:%M:%S%:z").to_string()
}

/// Returns a point in time in the local time zone.
pub fn local(at: Timestamp) -> Zoned {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or(jiff::Timestamp::MAX);
    time.to_zoned(TimeZone::system())
}

/// Returns the message that a run waits for the usage limit, and the possible remedy.
pub fn waiting(until: Timestamp) -> String {
    format!(
        "the usage limit is reached: no turn starts before {}; to try earlier, stop the run and resume it",
        date(until)
    )
}

/// The most agents that a line names.
const MAX_NAMED_AGENTS: usize = 8;

/// Returns which agents live again.
fn retried(agents: &[RetriedAgent]) -> String {
    let mut names: Vec<String> =
        agents.iter().take(MAX_NAMED_AGENTS).map(|one| one.agent.to_string()).collect();
    let more = agents.len().saturating_sub(MAX_NAMED_AGENTS);
    names.extend((more > 0).then(|| format!("{more} more")));
    let verb = if agents.len() == 1 { "continues" } else { "continue" };
    format!("retried: {} {verb}", names.join(", "))
}

/// Returns which run has started this one, if no person has.
fn origin(settings: &Settings) -> String {
    let origin = settings.started_by.as_ref();
    origin.map_or(String::new(), |by| format!(", started by {} ({}#{})", by.run, by.agent, by.step))
}

fn answered(settings: &Settings) -> String {
    let part = settings.replayed_part();
    let part = part.map_or(String::new(), |(_, until)| {
        format!(
            ", answered by a cassette up to record {until} of its run, then by {}",
            settings.answerer.meaning()
        )
    });
    let all = match settings.answerer {
        AnswererKind::Scripted if !part.is_empty() => ": no model is called",
        AnswererKind::Claude => "",
        AnswererKind::Scripted => ", answered by a script: no model is called",
        AnswererKind::Replay => ", answered by a cassette: no model is called",
    };
    part + all
}

fn failed(event: &TurnFailed, folder: Option<&Folder>) -> String {
    let again = match event.cause {
        FailureCause::Crash
        | FailureCause::Timeout
        | FailureCause::Stall
        | FailureCause::Panic
        | FailureCause::Uncertain
            if !event.counts =>
        {
            ""
        }
        FailureCause::Crash
        | FailureCause::Timeout
        | FailureCause::Stall
        | FailureCause::Throttle
        | FailureCause::Panic
        | FailureCause::Poisoned
        | FailureCause::Uncertain
        | FailureCause::Lost => "; raymond retries it",
        FailureCause::Network => "; raymond waits until the API can be reached",
        FailureCause::SessionLost => "; it starts over in a fresh session",
        _ => "",
    };
    let state = event.state.shown_in(folder);
    format!("{}  {state}: {}: {}{again}", event.turn.agent, event.cause, event.message)
}

fn step(event: &StepFinished, folder: Option<&Folder>) -> String {
    let agent = &event.turn.agent;
    let shown = |state: &StateName| state.shown_in(folder);
    let from = shown(&event.state);
    let tag = event.transition.tag();
    let way = if event.implicit { format!("{tag}, implied") } else { tag.to_string() };
    let target = event.transition.destination().map(|target| target.shown_in(folder).to_string());
    let target = target.unwrap_or_default();
    let to = match &event.transition {
        Transition::Goto { .. } | Transition::Reset { .. } => target,
        Transition::Call { return_to, .. } | Transition::Function { return_to, .. } => {
            format!("{target}, returning to {}", shown(return_to))
        }
        Transition::Fork { next, .. } => {
            format!("{}, {}", shown(next), fork::forked_agents(event, folder))
        }
        Transition::Ask { question, next, .. } => {
            format!("{}, when someone answers: {}", shown(next), one_line(question))
        }
        Transition::Result { payload, .. } => one_line(payload),
    };
    let took = event.cost.duration_ms;
    let took = took.map_or(String::new(), |ms| format!("  {}", seconds(ms)));
    let overruled = event.overruled.as_ref().map_or(String::new(), |overruled| {
        let asked = overruled.asked.as_ref().map(|asked| one_line(&asked.to_string()));
        let asked = asked.unwrap_or_else(|| "the turn".to_owned());
        format!("; {} overruled {asked}{}", overruled.by, because(&overruled.reason))
    });
    let unseen =
        event.evaluator.as_ref().filter(|_| event.without_turn && event.overruled.is_none());
    let unseen = unseen.map_or(String::new(), |evaluator| {
        format!("; {} did not check it, because no budget is left", shown(evaluator))
    });
    let cost = event.cost.amount;
    format!("{agent}  {from} → {to} ({way})  {cost}{took}{overruled}{unseen}")
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {}", one_line(reason)) }
}

/// Returns the texts that an event shows to people: those of a graph or a program, and those that a reply prints.
pub fn shown_texts(event: &Event) -> &[String] {
    match event {
        Event::StepFinished(finished) => &finished.shown,
        Event::TransitionProposed(proposed) => &proposed.shown,
        other => other.advance().map_or(&[], |advance| advance.shown),
    }
}

/// Returns the state of an agent after a step, as far as its transition tells; a return is known only to the run.
pub fn destination(transition: &Transition, folder: Option<&Folder>) -> Option<StateName> {
    match transition {
        Transition::Fork { next, .. } | Transition::Ask { next, .. } => Some(next.shown_in(folder)),
        other => other.destination().map(|target| target.shown_in(folder)),
    }
}

#[cfg(test)]
mod tests;
