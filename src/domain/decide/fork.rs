//! Decisions on forks: the children, and their maximum number.

use super::{TurnJudgement, TurnReport, give_up, repair};
use crate::domain::agent::Agent;
use crate::domain::event::Event;
use crate::domain::fork::{ForkGroup, forked_count};
use crate::domain::policy::{AcceptedTransition, ProtocolViolation};
use crate::domain::reminder::reminder;
use crate::domain::run::{PauseReason, Run};
use crate::domain::time::Timestamp;
use crate::domain::transition::Transition;
use crate::domain::turn::FailureCause;

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
