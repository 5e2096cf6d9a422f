//! Forked agents: their creation, and the report of their ends to the parent.

use serde_json::Value;

use super::money::leave_shares;
use super::{ApplyError, due};
use crate::domain::agent::{Agent, AgentSpec, TurnHold};
use crate::domain::effect::Effect;
use crate::domain::event::{JoinBegun, JoinFinished, StepFinished, StoppedChild};
use crate::domain::fork::{ChildSpec, ForkGroup};
use crate::domain::id::{AgentId, SessionId};
use crate::domain::join::{ChildOutcomes, ChildStatus, PendingJoin, UnjoinedChildren};
use crate::domain::run::{AgentEnding, FinishedAgent, Run, UnbilledTurn};
use crate::domain::time::Timestamp;
use crate::domain::transition::{Transition, Variables};
use crate::domain::turn::FailureCause;

/// Creates the agents a step forks; `opened` is the session of an agent that is forked alone.
pub(super) fn born(
    agent: &mut Agent,
    event: &StepFinished,
    opened: SessionId,
    at: Timestamp,
) -> Vec<Agent> {
    let alone: [ForkGroup; 1];
    let broods = if let (true, Transition::Fork { target, variables, .. }) =
        (event.born.is_empty(), &event.transition)
    {
        let agents = vec![ChildSpec { session: opened, cwd: None, variables: variables.clone() }];
        let terms = (*event.terms).clone();
        alone = [ForkGroup { state: target.clone(), terms, base: None, not_before: None, agents }];
        &alone[..]
    } else {
        &event.born
    };
    let depth = agent.stack.len();
    let mut children = Vec::with_capacity(crate::domain::fork::size(broods));
    for brood in broods {
        for (index, newborn) in brood.agents.iter().enumerate() {
            agent.children = agent.children.saturating_add(1);
            agent.forks.add(agent.children, depth);
            let birth = AgentSpec {
                folder: agent.birth.folder.clone(),
                home: agent.birth.home.below(newborn.cwd.as_ref()),
                base: brood.base.clone(),
                variables: newborn.variables.clone(),
                terms: brood.terms.clone(),
                ..AgentSpec::plain(brood.state.clone())
            };
            let id = agent.id.child(agent.children);
            let mut child = Agent::born(id, birth, newborn.session.clone(), at);
            let stagger = brood.not_before.filter(|_| index > 0);
            child.hold = stagger.map(|until| TurnHold::Stagger { until });
            children.push(child);
        }
    }
    children
}

/// Counts the end of an agent at its parent, if the parent forked it and lives. Returns the agent's variables
/// then, and the parent's id if its join is decided.
pub(super) fn counted(
    run: &mut Run,
    ended: Option<&Agent>,
    ending: &AgentEnding,
) -> (Option<Variables>, Option<AgentId>) {
    let parent = ended.and_then(|agent| {
        let parent = AgentId::parse(agent.id.parent()?).ok()?;
        run.agents.get_mut(&parent).map(|parent| (agent, parent))
    });
    let Some((agent, parent)) = parent else { return (None, None) };
    let number = agent.id.number();
    if !parent.forks.contains(number) {
        return (None, None);
    }
    parent.forks.ended(number, matches!(ending, AgentEnding::Result(_)));
    let forked = agent.birth.variables.clone();
    let tally = parent.forks.tally(parent.stack.len());
    let is_decided =
        parent.pending_join().is_some_and(|joining| joining.join.verdict(tally).is_some());
    (Some(forked), is_decided.then(|| parent.id.clone()))
}

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

pub(super) fn joined(run: &mut Run, event: &JoinFinished) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    if agent.pending_join().is_none() {
        return Err(ApplyError::Join(format!("{} waits for nobody", agent.id)));
    }
    let forks = agent.forks.take(agent.stack.len());
    let parent = agent.id.clone();
    let results = results(run, &parent, &forks, &event.stopped);
    let agent = due(run, &event.turn)?;
    agent.end_join(results.into());
    if let Some(state) = &event.enters {
        agent.current_state = state.clone();
    }
    for ended in run.finished.iter_mut().filter(|ended| is_one(&ended.id, &parent, &forks)) {
        ended.parent_notified = true;
        ended.forked = None;
    }
    let mut effects = stop(run, &parent, &event.stopped);
    effects.push(Effect::Proceed(parent));
    Ok(effects)
}

fn is_one(id: &AgentId, parent: &AgentId, forks: &UnjoinedChildren) -> bool {
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
    let ended = run.finished.iter().filter(|ended| is_one(&ended.id, parent, forks));
    for FinishedAgent { id, state, ending, structured, forked, .. } in ended {
        let (Some(state), Some(variables)) = (state, forked) else { continue };
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
        outcomes.add(&agent.id, &agent.birth.state, status, &agent.birth.variables);
    }
    outcomes.listed()
}

/// Returns a result as others see it: an object if it was checked to be one, else the text.
pub(super) fn result_value(result: &str, structured: bool) -> Value {
    let object = structured.then(|| serde_json::from_str(result).ok()).flatten();
    object.unwrap_or_else(|| result.into())
}

/// Ends agents that are no longer needed.
fn stop(run: &mut Run, parent: &AgentId, stopped: &[StoppedChild]) -> Vec<Effect> {
    let mut effects = Vec::with_capacity(stopped.len());
    for StoppedChild { agent: id, at_work } in stopped {
        let Some(agent) = run.agents.remove(id) else { continue };
        leave_shares(run, id);
        let state = &agent.current_state;
        run.finished.push(FinishedAgent {
            ending: AgentEnding::Error(format!(
                "stopped in {state}: {parent} continues without it (rest: stop)"
            )),
            cause: Some(FailureCause::Unneeded),
            cost_usd: agent.cost_usd,
            unbilled_turn: at_work
                .then(|| UnbilledTurn { turn: agent.turn_id(), state: agent.prompt().clone() }),
            structured: false,
            forked: None,
            parent_notified: true,
            id: agent.id,
            state: Some(agent.birth.state),
        });
        effects.push(Effect::Discard(id.clone()));
    }
    effects
}
