//! Turns that do not end a step: reminded, retried, held back, or passed to an evaluator.

use super::{ApplyError, EstimateUpdate, due, spend};
use crate::apply::Effect;
use crate::evaluation::TransitionProposal;
use crate::event::{AgentParked, TransitionProposed, TurnFailed, TurnHeld, TurnRejected};
use crate::run::Run;
use crate::session::Session;
use crate::time::Timestamp;
use crate::turn::FailureCause;

pub(super) fn transition_proposed(
    run: &mut Run,
    event: &TransitionProposed,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.count_turn(event.cost.amount);
    agent.note_reply(event.message.clone());
    agent.evaluate(TransitionProposal {
        transition: event.transition.clone(),
        implicit: event.implicit,
        output: event.output.clone(),
        evaluator: event.evaluator.clone(),
        session: Session::fresh(event.new_session.clone()),
    });
    spend(run, &event.turn.agent, &event.state, event.cost.amount, EstimateUpdate::Yes);
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

pub(super) fn turn_held(run: &mut Run, event: &TurnHeld) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    let by = match event.reason.as_str() {
        "" => event.by.clone(),
        reason => format!("{}: {reason}", event.by),
    };
    agent.hold_for_plugin(by, event.until);
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

pub(super) fn turn_rejected(
    run: &mut Run,
    event: &TurnRejected,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.count_turn(event.cost.amount);
    agent.note_reply(event.message.clone());
    agent.turn = agent.turn.saturating_add(1);
    agent.reminders = agent.reminders.saturating_add(1);
    agent.reminder = Some(event.reminder.clone());
    spend(run, &event.turn.agent, &event.state, event.cost.amount, EstimateUpdate::Yes);
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

pub(super) fn turn_failed(
    run: &mut Run,
    event: &TurnFailed,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let own = run.settings.supervision.period_ms;
    let agent = due(run, &event.turn)?;
    agent.count_cost(event.cost.amount);
    if let Some(session) = &event.session {
        if event.cause == FailureCause::SessionLost {
            agent.lose_session();
        }
        agent.retry_turn(session.clone());
    }
    agent.back_off(event.not_before);
    agent.forget_restarts(agent.spec.options.supervision.period_ms.unwrap_or(own), at);
    agent.note_failure(event.cause);
    if event.counts {
        agent.restarts.push(at);
    }
    let estimate = EstimateUpdate::of_failed_turn(event.cost.estimated, event.cost.amount);
    spend(run, &event.turn.agent, &event.state, event.cost.amount, estimate);
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

pub(super) fn agent_parked(run: &mut Run, event: &AgentParked) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.park(event.reason.clone());
    Ok(Vec::new())
}
