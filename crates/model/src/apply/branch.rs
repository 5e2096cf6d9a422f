//! A run that branches off another: its own name and settings, and sessions of their own for its agents.

use super::ApplyError;
use crate::activity::Activity;
use crate::apply::Effect;
use crate::branch::BranchedAgent;
use crate::event::RunBranched;
use crate::program_execution::{INSTANCE_LABEL, STATE_LABEL};
use crate::run::{Run, RunStatus};
use crate::session::SessionOrigin;

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
    let label = run.label().to_owned();
    run.workflow_id = event.run.clone();
    run.settings = event.settings.clone();
    rename(run, &label);
    run.branch = Some(event.origin.clone());
    run.status = RunStatus::Running;
    run.pause = None;
    run.limited_until = None;
    for ended in &mut run.finished {
        ended.unbilled_turn = None;
    }
    // What a person has allowed is for the other run.
    run.approval_rules.clear();
    for BranchedAgent { agent: id, sessions } in &event.agents {
        let Some(agent) = run.agents.get_mut(id) else { continue };
        let mut sessions = sessions.iter().cloned();
        if let Some(session) = sessions.next() {
            agent.retry_turn(session);
        }
        agent.approvals.forget_answers();
        // Whoever works on an agent works on that of the other run.
        agent.orders.visit = None;
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

/// Gives the programs that have the other run's label that of this run, under which they publish their states.
fn rename(run: &mut Run, from: &str) {
    let to = run.label().to_owned();
    if to == from {
        return;
    }
    for agent in run.agents.values_mut() {
        let Some(own) = agent.execution.program_mut().filter(|own| own.label == from) else {
            continue;
        };
        own.label.clone_from(&to);
        if let Some(Activity::Assert { label, key, .. }) = &mut own.position.activity
            && [INSTANCE_LABEL, STATE_LABEL].contains(&label.as_str())
            && key == from
        {
            key.clone_from(&to);
        }
    }
}
