//! A run that branches off another: its own name and settings, and sessions of their own for its agents.

use super::ApplyError;
use crate::domain::branch::BranchedAgent;
use crate::domain::effect::Effect;
use crate::domain::event::RunBranched;
use crate::domain::run::{Run, RunStatus};
use crate::domain::session::SessionOrigin;

pub(super) fn run_branched(run: &mut Run, event: &RunBranched) -> Result<Vec<Effect>, ApplyError> {
    for BranchedAgent { agent, sessions } in &event.agents {
        let live = run.agents.get(agent).ok_or_else(|| ApplyError::NoAgent(agent.clone()))?;
        if sessions.len() != live.stack.len() + 1 {
            return Err(ApplyError::NoSession);
        }
    }
    if let Some(reply) = &event.origin.reply
        && !run.agents.contains_key(&reply.agent)
    {
        return Err(ApplyError::NoAgent(reply.agent.clone()));
    }
    if event.agents.len() != run.agents.len() {
        return Err(ApplyError::NoSession);
    }
    run.workflow_id = event.run.clone();
    run.settings = event.settings.clone();
    run.branch = Some(event.origin.clone());
    run.status = RunStatus::Running;
    run.pause = None;
    run.limited_until = None;
    for ended in &mut run.finished {
        ended.unbilled_turn = None;
    }
    for BranchedAgent { agent: id, sessions } in &event.agents {
        let Some(agent) = run.agents.get_mut(id) else { continue };
        let mut sessions = sessions.iter().cloned();
        if let Some(session) = sessions.next() {
            agent.retry_turn(session);
        }
        agent.end_timed_hold();
        agent.unpark();
        for (frame, session) in agent.stack.iter_mut().zip(sessions) {
            let origin = frame.unbegun.take().unwrap_or_else(|| SessionOrigin::Branch {
                from: frame.session.clone(),
                at: frame.checkpoint.clone(),
            });
            frame.unbegun = Some(origin);
            frame.session = session;
        }
    }
    if let Some(reply) = &event.origin.reply
        && let Some(agent) = run.agents.get_mut(&reply.agent)
    {
        agent.given_reply = Some(reply.text.clone());
    }
    Ok(run.agents.keys().cloned().map(Effect::Proceed).collect())
}
