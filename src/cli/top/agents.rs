//! The current activity of each agent, from the run and the observed turns. Pure.
//!
//! It is made anew for all agents at each change, so an [`AgentEntry`] is small, and texts are not copied before a
//! row is drawn.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};

use crate::domain::agent::{Agent, TurnHold};
use crate::domain::budget::{BudgetCheck, RunningTurn};
use crate::domain::id::{AgentId, StateName};
use crate::domain::money::Usd;
use crate::domain::run::{AgentEnding, FinishedAgent, Run, RunStatus};
use crate::domain::settings::AnswererKind;
use crate::domain::time::Timestamp;
use crate::domain::turn::FailureCause;

/// The observation of a turn that has been begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MonitoredTurn {
    /// Its last observed activity.
    pub(super) doing: Option<String>,
    /// The number of tokens it has taken so far.
    pub(super) tokens: u64,
    /// True if a tool is at work.
    pub(super) at_work: bool,
    /// The time of its last progress.
    pub(super) progressed: Timestamp,
}

/// The observation of a run from outside.
#[derive(Debug, Clone, Copy)]
pub(super) struct MonitoredRun<'run> {
    /// The run.
    pub(super) run: &'run Run,
    /// True if a raymond holds it.
    pub(super) held: bool,
    /// The observed turns that are due and have been begun.
    pub(super) seen: &'run HashMap<AgentId, MonitoredTurn>,
    /// The current time.
    pub(super) now: Timestamp,
}

/// The activity of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopAgentStatus {
    /// The turn runs, but has been silent for so long that it may be ended.
    Silent,
    /// It waits for a person who has to resume the run.
    Someone,
    /// Its turn runs.
    Running,
    /// The turn was begun by a raymond that is gone.
    Left,
    /// It waits.
    Waiting(TopWaitReason),
    /// It ended with an error.
    Failed,
    /// It ended with a result.
    Ended,
    /// It was ended, because the agent that waited for it continued without it.
    Unneeded,
}

/// The reason why an agent waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopWaitReason {
    /// It waits for one of the run's permits.
    Permit,
    /// It waits for the end of other agents.
    Agents,
    /// It waits for a permit or is at work: a script's turns leave no trace.
    Script,
    /// Running turns have reserved the rest of a budget.
    Budget,
    /// It waits until its turn is retried at this time.
    Backoff(Timestamp),
    /// It starts at this time, after the first of the agents it was forked with.
    Stagger(Timestamp),
    /// A plug-in holds it back until this time.
    PlugIn(Timestamp),
    /// It waits for the reset of the account's usage limit at this time.
    UsageLimit(Timestamp),
    /// The run is paused.
    Paused,
    /// No raymond holds the run.
    Nobody,
}

/// The activity of an agent, without times.
type TopStatusClass = (Discriminant<TopAgentStatus>, Option<Discriminant<TopWaitReason>>);

/// A kind of agents that can be shown alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum StatusFilter {
    Running,
    Waiting,
    Stuck,
    Failed,
    Ended,
}

impl TopAgentStatus {
    /// Returns its kind.
    pub(super) fn kind(self) -> StatusFilter {
        match self {
            Self::Silent | Self::Someone => StatusFilter::Stuck,
            Self::Running => StatusFilter::Running,
            Self::Left | Self::Waiting(_) => StatusFilter::Waiting,
            Self::Failed => StatusFilter::Failed,
            Self::Ended | Self::Unneeded => StatusFilter::Ended,
        }
    }

    /// Returns its rank: the stuck first, then the busy.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Silent | Self::Someone => 0,
            Self::Running => 1,
            Self::Left => 2,
            Self::Waiting(TopWaitReason::Backoff(_) | TopWaitReason::PlugIn(_)) => 3,
            Self::Waiting(_) => 4,
            Self::Failed => 5,
            Self::Ended | Self::Unneeded => 6,
        }
    }

    /// Returns the class that is the same for all agents with this activity.
    pub(super) fn class(self) -> TopStatusClass {
        let why = if let Self::Waiting(why) = self { Some(discriminant(&why)) } else { None };
        (discriminant(&self), why)
    }

    /// Returns the rank of its kind, if it must not be overlooked in a row of many.
    pub(super) fn stands_out(self) -> Option<u8> {
        match self.kind() {
            StatusFilter::Stuck => Some(0),
            StatusFilter::Running => Some(1),
            StatusFilter::Failed => Some(2),
            StatusFilter::Waiting | StatusFilter::Ended => None,
        }
    }
}

/// An agent on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AgentEntry {
    /// Its id.
    pub(super) id: AgentId,
    /// The state it began in, if known.
    pub(super) began: Option<StateName>,
    /// The state it is in; `None` if it has ended.
    pub(super) state: Option<StateName>,
    /// Its activity.
    pub(super) doing: TopAgentStatus,
    /// The time of its last progress; `None` if it has ended.
    pub(super) since: Option<Timestamp>,
    /// The cost of its turns.
    pub(super) spent: Usd,
    /// Its place among those that have ended.
    pub(super) ended: Option<usize>,
}

/// A check of the budget for turns, cached per state if no agent has a share of its own.
struct BudgetCache<'run> {
    run: &'run Run,
    running: Vec<RunningTurn<'run>>,
    by_state: HashMap<&'run StateName, bool>,
}

impl<'run> BudgetCache<'run> {
    fn of(known: MonitoredRun<'run>) -> Self {
        let running = known.seen.keys().filter_map(|id| known.run.agents.get(id));
        let running = running.map(|agent| (&agent.id, agent.prompt())).collect();
        Self { run: known.run, running, by_state: HashMap::new() }
    }

    fn is_short_for(&mut self, agent: &'run Agent) -> bool {
        let run = self.run;
        let ask = || {
            let running = self.running.iter().copied();
            run.purse().means((&agent.id, agent.prompt()), &running) != BudgetCheck::Enough
        };
        match (run.settings.budget_usd, run.shares.is_empty()) {
            (None, true) => false,
            (Some(_), true) => *self.by_state.entry(agent.prompt()).or_insert_with(ask),
            (_, false) => ask(),
        }
    }
}

/// Returns all agents of a run: the live ones in no order, then the ended ones.
pub(super) fn entries(known: MonitoredRun<'_>) -> Vec<AgentEntry> {
    let mut money = BudgetCache::of(known);
    let live = known.run.agents.unordered().map(|agent| live(known, &mut money, agent));
    let ended = known.run.finished.iter().enumerate().map(|(place, agent)| ended(place, agent));
    live.chain(ended).collect()
}

fn live<'run>(
    known: MonitoredRun<'run>,
    money: &mut BudgetCache<'run>,
    agent: &'run Agent,
) -> AgentEntry {
    let seen = known.seen.get(&agent.id);
    let doing = match doing(known, agent, seen) {
        TopAgentStatus::Waiting(TopWaitReason::Permit) if money.is_short_for(agent) => {
            TopAgentStatus::Waiting(TopWaitReason::Budget)
        }
        doing => doing,
    };
    let turns = matches!(doing, TopAgentStatus::Silent | TopAgentStatus::Running);
    let progressed = seen.filter(|_| turns).map(|seen| seen.progressed);
    AgentEntry {
        id: agent.id.clone(),
        began: Some(agent.birth.state.clone()),
        state: Some(agent.place()),
        doing,
        since: Some(progressed.map_or(agent.since, |progressed| progressed.max(agent.since))),
        spent: agent.cost_usd,
        ended: None,
    }
}

fn ended(place: usize, agent: &FinishedAgent) -> AgentEntry {
    AgentEntry {
        id: agent.id.clone(),
        began: agent.state.clone(),
        state: None,
        doing: match (&agent.ending, agent.cause) {
            (AgentEnding::Error(_), Some(FailureCause::Unneeded)) => TopAgentStatus::Unneeded,
            (AgentEnding::Error(_), _) => TopAgentStatus::Failed,
            (AgentEnding::Result(_), _) => TopAgentStatus::Ended,
        },
        since: None,
        spent: agent.cost_usd,
        ended: Some(place),
    }
}

fn doing(known: MonitoredRun<'_>, agent: &Agent, seen: Option<&MonitoredTurn>) -> TopAgentStatus {
    let MonitoredRun { run, held, now, .. } = known;
    if agent.parked_reason().is_some() || agent.question().is_some() {
        return TopAgentStatus::Someone;
    }
    if agent.awaited_agent().is_some() || agent.pending_join().is_some() {
        return TopAgentStatus::Waiting(TopWaitReason::Agents);
    }
    if agent.runs_graph() && held && run.status == RunStatus::Running {
        return TopAgentStatus::Running;
    }
    if let Some(until) = agent.not_before().filter(|&until| held && until > now) {
        return TopAgentStatus::Waiting(match &agent.hold {
            Some(TurnHold::Plugin { .. }) => TopWaitReason::PlugIn(until),
            Some(TurnHold::Stagger { .. }) => TopWaitReason::Stagger(until),
            Some(TurnHold::Backoff { .. } | TurnHold::Person { .. }) | None => {
                TopWaitReason::Backoff(until)
            }
        });
    }
    match seen {
        Some(seen) if held && is_silent(run, agent, seen, now) => return TopAgentStatus::Silent,
        Some(_) if held => return TopAgentStatus::Running,
        Some(_) => return TopAgentStatus::Left,
        None => {}
    }
    TopAgentStatus::Waiting(match run.limited(now) {
        _ if run.status == RunStatus::Paused => TopWaitReason::Paused,
        _ if !held => TopWaitReason::Nobody,
        Some(until) => TopWaitReason::UsageLimit(until),
        None if run.settings.answerer == AnswererKind::Scripted => TopWaitReason::Script,
        None => TopWaitReason::Permit,
    })
}

/// Returns whether a turn has been silent for half of its idle timeout. A tool at work is no silence, so then half
/// of the timeout for the whole turn counts.
fn is_silent(run: &Run, agent: &Agent, seen: &MonitoredTurn, now: Timestamp) -> bool {
    let limits = run.supervision_of(agent).limits();
    let granted = if seen.at_work { limits.timeout_ms } else { limits.idle_timeout_ms };
    now.since(seen.progressed.max(agent.since)) > granted / 2
}

#[cfg(test)]
mod tests;
