//! From what a turn came to, to the events that are recorded.
//!
//! The agent reports, this decides, the supervisor appends. What must be chosen at random or read
//! from a clock comes in as [`Chosen`], so the decision itself can be replayed in a test.

use super::agent::Agent;
use super::event::{
    AgentFailed, AgentParked, Event, Reborn, StepFinished, TurnFailed, TurnRejected,
};
use super::id::{MessageId, SessionId, StateName};
use super::money::Usd;
use super::policy::Accepted;
use super::restart::{Circumstances, Reaction, react, restart};
use super::run::Run;
use super::supervision::{Exhausted, Overrides, Restart, Supervision};
use super::time::Timestamp;
use super::transition::Transition;
use super::turn::{Cause, Failure, TurnId};
use super::usage::Usage;

/// What an agent tells the supervisor at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The turn that ended.
    pub turn: TurnId,
    /// What it cost.
    pub cost: Usd,
    /// What it took of each model for that.
    pub usage: Usage,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Its last message.
    pub message: Option<MessageId>,
    /// What came of it.
    pub verdict: Verdict,
    /// In what the agent it forks is supervised differently, by the state that is born in.
    pub child: Overrides,
}

/// What came of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// A transition that the state allows.
    Accepted(Accepted),
    /// A reply that breaks the protocol.
    Violated {
        /// What is wrong with it.
        violation: String,
        /// How the agent can be asked to repair it, if the state has a policy.
        reminder: Option<String>,
    },
    /// No reply.
    Failed(Failure),
}

impl Report {
    /// A turn that came to nothing.
    #[must_use]
    pub fn failed(turn: TurnId, failure: Failure) -> Self {
        Self {
            turn,
            cost: failure.cost,
            usage: failure.usage.clone(),
            duration_ms: 0,
            message: None,
            verdict: Verdict::Failed(failure),
            child: Overrides::default(),
        }
    }
}

/// What the actor chooses, because the domain has neither a clock nor chance.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The time.
    pub now: Timestamp,
    /// An id for the session that may have to be opened.
    pub session: SessionId,
    /// The id of one that is ready, if it is opened without any history.
    pub ready: Option<SessionId>,
    /// A number from 0 up to 1.
    pub chance: f64,
}

/// The events that follow from a report, in order; none if it comes late or twice.
#[must_use]
pub fn decide(run: &Run, report: &Report, chosen: Chosen) -> Vec<Event> {
    let Some(agent) =
        run.agents.get(&report.turn.agent).filter(|agent| agent.turn_id() == report.turn)
    else {
        return late_cost(run, report);
    };
    match &report.verdict {
        Verdict::Accepted(accepted) => step_finished(run, agent, accepted, report, chosen),
        Verdict::Violated { violation, reminder } => {
            vec![repair(run, agent, violation, reminder.as_deref(), report)]
        }
        Verdict::Failed(failure) => failed(run, agent, failure, report, chosen),
    }
}

/// A turn that was ended with the whole run is still to be paid for.
fn late_cost(run: &Run, report: &Report) -> Vec<Event> {
    let owing = run.finished.iter().any(|ended| ended.owes.as_ref() == Some(&report.turn));
    if !owing || report.cost == Usd::ZERO {
        return Vec::new();
    }
    vec![Event::CostCounted {
        turn: report.turn.clone(),
        cost_usd: report.cost,
        usage: report.usage.clone(),
    }]
}

fn step_finished(
    run: &Run,
    agent: &Agent,
    accepted: &Accepted,
    report: &Report,
    chosen: Chosen,
) -> Vec<Event> {
    let ends = matches!(accepted.transition, Transition::Result { .. }) && agent.stack.is_empty();
    let supervision = run.supervision_of(agent);
    let (reborn, exhausted) = if ends && supervision.restart == Restart::Permanent {
        match restart(agent, circumstances(run, &supervision, &chosen)) {
            Reaction::Exhausted { because, then } => (Some(chosen.now), Some((because, then))),
            Reaction::Again { not_before, .. } => (Some(not_before.unwrap_or(chosen.now)), None),
            _ => (None, None),
        }
    } else {
        (None, None)
    };
    let opens = match accepted.transition {
        Transition::Goto { .. } => None,
        Transition::Call { .. } => Some(chosen.session),
        Transition::Result { .. } if reborn.is_none() => None,
        Transition::Result { .. }
        | Transition::Reset { .. }
        | Transition::Function { .. }
        | Transition::Fork { .. } => Some(chosen.ready.unwrap_or(chosen.session)),
    };
    let finished = Event::StepFinished(StepFinished {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        transition: accepted.transition.clone(),
        implicit: accepted.implicit,
        cost_usd: report.cost,
        usage: report.usage.clone(),
        duration_ms: report.duration_ms,
        session_id: agent.session.id.clone(),
        message: report.message.clone(),
        opens,
        supervision: report.child.clone(),
        reborn: reborn.map(|not_before| Reborn { not_before }),
    });
    let Some((because, then)) = exhausted else { return vec![finished] };
    let next = TurnId { step: agent.step.saturating_add(1), turn: 0, ..report.turn.clone() };
    let ended = Ended {
        turn: next,
        state: agent.birth.state.clone(),
        cause: Cause::Restarts,
        cost_usd: Usd::ZERO,
        usage: Usage::default(),
        why: format!("it ended once more, and is permanent ({because}; max_restarts allows more)"),
    };
    vec![finished, exhausted_by(ended, then)]
}

fn repair(
    run: &Run,
    agent: &Agent,
    violation: &str,
    reminder: Option<&str>,
    report: &Report,
) -> Event {
    let limit = run.settings.supervision.reminders;
    match reminder {
        Some(reminder) if agent.reminders < limit => Event::TurnRejected(TurnRejected {
            turn: report.turn.clone(),
            state: agent.current_state.clone(),
            violation: violation.to_owned(),
            reminder: reminder.to_owned(),
            cost_usd: report.cost,
            usage: report.usage.clone(),
            duration_ms: report.duration_ms,
            message: report.message.clone(),
        }),
        Some(_) => give_up(
            agent,
            report,
            Cause::Protocol,
            format!("{violation} (still so after {limit} reminders)"),
        ),
        None => give_up(
            agent,
            report,
            Cause::Protocol,
            format!(
                "{violation}; list allowed_transitions in the frontmatter of {} and the agent is reminded of them",
                agent.current_state
            ),
        ),
    }
}

fn failed(
    run: &Run,
    agent: &Agent,
    failure: &Failure,
    report: &Report,
    chosen: Chosen,
) -> Vec<Event> {
    let supervision = run.supervision_of(agent);
    let reaction = react(agent, failure, circumstances(run, &supervision, &chosen));
    let again = |not_before, counts| {
        Event::TurnFailed(TurnFailed {
            turn: report.turn.clone(),
            state: agent.current_state.clone(),
            cause: failure.cause,
            message: failure.message.clone(),
            cost_usd: report.cost,
            usage: report.usage.clone(),
            session: (failure.cause != Cause::Panic).then_some(chosen.session),
            not_before,
            counts,
        })
    };
    let ended = |why| Ended {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        cause: failure.cause,
        cost_usd: report.cost,
        usage: report.usage.clone(),
        why,
    };
    match reaction {
        Reaction::Again { not_before, counts } => vec![again(not_before, counts)],
        Reaction::Pause(pause) => vec![again(None, false), Event::RunPaused { pause }],
        Reaction::GiveUp => vec![ended(failure.message.clone()).fail(false)],
        Reaction::AwaitLimit { .. } if run.limited(chosen.now).is_some() => {
            vec![again(None, false)]
        }
        Reaction::AwaitLimit { until } => {
            let message = failure.message.clone();
            vec![again(None, false), Event::LimitReached { until, message }]
        }
        Reaction::Exhausted { because, then } => {
            let why = format!("{} ({because})", failure.message);
            if then == Exhausted::Wait {
                let first = again(None, false);
                let turn = match &first {
                    Event::TurnFailed(TurnFailed { session: None, .. }) => report.turn.clone(),
                    _ => TurnId { turn: report.turn.turn.saturating_add(1), ..report.turn.clone() },
                };
                vec![first, exhausted_by(Ended { turn, ..ended(why) }, then)]
            } else {
                vec![exhausted_by(ended(why), then)]
            }
        }
    }
}

fn circumstances<'run>(
    run: &Run,
    supervision: &'run Supervision,
    chosen: &Chosen,
) -> Circumstances<'run> {
    let on_limit = run.settings.on_limit;
    Circumstances { supervision, on_limit, now: chosen.now, chance: chosen.chance }
}

/// An agent that does not go on by itself, at the turn that is due.
struct Ended {
    turn: TurnId,
    state: StateName,
    cause: Cause,
    cost_usd: Usd,
    usage: Usage,
    why: String,
}

impl Ended {
    fn fail(self, ends_run: bool) -> Event {
        Event::AgentFailed(AgentFailed {
            error: format!("in {}: {}", self.state, self.why),
            turn: self.turn,
            state: self.state,
            cause: self.cause,
            cost_usd: self.cost_usd,
            usage: self.usage,
            ends_run,
        })
    }
}

/// What follows when the restarts of an agent are used up.
fn exhausted_by(ended: Ended, then: Exhausted) -> Event {
    match then {
        Exhausted::FailAgent => ended.fail(false),
        Exhausted::FailRun => ended.fail(true),
        Exhausted::Wait => Event::AgentParked(AgentParked {
            because: format!("in {}: {}", ended.state, ended.why),
            turn: ended.turn,
            state: ended.state,
        }),
    }
}

fn give_up(agent: &Agent, report: &Report, cause: Cause, why: String) -> Event {
    Ended {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        cause,
        cost_usd: report.cost,
        usage: report.usage.clone(),
        why,
    }
    .fail(false)
}

#[cfg(test)]
mod tests;
