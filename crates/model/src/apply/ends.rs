//! Ends of agents: with a result, with an error, or with an error that ends the run.

use super::advance::end_wait_of_parent;
use super::calls::keep_calls;
use super::money::{EstimateUpdate, close_shares, spend};
use super::program::{fail_requests_of, release};
use super::{ApplyError, due};
use crate::agent::Agent;
use crate::apply::Effect;
use crate::apply::transitions::count_end_at_parent;
use crate::event::AgentFailed;
use crate::id::{AgentId, StateName};
use crate::money::Usd;
use crate::run::{AgentEnding, FinishedAgent, Run, UnbilledTurn};
use crate::turn::{FailureCause, TurnId};

pub(super) fn agent_failed(run: &mut Run, event: &AgentFailed) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.note_failure(event.cause);
    agent.keep_for_retry();
    agent.count_turn(event.cost.amount);
    let estimate = EstimateUpdate::of_failed_turn(event.cost.estimated, event.cost.amount);
    spend(run, &event.turn.agent, &event.state, event.cost.amount, estimate);
    let ending = AgentEnding::Error(event.error.clone());
    let failed_in = Some(event.state.clone());
    let retirement = AgentEndDetails { cause: Some(event.cause), failed_in, structured: false };
    let mut effects = retire(run, event.turn.agent.clone(), ending, retirement);
    if event.ends_run {
        end_all(run, &event.turn.agent);
        effects.push(Effect::Abort);
    }
    Ok(effects)
}

/// Ends all other agents because one failed.
fn end_all(run: &mut Run, culprit: &AgentId) {
    let others = run.agents.drain();
    run.shares.clear();
    run.ended_calls.clear();
    run.finished.extend(others.into_iter().map(|agent| FinishedAgent {
        retryable: Some(Box::new(agent.clone())),
        ending: AgentEnding::Error(format!(
            "ended in {} because {culprit} failed, which ends the run (on_exhausted: fail-run)",
            agent.shown_state()
        )),
        unbilled_turn: Some(UnbilledTurn::of(&agent)),
        failed_folder: agent.folder(),
        untold: agent.orders.untold(),
        id: agent.id,
        state: Some(agent.spec.first_place().clone()),
        folder: agent.spec.folder,
        failed_in: Some(agent.current_state),
        cause: Some(FailureCause::Interrupted),
        structured: false,
        variables: None,
        parent_notified: false,
        cost_usd: agent.cost_usd,
    }));
    run.update_status();
}

/// Counts the cost of a turn that was ended with the run.
pub(super) fn cost_counted(
    run: &mut Run,
    turn: &TurnId,
    cost: Usd,
) -> Result<Vec<Effect>, ApplyError> {
    let owing = run
        .finished
        .iter_mut()
        .find(|ended| ended.unbilled_turn.as_ref().is_some_and(|unbilled| unbilled.turn == *turn));
    let ended = owing.ok_or_else(|| ApplyError::NoAgent(turn.agent.clone()))?;
    let unbilled = ended.unbilled_turn.take();
    ended.cost_usd += cost;
    if let Some(unbilled) = unbilled {
        spend(run, &turn.agent, &unbilled.state, cost, EstimateUpdate::No);
    }
    Ok(Vec::new())
}

/// Further facts about an agent's end.
pub(super) struct AgentEndDetails {
    /// The kind of failure, if it was one.
    pub(super) cause: Option<FailureCause>,
    /// The state it failed in, if it did.
    pub(super) failed_in: Option<StateName>,
    /// The result is an object that was checked.
    pub(super) structured: bool,
}

pub(super) fn retire(
    run: &mut Run,
    id: AgentId,
    ending: AgentEnding,
    AgentEndDetails { cause, failed_in, structured }: AgentEndDetails,
) -> Vec<Effect> {
    let mut agent = run.agents.remove(&id);
    close_shares(run, &id);
    if let Some(agent) = &agent {
        keep_calls(run, agent);
    }
    let failed = match (&agent, &ending) {
        (Some(agent), AgentEnding::Error(error)) => fail_requests_of(run, agent, error),
        _ => None,
    };
    let notified = end_wait_of_parent(run, &id, &ending, structured).or(failed);
    let (variables, joins) = count_end_at_parent(run, agent.as_ref(), &ending);
    let has_failed = matches!(ending, AgentEnding::Error(_));
    run.finished.push(FinishedAgent {
        id: id.clone(),
        state: agent.as_ref().map(|agent| agent.spec.first_place().clone()),
        folder: agent.as_ref().and_then(|agent| agent.spec.folder.clone()),
        failed_folder: agent.as_ref().filter(|_| failed_in.is_some()).and_then(Agent::folder),
        failed_in,
        ending,
        structured,
        cause,
        cost_usd: agent.as_ref().map_or(Usd::ZERO, |agent| agent.cost_usd),
        unbilled_turn: None,
        variables,
        parent_notified: notified.is_some(),
        untold: agent.as_ref().map(|agent| agent.orders.untold()).unwrap_or_default(),
        retryable: None,
    });
    let kept = agent.as_mut().and_then(|agent| agent.take_for_retry(has_failed));
    if let Some(ended) = run.finished.last_mut() {
        ended.retryable = kept;
    }
    let mut effects = vec![Effect::Retire(id)];
    effects.extend(agent.iter().flat_map(Agent::warns_of_untold));
    let program = agent.and_then(|mut agent| agent.execution.take_program());
    effects.extend(notified.into_iter().chain(joins).map(Effect::Proceed));
    effects.extend(program.map(|program| release(run, &program)).unwrap_or_default());
    run.update_status();
    if run.agents.is_empty() {
        effects.push(Effect::End);
    }
    effects
}
