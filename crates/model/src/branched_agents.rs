//! The agents of a run that branches off: each with sessions of its own.

use super::agent::Agent;
use super::branch::BranchedAgent;
use super::id::{AgentId, SessionId, StepMode};
use super::run::Run;
use super::session::SessionOrigin;

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

/// Returns the sessions that turns of a branch copy, each with its agent.
pub fn copied_sessions(run: &Run) -> impl Iterator<Item = (&AgentId, &SessionId)> {
    run.agents.unordered().flat_map(|agent| {
        let asks =
            agent.mailbox().is_some() || agent.current_state.steps() == Some(StepMode::Asked);
        let own = asks.then_some(&agent.session.origin);
        let returns = agent.stack.iter().filter_map(|frame| frame.unbegun.as_ref());
        own.into_iter().chain(returns).filter_map(|origin| match origin {
            SessionOrigin::Fresh | SessionOrigin::Rebuilt => None,
            SessionOrigin::Resumed => Some((&agent.id, &agent.session.id)),
            SessionOrigin::Branch { from, .. } => Some((&agent.id, from)),
        })
    })
}
