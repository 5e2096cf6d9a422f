//! Joins: an agent waits for those it has forked, and their outcomes become its state's results.

use super::money::close_shares;
use super::{ApplyError, due};
use crate::apply::Effect;
use crate::apply::transitions::result_value;
use crate::event::{JoinBegun, JoinFinished, StoppedChild};
use crate::id::AgentId;
use crate::join::{ChildOutcomes, ChildStatus, JoinFallback, PendingJoin, UnjoinedChildren};
use crate::run::{AgentEnding, FinishedAgent, Run, UnbilledTurn};
use crate::time::Timestamp;
use crate::turn::FailureCause;

pub(super) fn join_begun(
    run: &mut Run,
    event: &JoinBegun,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    if !agent.stage.is_first() {
        return Err(ApplyError::Join(format!("{} has come to it already", agent.id)));
    }
    agent.wait_for_join(PendingJoin { join: event.join.clone(), since: at });
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

pub(super) fn join_finished(
    run: &mut Run,
    event: &JoinFinished,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    let Some(pending) = agent.pending_join() else {
        return Err(ApplyError::Join(format!("{} does not wait for agents", agent.id)));
    };
    let fails = *pending.join.fallback(event.outcome) == JoinFallback::Fail;
    let retry_point = fails.then(|| Box::new(agent.clone()));
    let forks = agent.unjoined.take(agent.join_depth());
    let parent = agent.id.clone();
    let results = results(run, &parent, &forks, &event.stopped);
    let agent = due(run, &event.turn)?;
    agent.end_join(results.into());
    agent.retry_point = retry_point;
    if let Some(state) = &event.enters {
        agent.current_state = state.clone();
        agent.given_reply = None;
    }
    for ended in run.finished.iter_mut().filter(|ended| is_joined(&ended.id, &parent, &forks)) {
        ended.parent_notified = true;
        if !fails {
            ended.variables = None;
        }
    }
    let mut effects = stop_children(run, &parent, &event.stopped, fails);
    effects.push(Effect::Proceed(parent));
    Ok(effects)
}

fn is_joined(id: &AgentId, parent: &AgentId, forks: &UnjoinedChildren) -> bool {
    id.parent() == Some(parent.as_str()) && forks.contains(id.number())
}

/// Returns the list of outcomes of the agents that were waited for.
fn results(
    run: &Run,
    parent: &AgentId,
    forks: &UnjoinedChildren,
    stopped: &[StoppedChild],
) -> String {
    let mut outcomes = ChildOutcomes::default();
    let ended = run.finished.iter().filter(|ended| is_joined(&ended.id, parent, forks));
    for FinishedAgent { id, state, ending, structured, variables, .. } in ended {
        let (Some(state), Some(variables)) = (state, variables) else { continue };
        let status = match ending {
            AgentEnding::Result(result) => {
                ChildStatus::Result { result: result_value(result, *structured) }
            }
            AgentEnding::Error(error) => ChildStatus::Error { error },
        };
        outcomes.add(id, state, status, variables);
    }
    for number in forks.numbers(0) {
        let Some(agent) = run.agents.get(&parent.child(number)) else { continue };
        let status = if stopped.is_empty() { ChildStatus::Running } else { ChildStatus::Stopped };
        outcomes.add(&agent.id, &agent.spec.state, status, &agent.spec.variables);
    }
    outcomes.listed()
}

/// Ends agents that are no longer needed. If the join fails, a retry needs them again.
fn stop_children(
    run: &mut Run,
    parent: &AgentId,
    stopped: &[StoppedChild],
    fails: bool,
) -> Vec<Effect> {
    let mut effects = Vec::with_capacity(stopped.len());
    for StoppedChild { agent: id, at_work } in stopped {
        let Some(agent) = run.agents.remove(id) else { continue };
        close_shares(run, id);
        effects.extend(agent.warns_of_untold());
        let state = agent.shown_state();
        run.finished.push(FinishedAgent {
            ending: AgentEnding::Error(format!(
                "stopped in {state}: {parent} continues without it (rest: stop)"
            )),
            cause: Some(FailureCause::Unneeded),
            cost_usd: agent.cost_usd,
            unbilled_turn: at_work.then(|| UnbilledTurn::of(&agent)),
            structured: false,
            variables: None,
            parent_notified: true,
            untold: agent.orders.untold(),
            retryable: fails.then(|| Box::new(agent.clone())),
            id: agent.id,
            state: Some(agent.spec.first_place().clone()),
            folder: agent.spec.folder,
            failed_in: None,
            failed_folder: None,
        });
        effects.push(Effect::Discard(id.clone()));
    }
    effects
}
