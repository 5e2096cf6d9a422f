//! The current activity of each agent, from the run and the observed turns; and the commands in the run's inbox.
//!
//! The entries are rebuilt for all agents at each change, so an [`AgentEntry`] is small. Making them is pure.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};

use crate::actor::context::now;
use crate::domain::agent::Agent;
use crate::domain::agent_status::{AgentStatus, RunObservation, WaitReason};
use crate::domain::apply::{Effect, apply};
use crate::domain::budget_shortage::{AcceptedAnswer, BudgetShortage};
use crate::domain::decide::{answer as decide, stopped};
use crate::domain::event::{
    AgentHold, AgentMessage, AttachedSession, Event, PromptEdit, Record, RunCommand,
};
use crate::domain::id::{AgentId, RunId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, FinishedAgent, Run};
use crate::domain::settings::AnswererKind;
use crate::domain::time::Timestamp;
use crate::domain::tool_call::one_line;
use crate::domain::turn::FailureCause;
use crate::plugin::fan_out::ActivityKind;
use crate::plugin::sentence::{current_execution, sentence, wait_sentence};
use crate::process::transcript::TurnFiles;
use crate::proof::ProofKey;
use crate::runtime::command_name::given_at;
use crate::runtime::directories;
use crate::runtime::error::Error;
use crate::store::inbox;
use crate::store::inbox::InboxCommand;
use crate::store::layout::{RunDir, RunsRoot};
use crate::store::view::{RunView, load_view};

/// The observation of a turn that has been begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MonitoredTurn {
    /// Its last observed activity.
    pub doing: Option<String>,
    /// The number of tokens it has taken so far.
    pub tokens: u64,
    /// True if a tool is at work.
    pub at_work: bool,
    /// The time of its last progress.
    pub progressed: Timestamp,
}

/// The observation of a run from outside.
#[derive(Debug, Clone, Copy)]
pub struct MonitoredRun<'run> {
    /// The state of the run after the last record that was read.
    pub run: &'run Run,
    /// True if a raymond holds it.
    pub held: bool,
    /// True if its turns are at hosts.
    pub is_shared: bool,
    /// The current turns that have begun, as observed.
    pub seen: &'run HashMap<AgentId, MonitoredTurn>,
    /// The current time.
    pub now: Timestamp,
}

/// The status of an agent, live or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopAgentStatus {
    /// It is live.
    Live(AgentStatus),
    /// The turn runs, but has been silent for so long that it may be ended.
    Silent,
    /// It ended with an error.
    Failed,
    /// It ended with a result.
    Finished,
    /// It was ended, because the agent that waited for it continued without it.
    Unneeded,
}

/// The status of an agent, without its details.
type TopStatusClass = (
    Discriminant<TopAgentStatus>,
    Option<Discriminant<AgentStatus>>,
    Option<Discriminant<WaitReason>>,
);

/// A kind of agents that can be shown alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatusFilter {
    /// A turn runs.
    Running,
    /// It waits.
    Waiting,
    /// It needs a person, or is silent.
    Stuck,
    /// It ended with an error.
    Failed,
    /// It ended with a result, or was no longer needed.
    Finished,
}

impl TopAgentStatus {
    /// Returns its kind.
    pub fn kind(&self) -> StatusFilter {
        match self {
            Self::Silent => StatusFilter::Stuck,
            Self::Live(AgentStatus::Waiting(reason)) if reason.is_for_person() => {
                StatusFilter::Stuck
            }
            Self::Live(AgentStatus::Running) => StatusFilter::Running,
            Self::Live(AgentStatus::Waiting(_)) => StatusFilter::Waiting,
            Self::Failed => StatusFilter::Failed,
            Self::Finished | Self::Unneeded => StatusFilter::Finished,
        }
    }

    /// Returns its rank: the stuck first, then the busy.
    pub fn rank(&self) -> u8 {
        match self {
            Self::Silent => 0,
            Self::Live(AgentStatus::Waiting(reason)) if reason.is_for_person() => 0,
            Self::Live(AgentStatus::Running) => 1,
            Self::Live(AgentStatus::Waiting(
                WaitReason::Backoff { .. } | WaitReason::Plugin { .. },
            )) => 2,
            Self::Live(AgentStatus::Waiting(_)) => 3,
            Self::Failed => 4,
            Self::Finished | Self::Unneeded => 5,
        }
    }

    /// Returns whether the agent's next turn is due and waits for a process, a time or money, as in the live view of
    /// `run`.
    pub fn is_queued(&self) -> bool {
        matches!(self, Self::Live(AgentStatus::Waiting(reason))
            if ActivityKind::of_reason(reason) == ActivityKind::Queued)
    }

    /// Returns the class that is the same for all agents with this status.
    pub fn class(&self) -> TopStatusClass {
        let live = if let Self::Live(status) = self { Some(status) } else { None };
        let reason = live.and_then(AgentStatus::wait_reason);
        (discriminant(self), live.map(discriminant), reason.map(discriminant))
    }

    /// Returns the rank of its kind, if it must not be overlooked in a row of many.
    pub fn stands_out(&self) -> Option<u8> {
        match self.kind() {
            StatusFilter::Stuck => Some(0),
            StatusFilter::Running => Some(1),
            StatusFilter::Failed => Some(2),
            StatusFilter::Waiting | StatusFilter::Finished => None,
        }
    }
}

/// An agent on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentEntry {
    /// The id by which people and commands name the agent, such as `main.2`.
    pub id: AgentId,
    /// The state it began in, if known.
    pub began: Option<StateName>,
    /// The state it is in; `None` if it has ended.
    pub state: Option<StateName>,
    /// What it does or waits for, or how it ended.
    pub status: TopAgentStatus,
    /// The time of its last progress; `None` if it has ended.
    pub since: Option<Timestamp>,
    /// The cost of its turns.
    pub spent: Usd,
    /// Its place among those that have ended.
    pub ended: Option<usize>,
}

/// Returns all agents of a run: the live ones in no order, then the ended ones.
pub fn entries(known: MonitoredRun<'_>) -> Vec<AgentEntry> {
    let running = known.seen.keys().filter_map(|id| known.run.agents.get(id));
    let shortage = BudgetShortage::of(known.run, running);
    let live = known.run.agents.unordered().map(|agent| live(known, &shortage, agent));
    let ended = known.run.finished.iter().enumerate().map(|(place, agent)| ended(place, agent));
    live.chain(ended).collect()
}

fn live<'run>(
    known: MonitoredRun<'run>,
    shortage: &BudgetShortage<'run>,
    agent: &'run Agent,
) -> AgentEntry {
    let seen = known.seen.get(&agent.id);
    let status = status(known, shortage, agent, seen);
    let turns =
        matches!(status, TopAgentStatus::Silent | TopAgentStatus::Live(AgentStatus::Running));
    let progressed = seen.filter(|_| turns).map(|seen| seen.progressed);
    AgentEntry {
        id: agent.id.clone(),
        began: Some(agent.spec.shown_state()),
        state: Some(agent.shown_place()),
        status,
        since: Some(progressed.map_or(agent.since, |progressed| progressed.max(agent.since))),
        spent: agent.cost_usd,
        ended: None,
    }
}

fn ended(place: usize, agent: &FinishedAgent) -> AgentEntry {
    AgentEntry {
        id: agent.id.clone(),
        began: agent.began(),
        state: None,
        status: match (&agent.ending, agent.cause) {
            (AgentEnding::Error(_), Some(FailureCause::Unneeded)) => TopAgentStatus::Unneeded,
            (AgentEnding::Error(_), _) => TopAgentStatus::Failed,
            (AgentEnding::Result(_), _) => TopAgentStatus::Finished,
        },
        since: None,
        spent: agent.cost_usd,
        ended: Some(place),
    }
}

fn status(
    known: MonitoredRun<'_>,
    shortage: &BudgetShortage<'_>,
    agent: &Agent,
    seen: Option<&MonitoredTurn>,
) -> TopAgentStatus {
    let MonitoredRun { run, held, is_shared, now, .. } = known;
    let observed = RunObservation { now, held, is_shared };
    let status = AgentStatus::of(run, agent, observed, seen.is_some());
    match (shortage.refine(agent, status), seen) {
        (AgentStatus::Running, Some(seen)) if is_silent(run, agent, seen, now) => {
            TopAgentStatus::Silent
        }
        (status, _) => TopAgentStatus::Live(status),
    }
}

/// Returns whether a turn has been silent for half of its idle timeout. A running tool does not count as silence, so
/// then half of the timeout for the whole turn counts. A script has no timeouts.
fn is_silent(run: &Run, agent: &Agent, seen: &MonitoredTurn, now: Timestamp) -> bool {
    if !run.settings.answerer.calls_model() {
        return false;
    }
    let limits = run.supervision_of(agent).limits();
    let granted = if seen.at_work { limits.timeout_ms } else { limits.idle_timeout_ms };
    now.since(seen.progressed.max(agent.since)) > granted / 2
}

// The activity of an agent in words, or the reason why it waits or has ended. Pure.

/// Returns the activity of an agent, or the reason why it waits; `until` words the time until which it does.
pub fn activity(
    known: MonitoredRun<'_>,
    entry: &AgentEntry,
    until: impl Fn(Timestamp) -> String,
) -> String {
    let agent = known.run.agents.get(&entry.id);
    let doing = || {
        let seen = known.seen.get(&entry.id).and_then(|seen| seen.doing.as_deref());
        let silent = match known.run.settings.answerer {
            AnswererKind::Claude => "starting",
            AnswererKind::Scripted => "a script answers it",
            AnswererKind::Replay => "a cassette answers it",
        };
        seen.unwrap_or(silent).to_owned()
    };
    match &entry.status {
        TopAgentStatus::Silent => format!("silent since: {}", doing()),
        TopAgentStatus::Live(AgentStatus::Running) => match agent {
            Some(agent) if agent.proposal().is_some() => format!("is evaluated: {}", doing()),
            _ => agent.and_then(current_execution).unwrap_or_else(doing),
        },
        TopAgentStatus::Live(AgentStatus::Waiting(reason)) => wait_sentence(reason, until),
        TopAgentStatus::Failed | TopAgentStatus::Finished | TopAgentStatus::Unneeded => {
            let Some(ended) = entry.ended.and_then(|place| known.run.finished.get(place)) else {
                return String::new();
            };
            match (&ended.ending, ended.cause) {
                (AgentEnding::Result(payload), _) => one_line(payload),
                (AgentEnding::Error(error), Some(cause)) => format!("{cause}: {}", one_line(error)),
                (AgentEnding::Error(error), None) => one_line(error),
            }
        }
    }
}

/// Returns the whole reason why an agent has failed or waits for a person; `None` if it does neither.
pub fn whole_reason(known: MonitoredRun<'_>, agent: &AgentId) -> Option<String> {
    if let Some(agent) = known.run.agents.get(agent) {
        return agent.parked_reason().map(|reason| format!("waits for a person: {reason}"));
    }
    let ended = known.run.finished.iter().find(|ended| ended.id == *agent)?;
    match (&ended.ending, ended.cause) {
        (AgentEnding::Error(error), Some(cause)) => Some(format!("failed ({cause}): {error}")),
        (AgentEnding::Error(error), None) => Some(format!("failed: {error}")),
        (AgentEnding::Result(_), _) => None,
    }
}

// The commands in the inbox of a run: applied to a view of the run, as they will be when it takes them.

/// A command that a run takes once it is resumed.
#[derive(Debug)]
pub enum InboxItem {
    /// An answer that it accepts.
    Answer(AcceptedAnswer),
    /// The sentence about an order to its agents.
    Order(String),
    /// The sentence about an order that changes nothing any more.
    LateOrder(String),
}

impl InboxItem {
    /// Returns the answer that it is; `None` if it is none.
    pub fn answer(self) -> Option<AcceptedAnswer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Order(_) | Self::LateOrder(_) => None,
        }
    }
}

/// Applies the commands in the inbox to this view of the run, and returns them in their order.
///
/// # Errors
/// [`Error::Store`] if the inbox cannot be read.
pub fn apply_inbox(run: &mut Run, dir: &RunDir, key: &ProofKey) -> Result<Vec<InboxItem>, Error> {
    Ok(apply_commands(run, dir, inbox::waiting(dir, key)?))
}

/// Applies commands to this view of a run, and returns them in their order.
pub fn apply_commands(run: &mut Run, dir: &RunDir, waiting: Vec<InboxCommand>) -> Vec<InboxItem> {
    let mut items = Vec::new();
    for entry in waiting {
        let Some(command) = entry.command else { continue };
        match command {
            RunCommand::Answer(given) => {
                let accepted = decide(run, &given).ok().and_then(AcceptedAnswer::of);
                if let Some(accepted) = accepted {
                    apply_event(run, accepted.event());
                    items.push(InboxItem::Answer(accepted));
                }
            }
            // They are about the run as a whole.
            RunCommand::Stop | RunCommand::Retry(_) => {}
            command => items.push(order(run, dir, entry.name, command)),
        }
    }
    items
}

/// Applies an order to an agent, as the raymond that resumes the run will.
fn order(run: &mut Run, dir: &RunDir, id: String, mut command: RunCommand) -> InboxItem {
    let has_started = |agent: &AgentId, run: &Run| {
        let turn = run.agents.get(agent).map(Agent::turn_id);
        turn.is_some_and(|turn| TurnFiles::of(&dir.steps(), &turn).are_there())
    };
    if let RunCommand::Edit(PromptEdit { turn, is_late, .. })
    | RunCommand::Attach(AttachedSession { turn, is_late, .. }) = &mut command
    {
        *is_late = has_started(&turn.agent, run);
    }
    let is_for_nobody = !has_receiver(run, &command);
    let to_stop =
        if let RunCommand::StopAgent { agent } = &command { Some(agent.clone()) } else { None };
    let at = given_at(&id).unwrap_or_else(now);
    let record = Record::next(run, at, Event::CommandReceived { id, command });
    let effects = apply(run, &record).unwrap_or_default();
    let is_refused = effects.iter().any(|effect| matches!(effect, Effect::Warn { .. }));
    if let Some(agent) = to_stop.filter(|agent| !has_started(agent, run))
        && let Some(event) = run.agents.get(&agent).and_then(stopped)
    {
        apply_event(run, event);
    }
    let sentence = sentence(&record);
    if is_for_nobody || is_refused {
        InboxItem::LateOrder(sentence)
    } else {
        InboxItem::Order(sentence)
    }
}

/// Returns whether an agent that an order is for lives.
fn has_receiver(run: &Run, command: &RunCommand) -> bool {
    match command {
        RunCommand::Hold(AgentHold { family, .. })
        | RunCommand::Release(AgentHold { family, .. }) => {
            run.agents.unordered().any(|agent| family.has(&agent.id))
        }
        RunCommand::Tell(AgentMessage { agent, .. }) | RunCommand::StopAgent { agent } => {
            run.agents.contains_key(agent)
        }
        RunCommand::Edit(PromptEdit { turn, .. })
        | RunCommand::Attach(AttachedSession { turn, .. }) => run.agents.contains_key(&turn.agent),
        RunCommand::Stop | RunCommand::Answer(_) | RunCommand::Retry(_) => true,
    }
}

/// Applies an event to this view of the run.
pub fn apply_event(run: &mut Run, event: Event) {
    let record = Record::next(run, now(), event);
    let _ = apply(run, &record);
}

/// Returns a run as it is on disk, with the commands in its inbox applied, regardless of which raymond executes it.
///
/// # Errors
/// [`Error::Store`] if the run or its inbox cannot be read.
pub fn load_with_inbox(root: &RunsRoot, id: &RunId) -> Result<RunView, Error> {
    let dir = root.run(id);
    // A command that is taken between the two reads is in the journal by then, and does not take effect twice.
    let waiting = inbox::waiting(&dir, &directories::user_state()?.key()?)?;
    let mut view = load_view(root, id)?;
    apply_commands(&mut view.run, &dir, waiting);
    Ok(view)
}

/// Returns a run with the commands in its inbox applied. A run that a raymond holds takes them soon, and an inbox that
/// cannot be read hides nothing: in both cases the run is as its journal says.
pub fn with_inbox<'run>(dir: &RunDir, run: &'run Run, held: bool) -> Cow<'run, Run> {
    let waiting = || -> Result<Vec<InboxCommand>, Error> {
        Ok(inbox::waiting(dir, &directories::user_state()?.key()?)?)
    };
    let may_take = run.can_resume() && !held;
    let waiting = if may_take { waiting().unwrap_or_default() } else { Vec::new() };
    if waiting.is_empty() {
        return Cow::Borrowed(run);
    }
    let mut after = run.clone();
    apply_commands(&mut after, dir, waiting);
    Cow::Owned(after)
}
