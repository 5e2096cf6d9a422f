//! Decisions on failed turns, and the records of agents that do not continue.

use super::late_cost::settled;
use super::{NondeterministicInputs, TurnReport};
use crate::domain::agent::Agent;
use crate::domain::event::{AgentFailed, AgentParked, Event, TurnFailed};
use crate::domain::id::{Folder, StateName};
use crate::domain::restart::{RestartContext, RestartDecision, decide_restart};
use crate::domain::run::{Run, RunStatus};
use crate::domain::supervision::{OnExhausted, SupervisionPolicy};
use crate::domain::turn::{FailureCause, TurnFailure, TurnId};
use crate::domain::turn_cost::TurnCost;

pub(super) fn turn_failed(
    run: &Run,
    agent: &Agent,
    failure: &TurnFailure,
    report: &TurnReport,
    inputs: NondeterministicInputs,
) -> Vec<Event> {
    let supervision = run.supervision_of(agent);
    let decision = decide_restart(agent, failure, restart_context(run, &supervision, &inputs));
    let cost = settled(run, report, agent.prompt());
    let again = |not_before, counts| {
        Event::TurnFailed(TurnFailed {
            turn: report.turn.clone(),
            state: agent.prompt().clone(),
            cause: failure.cause,
            message: failure.message.clone(),
            cost: cost.clone(),
            session: (failure.cause != FailureCause::Panic).then_some(inputs.session),
            not_before,
            counts,
        })
    };
    let ended = |why| FailedTurn {
        turn: report.turn.clone(),
        state: agent.prompt().clone(),
        folder: agent.folder(),
        cause: failure.cause,
        cost: cost.clone(),
        why,
    };
    match decision {
        RestartDecision::Retry { not_before, counts } => vec![again(not_before, counts)],
        // Of several turns with the same obstacle, the first pauses the run.
        RestartDecision::Pause(_) if run.status != RunStatus::Running => vec![again(None, false)],
        RestartDecision::Pause(pause) => vec![again(None, false), Event::RunPaused { pause }],
        RestartDecision::GiveUp => vec![ended(failure.message.clone()).fail(false)],
        RestartDecision::AwaitLimit { .. } if run.limited(inputs.now).is_some() => {
            vec![again(None, false)]
        }
        RestartDecision::AwaitLimit { until } => {
            let message = failure.message.clone();
            vec![again(None, false), Event::LimitReached { until, message }]
        }
        RestartDecision::Exhausted { reason, then } => {
            let why = format!("{} ({reason})", failure.message);
            if then == OnExhausted::Wait {
                let first = again(None, false);
                let turn = match &first {
                    Event::TurnFailed(TurnFailed { session: None, .. }) => report.turn.clone(),
                    _ => TurnId { turn: report.turn.turn.saturating_add(1), ..report.turn.clone() },
                };
                vec![first, restarts_exhausted(FailedTurn { turn, ..ended(why) }, then)]
            } else {
                vec![restarts_exhausted(ended(why), then)]
            }
        }
    }
}

pub(super) fn restart_context<'run>(
    run: &Run,
    supervision: &'run SupervisionPolicy,
    inputs: &NondeterministicInputs,
) -> RestartContext<'run> {
    let on_limit = run.settings.on_limit;
    RestartContext { supervision, on_limit, now: inputs.now, chance: inputs.chance }
}

/// An agent that does not continue by itself, at the turn that is due.
pub(super) struct FailedTurn {
    pub(super) turn: TurnId,
    pub(super) state: StateName,
    /// The folder of the state below the run's root, if it is another one.
    pub(super) folder: Option<Folder>,
    pub(super) cause: FailureCause,
    pub(super) cost: TurnCost,
    pub(super) why: String,
}

impl FailedTurn {
    pub(super) fn fail(self, ends_run: bool) -> Event {
        Event::AgentFailed(AgentFailed {
            error: format!("in {}: {}", self.state.shown_in(self.folder.as_ref()), self.why),
            turn: self.turn,
            state: self.state,
            cause: self.cause,
            cost: self.cost,
            ends_run,
        })
    }
}

/// Returns the event that follows when the restarts of an agent are used up.
pub(super) fn restarts_exhausted(ended: FailedTurn, then: OnExhausted) -> Event {
    match then {
        OnExhausted::FailAgent => ended.fail(false),
        OnExhausted::FailRun => ended.fail(true),
        OnExhausted::Wait => Event::AgentParked(AgentParked {
            reason: format!("in {}: {}", ended.state.shown_in(ended.folder.as_ref()), ended.why),
            turn: ended.turn,
            state: ended.state,
        }),
    }
}

pub(super) fn give_up(
    agent: &Agent,
    report: &TurnReport,
    cause: FailureCause,
    why: String,
) -> Event {
    FailedTurn {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        folder: agent.folder(),
        cause,
        cost: report.cost.clone(),
        why,
    }
    .fail(false)
}
