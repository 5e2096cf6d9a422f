//! Forked agents: their creation, and the report of their ends to the parent.

use serde_json::Value;

use crate::domain::agent::{Agent, AgentSpec, TurnHold};
use crate::domain::event::StepFinished;
use crate::domain::fork::{ChildSpec, ForkGroup};
use crate::domain::id::{AgentId, SessionId};
use crate::domain::run::{AgentEnding, Run};
use crate::domain::time::Timestamp;
use crate::domain::transition::{Transition, Variables};

/// Creates the agents a step forks; `opened` is the session of an agent that is forked alone.
pub(super) fn create_children(
    agent: &mut Agent,
    event: &StepFinished,
    opened: SessionId,
    at: Timestamp,
) -> Vec<Agent> {
    let alone: [ForkGroup; 1];
    let groups = if let (true, Transition::Fork { target, scope, variables, .. }) =
        (event.children.is_empty(), &event.transition)
    {
        let agents = vec![ChildSpec { session: opened, cwd: None, variables: variables.clone() }];
        let options = (*event.options).clone();
        let (state, scope) = (target.clone(), scope.clone());
        alone = [ForkGroup { state, scope, options, base: None, not_before: None, agents }];
        &alone[..]
    } else {
        &event.children
    };
    let depth = agent.stack.len();
    let mut children = Vec::with_capacity(crate::domain::fork::agent_count(groups));
    for group in groups {
        let folder = agent.folder_at(group.scope.as_ref()).unwrap_or_else(|_| agent.folder());
        for (index, child) in group.agents.iter().enumerate() {
            agent.forked_count = agent.forked_count.saturating_add(1);
            agent.unjoined.add(agent.forked_count, depth);
            let spec = AgentSpec {
                folder: folder.clone(),
                working_dir: agent.spec.working_dir.without_home().below(child.cwd.as_ref()),
                base: group.base.clone(),
                variables: child.variables.clone(),
                options: group.options.clone(),
                ..AgentSpec::plain(group.state.clone())
            };
            let id = agent.id.child(agent.forked_count);
            let mut child = Agent::from_spec(id, spec, child.session.clone(), at);
            let stagger = group.not_before.filter(|_| index > 0);
            // A circle of scripts that fork each other has a bound, too.
            child.script_steps = agent.script_steps;
            child.hold = stagger.map(|until| TurnHold::Stagger { until });
            children.push(child);
        }
    }
    children
}

/// Counts the end of an agent at its parent, if the parent forked it and lives. Returns the agent's variables
/// then, and the parent's id if its join is decided.
pub(super) fn count_end_at_parent(
    run: &mut Run,
    ended: Option<&Agent>,
    ending: &AgentEnding,
) -> (Option<Variables>, Option<AgentId>) {
    let found = ended.and_then(|agent| Some((agent, AgentId::parse(agent.id.parent()?).ok()?)));
    let Some((agent, parent)) = found else { return (None, None) };
    let number = agent.id.number();
    let Some(parent) = run.agents.get_mut(&parent) else {
        let is_kept = is_joined_by_retry(run, &parent, number);
        return (is_kept.then(|| agent.spec.variables.clone()), None);
    };
    if !parent.unjoined.contains(number) {
        return (None, None);
    }
    parent.unjoined.ended(number, matches!(ending, AgentEnding::Result(_)));
    let forked = agent.spec.variables.clone();
    let tally = parent.unjoined.tally(parent.join_depth());
    let is_decided =
        parent.pending_join().is_some_and(|pending| pending.join.outcome(tally).is_some());
    (Some(forked), is_decided.then(|| parent.id.clone()))
}

/// Returns whether the join of a parent that has failed takes that child if the parent is retried.
fn is_joined_by_retry(run: &Run, parent: &AgentId, number: u32) -> bool {
    let parent = run.finished.iter().rev().find(|ended| ended.id == *parent);
    let kept = parent.and_then(|parent| parent.retryable.as_deref());
    kept.is_some_and(|parent| parent.unjoined.contains(number))
}

/// Returns a result as others see it: an object if it was checked to be one, else the text.
pub(super) fn result_value(result: &str, structured: bool) -> Value {
    let object = structured.then(|| serde_json::from_str(result).ok()).flatten();
    object.unwrap_or_else(|| result.into())
}
