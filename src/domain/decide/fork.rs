//! What follows from a fork and from a join: who is born, how many may be, and when a wait is over.

use std::collections::HashSet;

use super::failure::Ended;
use super::{Judgement, Report, give_up, repair};
use crate::domain::agent::Agent;
use crate::domain::event::{Event, JoinBegun, Joined, Stopped};
use crate::domain::fan_out::{Brood, size};
use crate::domain::id::AgentId;
use crate::domain::join::{Forks, Join, Otherwise, Rest, Tally, Verdict};
use crate::domain::money::Usd;
use crate::domain::policy::{Accepted, Violation};
use crate::domain::refusal::ToolRefusals;
use crate::domain::reminder::reminder;
use crate::domain::run::{Ending, Pause, Run};
use crate::domain::time::{Timestamp, span};
use crate::domain::transition::Transition;
use crate::domain::turn::Cause;
use crate::domain::usage::Usage;

/// How many of the failed are named.
const NAMED: usize = 3;

/// The pause that is due if so many more agents cannot be born now.
pub(super) fn no_room(run: &Run, more: usize) -> Option<Pause> {
    let (live, limit) = (run.agents.len(), run.settings.forking.max_agents);
    let fits = live.saturating_add(more) <= usize::try_from(limit).unwrap_or(usize::MAX);
    (!fits).then_some(Pause::Agents { live, more, limit })
}

/// What is recorded instead of a fork that cannot be. Where there is no room for those who would be born, the
/// agent may fork fewer, if its state has a policy of which it can be reminded. Else the run pauses: if the
/// agent failed, it would make room for the next one that forks without end. Its turn is judged again when
/// the run goes on, so nothing that was paid for is lost.
pub(super) fn refused(
    run: &Run,
    agent: &Agent,
    accepted: &Accepted,
    report: &Report,
) -> Option<Event> {
    let transition = &accepted.transition;
    let Transition::Fork { .. } = transition else { return None };
    if report.births.is_empty() && !transition.is_plain_fork() {
        let why =
            "several agents at once, or in a directory of their own, are born only of a reply";
        let (asked, why) = (transition.to_string(), why.to_owned());
        let violation = Violation::Fork { asked, why };
        return Some(give_up(agent, report, Cause::Protocol, violation.to_string()));
    }
    let pause = no_room(run, size(&report.births).max(1))?;
    let why = format!("there is no room: {pause} (--max-agents)");
    let violation = Violation::Fork { asked: transition.to_string(), why };
    let reminder = reminder(&report.allowed, &violation);
    let reminder = reminder.filter(|_| report.judgement != Judgement::NotStarted);
    match repair(run, agent, &violation.to_string(), reminder.as_deref(), report) {
        rejected @ Event::TurnRejected(_) => Some(rejected),
        _ => Some(Event::RunPaused { pause }),
    }
}

/// Who is born of a step: all but the first of a brood start later.
pub(super) fn born(run: &Run, accepted: &Accepted, report: &Report, now: Timestamp) -> Vec<Brood> {
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

/// An agent has come to a state that waits for those it has forked.
pub(super) fn arrived(agent: &Agent, join: &Join, report: &Report) -> Vec<Event> {
    if agent.join.is_some() || agent.results.is_some() {
        return Vec::new();
    }
    let (turn, state) = (report.turn.clone(), agent.current_state.clone());
    vec![Event::JoinBegun(Box::new(JoinBegun { turn, state, join: join.clone() }))]
}

/// What is recorded of an agent that waits for those it has forked: nothing, while that is still open.
/// `at_work` tells who is at a turn.
#[must_use]
pub fn joined(
    run: &Run,
    agent: &Agent,
    now: Timestamp,
    at_work: &dyn Fn(&AgentId) -> bool,
) -> Vec<Event> {
    let Some(joining) = agent.join.as_deref() else { return Vec::new() };
    let tally = agent.forks.tally(agent.stack.len());
    let is_late = joining.until().is_some_and(|until| until <= now);
    let verdict = joining.join.verdict(tally).or(is_late.then_some(Verdict::Late));
    let Some(verdict) = verdict else { return Vec::new() };
    let stopped = unneeded(run, agent, &joining.join)
        .map(|agent| Stopped { at_work: at_work(agent), agent: agent.clone() });
    over(run, agent, &joining.join, (verdict, tally), stopped.collect())
}

fn over(
    run: &Run,
    agent: &Agent,
    join: &Join,
    (verdict, tally): (Verdict, Tally),
    stopped: Vec<Stopped>,
) -> Vec<Event> {
    let otherwise = match verdict {
        Verdict::Met => &Otherwise::Keep,
        Verdict::Missed => &join.on_failure,
        Verdict::Late => &join.on_timeout,
    };
    let enters = match otherwise {
        Otherwise::State(state) => Some(state.clone()),
        Otherwise::Fail | Otherwise::Keep => None,
    };
    let joined = Event::Joined(Box::new(Joined {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        verdict,
        tally,
        enters,
        stopped,
    }));
    let failed = (*otherwise == Otherwise::Fail).then(|| {
        Ended {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            cause: Cause::Join,
            cost_usd: Usd::ZERO,
            estimated: false,
            usage: Usage::default(),
            refused_tools: ToolRefusals::default(),
            why: why(run, agent, join, verdict, tally),
        }
        .fail(false)
    });
    std::iter::once(joined).chain(failed).collect()
}

/// Those that still live of the agents a join goes on without, with all that descend from them, if they
/// are to be stopped.
fn unneeded<'run>(
    run: &'run Run,
    agent: &Agent,
    join: &Join,
) -> impl Iterator<Item = &'run AgentId> {
    let depth = agent.stack.len();
    let numbers = agent.forks.numbers(depth);
    let roots: HashSet<AgentId> = numbers
        .map(|number| agent.id.child(number))
        .filter(|child| join.rest == Rest::Stop && run.agents.contains_key(child))
        .collect();
    let live = (!roots.is_empty()).then(|| run.agents.keys());
    let is_below = move |id: &&AgentId| id.lineage().any(|own| roots.contains(own));
    live.into_iter().flatten().filter(is_below)
}

/// Why a join was not met.
fn why(run: &Run, agent: &Agent, join: &Join, verdict: Verdict, tally: Tally) -> String {
    let Tally { count, done, failed } = tally;
    let wanted = join.need;
    if verdict == Verdict::Late {
        let time = span(join.timeout_ms.unwrap_or_default());
        return format!(
            "{done} of the {count} agents it waited for had ended well after {time} (join: {wanted}); on_timeout: keep goes on with those"
        );
    }
    if count < join.needs(count) {
        return format!(
            "it waits for {wanted} of the agents it forked, and has forked {}; fork them before, or join: all",
            if count == 0 { "none".to_owned() } else { format!("only {count}") }
        );
    }
    format!(
        "{failed} of the {count} agents it waited for failed (join: {wanted}); on_failure: keep goes on without them. {}",
        first_failures(run, agent, &agent.forks)
    )
}

fn first_failures(run: &Run, agent: &Agent, forks: &Forks) -> String {
    let own = run.finished.iter().filter(|ended| {
        ended.id.parent() == Some(agent.id.as_str()) && forks.contains(ended.id.number())
    });
    let failed = own.filter_map(|ended| match &ended.ending {
        Ending::Error(error) => Some(format!("{}: {error}", ended.id)),
        Ending::Result(_) => None,
    });
    failed.take(NAMED).collect::<Vec<_>>().join("; ")
}
