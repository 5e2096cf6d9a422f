//! A record as one line for people, in `raymond run` on a pipe and in `raymond log`.

use std::collections::BTreeMap;

use jiff::Zoned;
use jiff::tz::TimeZone;

use crate::domain::activity::{Activity, BodyCommand};
use crate::domain::agent::Agent;
use crate::domain::agent_status::WaitReason;
use crate::domain::approval::PendingApproval;
use crate::domain::event::{
    AgentHold, Event, GraphAdvanced, JoinFinished, LanguageAdvanced, NextAction, ProgramAdvanced,
    ProgramStatus, Record, RoleRequested, RoleResponded, RunCommand, StepFinished, TurnFailed,
};
use crate::domain::fact::{Fact, FactChange};
use crate::domain::graph_execution::{RequestBody, RequestStatus};
use crate::domain::host::{HostName, PlacedAgent};
use crate::domain::id::{Folder, StateKind, StateName};
use crate::domain::join::{Join, JoinCondition, JoinOutcome, JoinTally};
use crate::domain::refusal::headline;
use crate::domain::retry::RetriedAgent;
use crate::domain::settings::{AnswererKind, ForkGroup, Settings, agent_count};
use crate::domain::time::{Timestamp, seconds};
use crate::domain::tool_call::{flat, joined_lines, one_line, printable_line};
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

#[expect(clippy::too_many_lines, reason = "an arm for each event")]
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
        Event::GraphAdvanced(event) => graph_advanced(event, folder),
        Event::ProgramAdvanced(event) => program_advanced(event, folder),
        Event::LanguageAdvanced(event) => language_advanced(event, folder),
        Event::ProgramDefined(event) => {
            let file = event.file.shown_in(event.folder.as_ref());
            format!("{file} defines {}", one_line(&event.name))
        }
        Event::ProgramStarted(event) => {
            let label = one_line(&event.label);
            format!("{}  {} begins as {label}", event.turn.agent, one_line(&event.name))
        }
        // A reason often ends with the remedy.
        Event::ProgramLogged(event) if event.warning => {
            format!("{}  warning: {}", event.turn.agent, printable_line(&event.text))
        }
        Event::ProgramLogged(event) => {
            format!("{}  {}", event.turn.agent, one_line(&event.text))
        }
        Event::RoleRequested(event) => role_requested(event),
        Event::RoleResponded(event) => role_responded(event, folder),
        Event::RoleDelegated(event) => {
            let (state, begins) = (shown(&event.state), event.spec.shown_state());
            format!("{}  {state} starts an agent at {begins}", event.turn.agent)
        }
        Event::FactsSeen { changes } => {
            format!("seen: {}", first_and_more(changes, MAX_LISTED, fact_change).join(", "))
        }
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
        Event::ApprovalAsked(event) => {
            let call = flat(&event.request.summary(), MAX_CALL_BYTES);
            let (agent, name) = (&event.turn.agent, PendingApproval::name_of(event.number));
            match event.grant.map(PendingApproval::name_of) {
                None => format!("{agent}  asks for approval of {call} ({name})"),
                Some(grant) => format!("{agent}  runs {call}, as {grant} allows once"),
            }
        }
        Event::ApprovalAnswered(event) => format!(
            "{}  {} ({}) {}{}",
            event.turn.agent,
            PendingApproval::name_of(event.number),
            event.tool,
            one_line(&event.verdict.phrase()),
            event.by.as_ref().map(|by| format!(" by the plug-in {by}")).unwrap_or_default()
        ),
        Event::TurnSuspended(event) => format!(
            "{}  {}: its process has ended; the turn continues after the approval  {}",
            event.turn.agent,
            shown(&event.state),
            event.cost.amount
        ),
        Event::JoinBegun(event) => format!(
            "{}  {}: waits for {}",
            event.turn.agent,
            shown(&event.state),
            join_condition(&event.join)
        ),
        Event::JoinFinished(event) => join_finished(event, folder),
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
        Event::AgentsPlaced { lost } => placed(&record.placed, lost),
        Event::RunPaused { pause } => format!("run paused: {pause}"),
        Event::RunResumed { settings } => format!("run resumed{}", answered(settings)),
        Event::CommandReceived { command, .. } => command_received(command),
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

/// The maximum length of a tool call in a sentence, in bytes.
const MAX_CALL_BYTES: usize = 300;

/// The most agents that a line names.
const MAX_LISTED_AGENTS: usize = 8;

/// The most facts, commands or nodes that a line names.
const MAX_LISTED: usize = 4;

/// Returns which agents are retried.
fn retried(agents: &[RetriedAgent]) -> String {
    let names =
        first_and_more(agents, MAX_LISTED_AGENTS, |retried| retried.agent.to_string()).join(", ");
    let verb = if agents.len() == 1 { "continues" } else { "continue" };
    format!("retried: {names} {verb}")
}

/// Returns the words for the first of some things, and the number of the others as the last one.
pub fn first_and_more<T>(all: &[T], most: usize, word: impl Fn(&T) -> String) -> Vec<String> {
    let mut words: Vec<String> = all.iter().take(most).map(word).collect();
    let more = all.len().saturating_sub(most);
    words.extend((more > 0).then(|| format!("and {more} more")));
    words
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
            if event.counts =>
        {
            "; raymond retries it"
        }
        FailureCause::Throttle | FailureCause::Poisoned | FailureCause::Lost => {
            "; raymond retries it"
        }
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
    let taken = if event.implicit { format!("{tag}, implied") } else { tag.to_string() };
    let target = event.transition.destination().map(|target| target.shown_in(folder).to_string());
    let target = target.unwrap_or_default();
    let to = match &event.transition {
        Transition::Goto { .. } | Transition::Reset { .. } => target,
        Transition::Call { return_to, .. } | Transition::Function { return_to, .. } => {
            format!("{target}, returning to {}", shown(return_to))
        }
        Transition::Fork { next, .. } => {
            format!("{}, {}", shown(next), forked_agents(event, folder))
        }
        Transition::Ask { question, next, .. } => {
            format!("{}, when someone answers: {}", shown(next), one_line(question))
        }
        Transition::Result { payload, .. } => one_line(payload),
    };
    let duration = event.cost.duration_ms;
    let duration = duration.map_or(String::new(), |ms| format!("  {}", seconds(ms)));
    let overruled = event.overruled.as_ref().map_or(String::new(), |overruled| {
        let asked = overruled.asked.as_ref().map(|asked| one_line(&asked.to_string()));
        let asked = asked.unwrap_or_else(|| "the turn".to_owned());
        format!("; {} overruled {asked}{}", overruled.by, because(&overruled.reason))
    });
    let unchecked =
        event.evaluator.as_ref().filter(|_| event.without_turn && event.overruled.is_none());
    let unchecked = unchecked.map_or(String::new(), |evaluator| {
        format!("; {} did not check it, because no budget is left", shown(evaluator))
    });
    let cost = event.cost.amount;
    format!("{agent}  {from} → {to} ({taken})  {cost}{duration}{overruled}{unchecked}")
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {}", one_line(reason)) }
}

/// Returns the state of an agent after a step, as far as its transition tells; a return is known only to the run.
pub fn destination(transition: &Transition, folder: Option<&Folder>) -> Option<StateName> {
    match transition {
        Transition::Fork { next, .. } | Transition::Ask { next, .. } => Some(next.shown_in(folder)),
        other => other.destination().map(|target| target.shown_in(folder)),
    }
}

/// Returns the sentence about a command that a person gives to a run.
fn command_received(command: &RunCommand) -> String {
    match command {
        RunCommand::Stop => "asked to stop".to_owned(),
        RunCommand::Answer(answer) => {
            format!("someone answers {}: {}", answer.node, one_line(&answer.text))
        }
        RunCommand::Retry(_) => "asked to retry failed agents".to_owned(),
        RunCommand::Tell(message) => {
            format!("{}  someone sends a message: {}", message.agent, one_line(&message.text))
        }
        RunCommand::Hold(AgentHold { family, visit: None }) => format!("{family}  is held"),
        RunCommand::Hold(AgentHold { family, visit: Some(_) }) => {
            format!("{family}  is held while someone works on it")
        }
        RunCommand::Release(AgentHold { family, visit: None }) => format!("{family}  is released"),
        RunCommand::Release(AgentHold { family, visit: Some(_) }) => {
            format!("{family}  is released after someone worked on it")
        }
        RunCommand::Edit(edit) => {
            format!("{}  someone edits its prompt: {}", edit.turn.agent, one_line(&edit.text))
        }
        RunCommand::Attach(attached) => {
            let (agent, session) = (&attached.turn.agent, &attached.session);
            format!("{agent}  someone talked to it; it continues in the session {session}")
        }
        RunCommand::StopAgent { agent } => format!("{agent}  asked to stop"),
    }
}

// Forked agents, and the wait for them, as lines for people.

/// Returns the agents that a step forks, as text.
fn forked_agents(event: &StepFinished, folder: Option<&Folder>) -> String {
    let Some(first) = event.children.first() else {
        let target = event.transition.destination();
        let target = target.map(|target| format!(" at {}", target.shown_in(folder)));
        let target = target.unwrap_or_default();
        return format!("a new agent{target}");
    };
    let shown = |group: &ForkGroup| group.target().shown_in(folder).to_string();
    let mut states: Vec<String> = event.children.iter().map(shown).collect();
    states.dedup();
    match agent_count(&event.children) {
        0 => format!("no new agent at {}: the list is empty", shown(first)),
        1 => format!("a new agent at {}", shown(first)),
        many => format!("{many} new agents at {}", states.join(", ")),
    }
}

fn join_condition(join: &Join) -> String {
    match join.need {
        JoinCondition::All => "all agents it has forked".to_owned(),
        JoinCondition::Any => "any of the agents it has forked".to_owned(),
        JoinCondition::Count(count) => format!("{count} of the agents it has forked"),
    }
}

fn join_finished(joined: &JoinFinished, folder: Option<&Folder>) -> String {
    let JoinFinished { turn, state, outcome, tally, enters, stopped } = joined;
    let JoinTally { count, done, failed } = tally;
    let how = match outcome {
        JoinOutcome::Met => "continues",
        JoinOutcome::Missed if *failed == 0 => "it has forked too few",
        JoinOutcome::Missed => "too many failed",
        JoinOutcome::Late => "waited too long",
    };
    let failures = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
    let to = enters.as_ref().map(|state| format!("; continues at {}", state.shown_in(folder)));
    let to = to.unwrap_or_default();
    let state = state.shown_in(folder);
    let stopped = match stopped.len() {
        0 => String::new(),
        1 => "; one agent is stopped".to_owned(),
        many => format!("; {many} agents are stopped"),
    };
    format!("{}  {state}: {how}: {done} of {count} finished{failures}{to}{stopped}", turn.agent)
}

// The records of programs, a line each for people.

fn role_requested(event: &RoleRequested) -> String {
    let asked = match &event.request.body {
        RequestBody::Prompt(task) => one_line(&task.prompt),
        RequestBody::Folder { folder: Some(folder), start, .. } => format!("runs {folder}/{start}"),
        RequestBody::Folder { folder: None, start, .. } => format!("runs {start}"),
    };
    let (agent, name) = (&event.turn.agent, one_line(&event.request.name));
    format!("{agent}  asks {} ({name}): {asked}", one_line(&event.request.role))
}

fn role_responded(event: &RoleResponded, folder: Option<&Folder>) -> String {
    let response = match &event.response {
        RequestStatus::Pending => String::new(),
        RequestStatus::Answer(text) => one_line(text),
        RequestStatus::Failed(why) => format!("failed: {}", one_line(why)),
    };
    let (agent, name) = (&event.turn.agent, one_line(&event.name));
    let state = event.state.shown_in(folder);
    format!("{agent}  {state} answers ({name}): {response}  {}", event.cost.amount)
}

/// Returns the state that a program has reached, and what it waits for.
fn program_advanced(event: &ProgramAdvanced, folder: Option<&Folder>) -> String {
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

/// Returns the commands of bodies that a step adds; `None` if all ran already and were reported before.
fn commands(all: &[BodyCommand], step: u64) -> Option<String> {
    let new: Vec<&BodyCommand> = all.iter().filter(|command| command.id.step == step).collect();
    let text = |new: &&BodyCommand| format!("`{}`", one_line(&new.command.command));
    (!new.is_empty())
        .then(|| format!(": runs {}", first_and_more(&new, MAX_LISTED, text).join(", ")))
}

fn fact_change(change: &FactChange) -> String {
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

// The sentence for people on why an agent waits, or on why several of them do.

/// The maximum length of the reason why an agent waits for a person. Views of a fixed width cut it themselves.
const MAX_REASON_BYTES: usize = 1000;

/// Returns the work of an agent that advances by itself.
pub fn current_execution(agent: &Agent) -> Option<String> {
    agent.current_execution().map(execution_sentence)
}

/// Returns the work of an agent in a state of this kind.
pub fn execution_sentence(kind: StateKind) -> String {
    format!("executes the {}", kind.noun())
}

/// Returns why an agent waits, as a sentence about it. `when` gives the time of its next try in words.
pub fn wait_sentence(reason: &WaitReason, when: impl Fn(Timestamp) -> String) -> String {
    match reason {
        WaitReason::Permit => "waits for a free process".to_owned(),
        WaitReason::Host { label: None } => "waits for a host".to_owned(),
        WaitReason::Host { label: Some(label) } => {
            format!("waits for a host with the label {label}")
        }
        WaitReason::Budget => "waits for money that running turns have reserved".to_owned(),
        WaitReason::Backoff { until } => format!("restarts {}", when(*until)),
        WaitReason::Stagger { until } => format!("starts {}", when(*until)),
        WaitReason::Plugin { by, until } => {
            format!("held until {} by the plug-in {}", date(*until), one_line(by))
        }
        WaitReason::UsageLimit { until } => {
            format!("waits for the usage limit until {}", date(*until))
        }
        WaitReason::Person { reason: because } => {
            format!("waits for a person: {}", flat(because, MAX_REASON_BYTES))
        }
        WaitReason::Held => "is held until a person releases it".to_owned(),
        WaitReason::Answer { node, question } => {
            format!("waits for an answer to {node}: {}", one_line(question))
        }
        WaitReason::Approval { name, tool } => {
            format!("waits for approval of {}: {name}", one_line(tool))
        }
        WaitReason::Agent { agent: other } => format!("waits for {other}"),
        WaitReason::Join { more, of, failed, until, .. } => {
            let agents = if *of == 1 { "agent" } else { "agents" };
            let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
            let until = until.map(|until| format!(", until {}", date(until))).unwrap_or_default();
            format!("waits for {more} more of {of} {agents}{failed}{until}")
        }
        WaitReason::Program { awaiting } => format!("waits for {}", one_line(awaiting)),
        WaitReason::Request => "waits for a request of its program".to_owned(),
        WaitReason::RunPaused => "waits: the run is paused".to_owned(),
        WaitReason::RunInterrupted => "waits for the run to be resumed".to_owned(),
    }
}

/// Returns why several agents wait, to stand behind their number.
pub fn waits_of_many(reason: &WaitReason) -> &'static str {
    match reason {
        WaitReason::Permit => "wait for a free process",
        WaitReason::Host { .. } => "wait for a host",
        WaitReason::Budget => "wait for money that running turns have reserved",
        WaitReason::Backoff { .. } => "restart after a pause",
        WaitReason::Stagger { .. } => "start in a moment",
        WaitReason::Plugin { .. } => "held by a plug-in",
        WaitReason::UsageLimit { .. } => "wait for the usage limit",
        WaitReason::Person { .. } => "wait for a person",
        WaitReason::Held => "are held until a person releases them",
        WaitReason::Answer { .. } => "wait for an answer",
        WaitReason::Approval { .. } => "wait for an approval",
        WaitReason::Agent { .. } => "wait for another agent",
        WaitReason::Join { .. } => "wait for agents they have forked",
        WaitReason::Program { .. } => "wait as their programs say",
        WaitReason::Request => "wait for a request of their program",
        WaitReason::RunPaused => "wait: the run is paused",
        WaitReason::RunInterrupted => "wait for the run to be resumed",
    }
}

/// Returns the executed nodes of a graph and the next action.
fn graph_advanced(event: &GraphAdvanced, folder: Option<&Folder>) -> String {
    let agent = &event.turn.agent;
    let nodes: Vec<String> =
        event.visits.iter().map(|visit| format!("{} ({})", visit.node, visit.outcome)).collect();
    let skipped = nodes.len().saturating_sub(MAX_LISTED);
    let dots = if skipped > 0 { format!("{skipped} nodes … ") } else { String::new() };
    let route = nodes[skipped..].join(" → ");
    let arrow = if route.is_empty() { "" } else { " → " };
    let next = next_place(&event.node, &event.next_action);
    let paid = event.task.as_ref().map_or(String::new(), |paid| format!("  {}", paid.cost.amount));
    let file = event.file.shown_in(folder);
    format!("{agent}  {file}: {dots}{route}{arrow}{next}{paid}")
}

/// Returns the sentence about agents that are given hosts: the hosts that were lost, and the number of agents that each
/// host is given.
fn placed(placed: &[PlacedAgent], lost: &[HostName]) -> String {
    let mut counts: BTreeMap<&HostName, usize> = BTreeMap::new();
    for agent in placed {
        *counts.entry(&agent.host).or_default() += 1;
    }
    let mut agents: Vec<String> = Vec::new();
    for (host, count) in counts {
        agents.push(match count {
            1 => format!("1 agent on {host}"),
            _ => format!("{count} agents on {host}"),
        });
    }
    let agents =
        if agents.is_empty() { "no agent is placed".to_owned() } else { agents.join(", ") };
    match lost {
        [] => format!("placed: {agents}"),
        [host] => format!("host {host} was declared lost: {agents}"),
        hosts => {
            let hosts: Vec<&str> = hosts.iter().map(HostName::as_str).collect();
            format!("hosts {} were declared lost: {agents}", hosts.join(", "))
        }
    }
}

/// Returns the file of a state that raymond executes, and the next action in it.
fn language_advanced(event: &LanguageAdvanced, folder: Option<&Folder>) -> String {
    let agent = &event.turn.agent;
    let next = next_place(event.file.shown_in(folder).as_str(), &event.next_action);
    let paid = event.task.as_ref().map_or(String::new(), |paid| format!("  {}", paid.cost.amount));
    format!("{agent}  {next}{paid}")
}

/// Returns a place and the next action there.
fn next_place(place: &str, next: &NextAction) -> String {
    match next {
        NextAction::Walk | NextAction::Wait | NextAction::Nothing => place.to_owned(),
        NextAction::Operation(kind) => format!("{place}: {kind}"),
        NextAction::Task(_) => format!("{place}: a turn of Claude Code"),
        NextAction::Question(question) => format!("{place}: asks: {}", one_line(&question.text)),
        NextAction::Join(join) => format!("{place}: waits for {} of its agents", join.need),
        NextAction::Agent { spec, background, joined } => {
            let waits = if *background || *joined { "" } else { ", and waits for it" };
            format!("{place}: starts an agent at {}{waits}", spec.shown_state())
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod host_tests {
    use super::*;
    use crate::domain::host::HostEpoch;
    use crate::domain::id::AgentId;

    #[test]
    fn sentence_counts_agents_by_host() {
        let host = |name: &str| HostName::parse(name).expect("a name");
        let at = |agent: u32, name: &str| PlacedAgent {
            agent: AgentId::main().child(agent),
            host: host(name),
            epoch: HostEpoch(1),
        };
        assert_eq!(
            placed(&[at(1, "b"), at(2, "a"), at(3, "b")], &[]),
            "placed: 1 agent on a, 2 agents on b"
        );
        assert_eq!(placed(&[at(1, "b")], &[host("a")]), "host a was declared lost: 1 agent on b");
        assert_eq!(
            placed(&[], &[host("a"), host("b")]),
            "hosts a, b were declared lost: no agent is placed"
        );
    }
}
