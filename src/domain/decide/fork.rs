//! Decisions on forks and joins: the children, their maximum number, and the end of a wait.

use std::collections::HashSet;

use super::failure::FailedTurn;
use super::{TurnJudgement, TurnReport, give_up, repair};
use crate::domain::agent::Agent;
use crate::domain::event::{Event, JoinBegun, JoinFinished, StoppedChild};
use crate::domain::fork::{ForkGroup, size};
use crate::domain::id::AgentId;
use crate::domain::join::{
    Join, JoinFallback, JoinOutcome, JoinTally, UnjoinedChildren, UnjoinedPolicy,
};
use crate::domain::policy::{AcceptedTransition, ProtocolViolation};
use crate::domain::reminder::reminder;
use crate::domain::run::{AgentEnding, PauseReason, Run};
use crate::domain::time::{Timestamp, span};
use crate::domain::transition::Transition;
use crate::domain::turn::FailureCause;
use crate::domain::turn_cost::TurnCost;

/// The maximum number of failed agents that are named.
const NAMED: usize = 3;

/// Returns the pause that is due if `more` further agents do not fit into the run now.
pub(super) fn no_room(run: &Run, more: usize) -> Option<PauseReason> {
    let (live, limit) = (run.agents.len(), run.settings.forking.max_agents);
    let fits = live.saturating_add(more) <= usize::try_from(limit).unwrap_or(usize::MAX);
    (!fits).then_some(PauseReason::Agents { live, more, limit })
}

/// Returns the event that replaces an impossible fork. Without room for the children, the agent may fork fewer, if
/// its state has a policy to remind it of. Otherwise the run pauses: if the agent failed, it would make room for
/// the next one that forks without end. Its turn is judged again when the run resumes, so no paid work is lost.
pub(super) fn refused(
    run: &Run,
    agent: &Agent,
    accepted: &AcceptedTransition,
    report: &TurnReport,
) -> Option<Event> {
    let transition = &accepted.transition;
    let Transition::Fork { .. } = transition else { return None };
    if report.births.is_empty() && !transition.is_plain_fork() {
        let why = "only a reply can fork several agents at once, or into a directory of their own";
        let (asked, why) = (transition.to_string(), why.to_owned());
        let violation = ProtocolViolation::Fork { asked, why };
        return Some(give_up(agent, report, FailureCause::Protocol, violation.to_string()));
    }
    let pause = no_room(run, size(&report.births).max(1))?;
    let why = format!("there is no room: {pause} (--max-agents)");
    let violation = ProtocolViolation::Fork { asked: transition.to_string(), why };
    let reminder = reminder(&report.allowed, &violation);
    let reminder = reminder.filter(|_| report.judgement != TurnJudgement::NotStarted);
    match repair(run, agent, &violation.to_string(), reminder.as_deref(), report) {
        rejected @ Event::TurnRejected(_) => Some(rejected),
        _ => Some(Event::RunPaused { pause }),
    }
}

/// Returns the children of a step; all but the first of a group start later.
pub(super) fn born(
    run: &Run,
    accepted: &AcceptedTransition,
    report: &TurnReport,
    now: Timestamp,
) -> Vec<ForkGroup> {
    let Transition::Fork { .. } = &accepted.transition else { return Vec::new() };
    let stagger = report.stagger_ms.unwrap_or(run.settings.forking.stagger_ms);
    let mut broods = report.births.clone();
    if stagger > 0 {
        for brood in broods.iter_mut().filter(|brood| brood.agents.len() > 1) {
            brood.not_before = Some(now.plus(stagger));
        }
    }
    broods
}

/// Begins the join of an agent in a state that waits for those it has forked.
pub(super) fn arrived(agent: &Agent, join: &Join, report: &TurnReport) -> Vec<Event> {
    if !agent.stage.is_first() {
        return Vec::new();
    }
    let (turn, state) = (report.turn.clone(), agent.current_state.clone());
    vec![Event::JoinBegun(Box::new(JoinBegun { turn, state, join: join.clone() }))]
}

/// Returns the events that end an agent's join, or none while it is open. `at_work` returns whether an agent is at
/// a turn.
#[must_use]
pub fn joined(
    run: &Run,
    agent: &Agent,
    now: Timestamp,
    at_work: &dyn Fn(&AgentId) -> bool,
) -> Vec<Event> {
    let Some(joining) = agent.pending_join() else { return Vec::new() };
    let tally = agent.forks.tally(agent.stack.len());
    let is_late = joining.until().is_some_and(|until| until <= now);
    let verdict = joining.join.verdict(tally).or(is_late.then_some(JoinOutcome::Late));
    let Some(verdict) = verdict else { return Vec::new() };
    let stopped = unneeded(run, agent, &joining.join)
        .map(|agent| StoppedChild { at_work: at_work(agent), agent: agent.clone() });
    over(run, agent, &joining.join, (verdict, tally), stopped.collect())
}

fn over(
    run: &Run,
    agent: &Agent,
    join: &Join,
    (verdict, tally): (JoinOutcome, JoinTally),
    stopped: Vec<StoppedChild>,
) -> Vec<Event> {
    let otherwise = match verdict {
        JoinOutcome::Met => &JoinFallback::Keep,
        JoinOutcome::Missed => &join.on_failure,
        JoinOutcome::Late => &join.on_timeout,
    };
    let enters = match otherwise {
        JoinFallback::State(state) => Some(state.clone()),
        JoinFallback::Fail | JoinFallback::Keep => None,
    };
    let joined = Event::Joined(Box::new(JoinFinished {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        verdict,
        tally,
        enters,
        stopped,
    }));
    let failed = (*otherwise == JoinFallback::Fail).then(|| {
        FailedTurn {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            cause: FailureCause::Join,
            cost: TurnCost::default(),
            why: why(run, agent, join, verdict, tally),
        }
        .fail(false)
    });
    std::iter::once(joined).chain(failed).collect()
}

/// Returns the live agents that a join stops: children it does without, and all their descendants.
fn unneeded<'run>(
    run: &'run Run,
    agent: &Agent,
    join: &Join,
) -> impl Iterator<Item = &'run AgentId> {
    let depth = agent.stack.len();
    let numbers = agent.forks.numbers(depth);
    let roots: HashSet<AgentId> = numbers
        .map(|number| agent.id.child(number))
        .filter(|child| join.rest == UnjoinedPolicy::Stop && run.agents.contains_key(child))
        .collect();
    let live = (!roots.is_empty()).then(|| run.agents.keys());
    let is_below = move |id: &&AgentId| id.lineage().any(|own| roots.contains(own));
    live.into_iter().flatten().filter(is_below)
}

/// Returns the reason a join was not met.
fn why(run: &Run, agent: &Agent, join: &Join, verdict: JoinOutcome, tally: JoinTally) -> String {
    let JoinTally { count, done, failed } = tally;
    let wanted = join.need;
    if verdict == JoinOutcome::Late {
        let time = span(join.timeout_ms.unwrap_or_default());
        return format!(
            "{done} of the {count} agents it waited for had finished after {time} (join: {wanted}); on_timeout: keep continues with those"
        );
    }
    if count < join.needs(count) {
        return format!(
            "it waits for {wanted} of its forked agents, but has forked {}; fork them first, or use join: all",
            if count == 0 { "none".to_owned() } else { format!("only {count}") }
        );
    }
    format!(
        "{failed} of the {count} agents it waited for failed (join: {wanted}); on_failure: keep continues without them. {}",
        first_failures(run, agent, &agent.forks)
    )
}

fn first_failures(run: &Run, agent: &Agent, forks: &UnjoinedChildren) -> String {
    let own = run.finished.iter().filter(|ended| {
        ended.id.parent() == Some(agent.id.as_str()) && forks.contains(ended.id.number())
    });
    let failed = own.filter_map(|ended| match &ended.ending {
        AgentEnding::Error(error) => Some(format!("{}: {error}", ended.id)),
        AgentEnding::Result(_) => None,
    });
    failed.take(NAMED).collect::<Vec<_>>().join("; ")
}
