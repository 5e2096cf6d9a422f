//! Decisions on joins: the beginning and the end of an agent's wait for those it has forked.
//!
//! Decisions on forks: the children, and their maximum number.

use std::collections::HashSet;

use crate::agent::Agent;
use crate::decide::failure::FailedTurn;
use crate::decide::{TurnJudgement, TurnReport, give_up, repair};
use crate::event::{Event, JoinBegun, JoinFinished, StoppedChild};
use crate::id::AgentId;
use crate::join::{Join, JoinFallback, JoinOutcome, JoinTally, UnjoinedChildren, UnjoinedPolicy};
use crate::policy::{AcceptedTransition, ProtocolViolation};
use crate::reminder::reminder;
use crate::run::{AgentEnding, PauseReason, Run};
use crate::settings::{ForkGroup, forked_count};
use crate::time::{Timestamp, format_duration};
use crate::transition::Transition;
use crate::turn::{FailureCause, TurnCost};

/// The maximum number of failed agents that are named.
const MAX_NAMED_FAILURES: usize = 12;

/// Begins the join of an agent in a state that waits for those it has forked.
pub(super) fn begin_join(agent: &Agent, join: &Join, report: &TurnReport) -> Vec<Event> {
    if !agent.stage.is_first() {
        return Vec::new();
    }
    let (turn, state) = (report.turn.clone(), agent.current_state.clone());
    vec![Event::JoinBegun(Box::new(JoinBegun { turn, state, join: join.clone() }))]
}

/// Returns the events that end an agent's join, or none while it is open. `at_work` returns whether an agent is at
/// a turn.
pub fn finish_join(
    run: &Run,
    agent: &Agent,
    now: Timestamp,
    at_work: &dyn Fn(&AgentId) -> bool,
) -> Vec<Event> {
    let Some(pending) = agent.pending_join() else { return Vec::new() };
    let tally = agent.unjoined.tally(agent.join_depth());
    let is_late = pending.until().is_some_and(|until| until <= now);
    let outcome = pending.join.outcome(tally).or(is_late.then_some(JoinOutcome::Late));
    let Some(outcome) = outcome else { return Vec::new() };
    let stopped = unneeded(run, agent, &pending.join)
        .map(|agent| StoppedChild { at_work: at_work(agent), agent: agent.clone() });
    end_join(run, agent, &pending.join, (outcome, tally), stopped.collect())
}

fn end_join(
    run: &Run,
    agent: &Agent,
    join: &Join,
    (outcome, tally): (JoinOutcome, JoinTally),
    stopped: Vec<StoppedChild>,
) -> Vec<Event> {
    let fallback = join.fallback(outcome);
    let enters = match fallback {
        JoinFallback::State(state) => Some(state.clone()),
        JoinFallback::Fail | JoinFallback::Keep => None,
    };
    let joined = Event::JoinFinished(Box::new(JoinFinished {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        outcome,
        tally,
        enters,
        stopped,
    }));
    let failed = (*fallback == JoinFallback::Fail).then(|| {
        FailedTurn {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            folder: agent.folder(),
            cause: FailureCause::Join,
            cost: TurnCost::default(),
            why: unmet_reason(run, agent, join, outcome, tally),
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
    let depth = agent.join_depth();
    let numbers = agent.unjoined.numbers(depth);
    let roots: HashSet<AgentId> = numbers
        .map(|number| agent.id.child(number))
        .filter(|child| join.rest == UnjoinedPolicy::Stop && run.agents.contains_key(child))
        .collect();
    let live = (!roots.is_empty()).then(|| run.agents.keys());
    let is_below = move |id: &&AgentId| id.lineage().any(|own| roots.contains(own));
    live.into_iter().flatten().filter(is_below)
}

/// Returns the reason a join was not met.
fn unmet_reason(
    run: &Run,
    agent: &Agent,
    join: &Join,
    outcome: JoinOutcome,
    tally: JoinTally,
) -> String {
    let JoinTally { count, done, failed } = tally;
    let wanted = join.need;
    if outcome == JoinOutcome::Late {
        let time = format_duration(join.timeout_ms.unwrap_or_default());
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
        "{failed} of the {count} agents it waited for failed (join: {wanted}): {}; on_failure: keep continues without them",
        first_failed(run, agent, &agent.unjoined)
    )
}

/// Returns the ids of the first agents that failed. Each has told its own reason.
fn first_failed(run: &Run, agent: &Agent, forks: &UnjoinedChildren) -> String {
    let failed = run.finished.iter().filter(|ended| {
        ended.id.parent() == Some(agent.id.as_str())
            && forks.contains(ended.id.number())
            && matches!(ended.ending, AgentEnding::Error(_))
    });
    let failed: Vec<&str> = failed.map(|ended| ended.id.as_str()).collect();
    match failed.split_at_checked(MAX_NAMED_FAILURES) {
        Some((named, more)) if !more.is_empty() => {
            format!("{} and {} more", named.join(", "), more.len())
        }
        _ => failed.join(", "),
    }
}

/// Returns the pause that is due if `more` further agents do not fit into the run now.
pub(super) fn no_room(run: &Run, more: usize) -> Option<PauseReason> {
    let (live, limit) = (run.agents.len(), run.settings.forking.max_agents);
    let fits = live.saturating_add(more) <= usize::try_from(limit).unwrap_or(usize::MAX);
    (!fits).then_some(PauseReason::Agents { live, more, limit })
}

/// Returns the event that replaces an impossible fork. Without room for the children, the agent may fork fewer, if
/// its state has a policy to remind it of. Otherwise the run pauses: failing the agent would only make
/// room for the next one that forks without end. Its turn is judged again when the run resumes, so no paid work is lost.
pub(super) fn reject_fork(
    run: &Run,
    agent: &Agent,
    accepted: &AcceptedTransition,
    report: &TurnReport,
) -> Option<Event> {
    let transition = &accepted.transition;
    let Transition::Fork { .. } = transition else { return None };
    if report.children.is_empty() && !transition.is_plain_fork() {
        let why = "only a reply can fork several agents at once, or into separate directories";
        let (asked, why) = (transition.in_short(), why.to_owned());
        let violation = ProtocolViolation::Fork { asked, why };
        return Some(give_up(agent, report, FailureCause::Protocol, violation.to_string()));
    }
    let pause = no_room(run, forked_count(&report.children))?;
    let why = format!("no room: {pause} (--max-agents)");
    let violation = ProtocolViolation::Fork { asked: transition.in_short(), why };
    let reminder = reminder(&report.allowed, &violation);
    let reminder = reminder.filter(|_| report.judgement != TurnJudgement::NotStarted);
    match repair(run, agent, &violation.to_string(), reminder.as_deref(), report) {
        rejected @ Event::TurnRejected(_) => Some(rejected),
        _ => Some(Event::RunPaused { pause }),
    }
}

/// Returns the children of a step; all but the first of a group start later.
pub(super) fn fork_groups(
    run: &Run,
    accepted: &AcceptedTransition,
    report: &TurnReport,
    now: Timestamp,
) -> Vec<ForkGroup> {
    let Transition::Fork { .. } = &accepted.transition else { return Vec::new() };
    let stagger = report.stagger_ms.unwrap_or(run.settings.forking.stagger_ms);
    let mut groups = report.children.clone();
    if stagger > 0 {
        for group in groups.iter_mut().filter(|group| group.agents.len() > 1) {
            group.not_before = Some(now.plus(stagger));
        }
    }
    groups
}
