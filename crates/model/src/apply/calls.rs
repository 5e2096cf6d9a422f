//! Calls with a budget: what is spent in them, and what is kept of them when their callers end.

use crate::agent::Agent;
use crate::budget::EndedCall;
use crate::id::AgentId;
use crate::money::Usd;
use crate::run::Run;

/// Keeps the calls of an agent that has ended for the agents it leaves, and forgets those that no live agent is in.
pub(super) fn keep_calls(run: &mut Run, ended: &Agent) {
    run.ended_calls.extend(EndedCall::left_by(ended));
    let agents = &run.agents;
    run.ended_calls.retain(|call| agents.unordered().any(|agent| call.counts(&agent.id)));
}

/// Counts what an agent has spent to the calls of the agents it descends from. To its own calls it has counted it
/// itself, before the transition that may end one of them.
pub(super) fn count_to_calls_of_ancestors(run: &mut Run, agent: &AgentId, cost: Usd) {
    let mut child = None;
    for id in agent.lineage() {
        if let Some(below) = child
            && let Some(caller) = run.agents.named_mut(id)
        {
            caller.count_to_calls(caller.depth_of(below), cost);
        }
        child = Some(id);
    }
    for call in run.ended_calls.iter_mut().filter(|call| call.counts(agent)) {
        call.budget.spent_usd += cost;
    }
}
