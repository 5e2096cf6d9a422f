//! From what a turn came to, to the events that are recorded.
//!
//! The agent reports, this decides, the supervisor appends. What must be chosen at random or read
//! from a clock comes in as [`Chosen`], so the decision itself can be replayed in a test.

use super::agent::Agent;
use super::event::{AgentFailed, Event, StepFinished, TurnFailed, TurnRejected};
use super::id::{MessageId, SessionId};
use super::money::Usd;
use super::policy::Accepted;
use super::restart::{Reaction, react};
use super::run::Run;
use super::time::Timestamp;
use super::transition::Transition;
use super::turn::{Cause, Failure, TurnId};

/// What an agent tells the supervisor at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The turn that ended.
    pub turn: TurnId,
    /// What it cost.
    pub cost: Usd,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Its last message.
    pub message: Option<MessageId>,
    /// What came of it.
    pub verdict: Verdict,
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
            duration_ms: 0,
            message: None,
            verdict: Verdict::Failed(failure),
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
    /// A number from 0 up to 1.
    pub chance: f64,
}

/// The events that follow from a report, in order; none if it comes late or twice.
#[must_use]
pub fn decide(run: &Run, report: &Report, chosen: Chosen) -> Vec<Event> {
    let Some(agent) =
        run.agents.get(&report.turn.agent).filter(|agent| agent.turn_id() == report.turn)
    else {
        return Vec::new();
    };
    match &report.verdict {
        Verdict::Accepted(accepted) => {
            vec![step_finished(agent, accepted, report, chosen.session)]
        }
        Verdict::Violated { violation, reminder } => {
            vec![repair(run, agent, violation, reminder.as_deref(), report)]
        }
        Verdict::Failed(failure) => failed(run, agent, failure, report, chosen),
    }
}

fn step_finished(agent: &Agent, accepted: &Accepted, report: &Report, fresh: SessionId) -> Event {
    let opens = match accepted.transition {
        Transition::Goto { .. } | Transition::Result { .. } => None,
        Transition::Reset { .. }
        | Transition::Call { .. }
        | Transition::Function { .. }
        | Transition::Fork { .. } => Some(fresh),
    };
    Event::StepFinished(StepFinished {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        transition: accepted.transition.clone(),
        implicit: accepted.implicit,
        cost_usd: report.cost,
        duration_ms: report.duration_ms,
        session_id: agent.session.id.clone(),
        message: report.message.clone(),
        opens,
    })
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
            duration_ms: report.duration_ms,
            message: report.message.clone(),
        }),
        Some(_) => give_up(
            agent,
            report,
            Cause::Protocol,
            &format!("{violation} (still so after {limit} reminders)"),
        ),
        None => give_up(
            agent,
            report,
            Cause::Protocol,
            &format!(
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
    let again = |not_before, counts| {
        Event::TurnFailed(TurnFailed {
            turn: report.turn.clone(),
            state: agent.current_state.clone(),
            cause: failure.cause,
            message: failure.message.clone(),
            cost_usd: report.cost,
            session: (failure.cause != Cause::Panic).then_some(chosen.session),
            not_before,
            counts,
        })
    };
    match react(agent, failure, &run.settings.supervision, chosen.now, chosen.chance) {
        Reaction::Again { not_before, counts } => vec![again(not_before, counts)],
        Reaction::Pause(pause) => vec![again(None, false), Event::RunPaused { pause }],
        Reaction::GiveUp { because } => {
            let suffix = because.map(|because| format!(" ({because})")).unwrap_or_default();
            vec![give_up(agent, report, failure.cause, &format!("{}{suffix}", failure.message))]
        }
    }
}

fn give_up(agent: &Agent, report: &Report, cause: Cause, why: &str) -> Event {
    Event::AgentFailed(AgentFailed {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        cause,
        error: format!("in {}: {why}", agent.current_state),
        cost_usd: report.cost,
    })
}

#[cfg(test)]
mod tests;
