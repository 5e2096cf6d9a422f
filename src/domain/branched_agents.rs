//! The agents of a run that branches off: each with sessions of its own.

use super::agent::Agent;
use super::branch::BranchedAgent;
use super::id::SessionId;
use super::run::Run;

/// Returns the sessions of the agents of a branch.
pub fn branched_agents(
    run: &Run,
    mut new_session: impl FnMut() -> SessionId,
) -> Vec<BranchedAgent> {
    let mut own = |agent: &Agent| BranchedAgent {
        agent: agent.id.clone(),
        sessions: (0..=agent.stack.len()).map(|_| new_session()).collect(),
    };
    run.agents.values().map(&mut own).collect()
}
