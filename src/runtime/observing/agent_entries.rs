//! The current activity of each agent, from the run and the observed turns. Pure.
//!
//! It is made anew for all agents at each change, so an [`AgentEntry`] is small.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};

use crate::domain::agent::Agent;
use crate::domain::agent_status::{AgentStatus, RunObservation};
use crate::domain::budget_shortage::BudgetShortage;
use crate::domain::id::{AgentId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, FinishedAgent, Run};
use crate::domain::time::Timestamp;
use crate::domain::turn::FailureCause;
use crate::domain::wait_reason::WaitReason;
use crate::plugin::fan_out::ActivityKind;

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
    /// The run.
    pub run: &'run Run,
    /// True if a raymond holds it.
    pub held: bool,
    /// True if its turns are at hosts.
    pub is_shared: bool,
    /// The observed turns that are due and have been begun.
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

    /// Returns whether the agent's next turn is due and waits for a process, a time or money, as in the live view of `run`.
    pub fn is_queued(&self) -> bool {
        match self {
            Self::Live(AgentStatus::Waiting(reason)) => {
                ActivityKind::of_reason(reason) == ActivityKind::Queued
            }
            Self::Live(AgentStatus::Running)
            | Self::Silent
            | Self::Failed
            | Self::Finished
            | Self::Unneeded => false,
        }
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
    /// Its id.
    pub id: AgentId,
    /// The state it began in, if known.
    pub began: Option<StateName>,
    /// The state it is in; `None` if it has ended.
    pub state: Option<StateName>,
    /// Its status.
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

/// Returns whether a turn has been silent for half of its idle timeout. A tool at work is no silence, so then half
/// of the timeout for the whole turn counts. A script has no timeouts.
fn is_silent(run: &Run, agent: &Agent, seen: &MonitoredTurn, now: Timestamp) -> bool {
    if !run.settings.answerer.calls_model() {
        return false;
    }
    let limits = run.supervision_of(agent).limits();
    let granted = if seen.at_work { limits.timeout_ms } else { limits.idle_timeout_ms };
    now.since(seen.progressed.max(agent.since)) > granted / 2
}
