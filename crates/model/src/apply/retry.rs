//! The reducer for retries of failed agents, runs that branch off another, and the orders of people.
//!
//! Retried agents leave the list of the finished and wait again for what they waited for.

use std::collections::HashMap;

use super::{ApplyError, EstimateUpdate, due, spend};
use crate::activity::Activity;
use crate::agent::{Agent, PersonMessage, StepStage};
use crate::apply::Effect;
use crate::branch::BranchedAgent;
use crate::budget::BudgetShare;
use crate::event::{AgentHold, AgentMessage, AttachedSession, PromptEdit, RunBranched, RunCommand};
use crate::graph_execution::{
    INSTANCE_LABEL, LostRequest, RequestBody, RequestStatus, STATE_LABEL,
};
use crate::id::{AgentId, MessageId};
use crate::money::Usd;
use crate::retry::RetriedAgent;
use crate::run::{AgentEnding, FinishedAgent, Run, RunStatus};
use crate::session::{Session, SessionOrigin};
use crate::time::Timestamp;
use crate::turn::TurnId;

pub(super) fn agents_retried(
    run: &mut Run,
    retried: &[RetriedAgent],
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    for RetriedAgent { agent, .. } in retried {
        let is_there = run.finished.iter().any(|ended| is_retryable(ended, agent));
        if !is_there || run.agents.contains_key(agent) {
            return Err(ApplyError::NotRetryable(agent.clone()));
        }
    }
    let sessions: HashMap<&AgentId, &RetriedAgent> =
        retried.iter().map(|retried_agent| (&retried_agent.agent, retried_agent)).collect();
    let (again, finished) = std::mem::take(&mut run.finished)
        .into_iter()
        .partition::<Vec<_>, _>(|ended| sessions.contains_key(&ended.id));
    run.finished = finished;
    let mut effects = Vec::with_capacity(again.len());
    let mut unbilled = Vec::new();
    for ended in again {
        let Some(retried_agent) = sessions.get(&ended.id) else { continue };
        let Some(mut agent) = ended.retryable else { continue };
        agent.cost_usd = ended.cost_usd;
        agent.live_again(retried_agent.session.clone(), at);
        effects.push(Effect::Proceed(agent.id.clone()));
        run.agents.insert(*agent);
        unbilled.extend(ended.unbilled_turn.map(|turn| (ended.id, turn.state)));
    }
    for RetriedAgent { agent, .. } in retried {
        open_shares(run, agent);
        return_calls(run, agent);
    }
    for (id, state) in unbilled {
        // Nobody can tell any more what the turn cost that was running when the agent ended.
        let cost = run.budget().estimate_cost(&state);
        if let Some(agent) = run.agents.get_mut(&id) {
            agent.cost_usd += cost;
        }
        spend(run, &id, &state, cost, EstimateUpdate::No);
    }
    for RetriedAgent { agent, .. } in retried {
        let parent = agent.parent().and_then(|parent| AgentId::parse(parent).ok());
        for id in std::iter::once(agent.clone()).chain(parent) {
            wait_again(run, &id);
        }
    }
    for RetriedAgent { agent, .. } in retried {
        ask_again(run, agent, at);
    }
    run.status = RunStatus::Running;
    run.pause = None;
    Ok(effects)
}

fn is_retryable(ended: &FinishedAgent, id: &AgentId) -> bool {
    ended.id == *id && ended.retryable.is_some()
}

/// Opens the shares of the budget that were closed when the last agent in them had ended, with what is spent of them.
fn open_shares(run: &mut Run, id: &AgentId) {
    for owner in id.lineage() {
        if let Some(share) = run.shares.get_mut(owner) {
            share.live = share.live.saturating_add(1);
            continue;
        }
        if let Some((owner, closed)) = run.closed_shares.remove_entry(owner) {
            run.shares.insert(owner, BudgetShare { live: 1, ..closed });
            continue;
        }
        // A snapshot of an earlier version has no closed shares.
        let Ok(owner) = AgentId::parse(owner) else { continue };
        let limit = run.agents.get(&owner).and_then(|agent| agent.spec.options.budget_usd);
        let Some(limit_usd) = limit else { continue };
        let mut spent_usd = Usd::ZERO;
        let ended = run.finished.iter().map(|ended| (&ended.id, ended.cost_usd));
        let live = run.agents.unordered().map(|agent| (&agent.id, agent.cost_usd));
        ended.chain(live).filter(|(id, _)| id.is_within(&owner)).for_each(|(_, c)| spent_usd += c);
        run.shares.insert(owner, BudgetShare { limit_usd, spent_usd, live: 1 });
    }
}

/// Charges an agent's open calls with what its children have spent since it ended.
fn return_calls(run: &mut Run, id: &AgentId) {
    let Some(agent) = run.agents.get_mut(id) else { return };
    run.ended_calls.retain(|call| {
        if call.caller != *id {
            return true;
        }
        let frame = agent.stack.get_mut(call.depth);
        if let Some(budget) = frame.and_then(|frame| frame.budget.as_mut()) {
            budget.spent_usd = call.budget.spent_usd;
        }
        false
    });
}

/// Makes an agent wait again for its retried children. Their ends are counted from the run, because some may have ended
/// while the agent was not alive.
fn wait_again(run: &mut Run, id: &AgentId) {
    let Some(agent) = run.agents.get(id) else { return };
    let awaited = agent.failed_wait().map(|number| agent.id.child(number));
    let awaited = awaited.filter(|child| run.agents.contains_key(child));
    let ends: HashMap<u32, bool> = run
        .finished
        .iter()
        .filter(|ended| ended.id.parent() == Some(id.as_str()))
        .map(|ended| (ended.id.number(), matches!(ended.ending, AgentEnding::Result(_))))
        .collect();
    let Some(agent) = run.agents.get_mut(id) else { return };
    agent.unjoined.recount(|number| ends.get(&number).copied());
    if let Some(child) = awaited {
        agent.wait_for_agent(child);
    }
}

/// Makes the requests of a program again that came to nothing, if their roles live.
fn ask_again(run: &mut Run, id: &AgentId, at: Timestamp) {
    let Some(agent) = run.agents.get_mut(id) else { return };
    let Some(execution) = agent.execution.program_mut() else { return };
    let lost: Vec<LostRequest> =
        execution.requests.values_mut().filter_map(|asked| Some(*asked.lost.take()?)).collect();
    for LostRequest { agent: role, request, delegated_to } in lost {
        let child = delegated_to.filter(|child| run.agents.contains_key(child));
        let Some(handle) = take_again(run, &role, &request, child, at) else { continue };
        let Some(agent) = run.agents.get_mut(id) else { return };
        let Some(execution) = agent.execution.program_mut() else { return };
        execution.handles.insert(handle, role);
        if let Some(asked) = execution.requests.get_mut(&request.name) {
            asked.status = RequestStatus::Pending;
            asked.ended = None;
        }
    }
}

/// Gives a role a request again, unless it still has it; returns the role's handle if it lives.
fn take_again(
    run: &mut Run,
    role: &AgentId,
    request: &crate::graph_execution::RoleRequest,
    child: Option<AgentId>,
    at: Timestamp,
) -> Option<String> {
    let agent = run.agents.get_mut(role)?;
    let mailbox = agent.execution.mailbox_mut()?;
    mailbox.released = false;
    let handle = mailbox.handle.clone();
    let has_it =
        mailbox.is_at(&request.id) || mailbox.queue.iter().any(|queued| queued.id == request.id);
    if !has_it {
        agent.take_request(request.clone(), at);
    }
    if let (Some(child), RequestBody::Folder { .. }) = (child, &request.body) {
        let agent: &mut Agent = run.agents.get_mut(role)?;
        if agent.stage == StepStage::default() && agent.mailbox()?.is_at(&request.id) {
            agent.wait_for_agent(child);
        }
    }
    Some(handle)
}

// A run that branches off another: it has its own name and settings, and its agents have their own sessions.

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
        // The visit belongs to the agent of the other run.
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
        let Some(program) = agent.execution.program_mut().filter(|program| program.label == from)
        else {
            continue;
        };
        program.label.clone_from(&to);
        if let Some(Activity::Assert { label, key, .. }) = &mut program.position.activity
            && [INSTANCE_LABEL, STATE_LABEL].contains(&label.as_str())
            && key == from
        {
            key.clone_from(&to);
        }
    }
}

// The orders of people to single agents.

/// Takes in a command. One about an agent that has ended changes nothing.
pub(super) fn command_received(
    run: &mut Run,
    id: &str,
    command: &RunCommand,
    at: Timestamp,
) -> Vec<Effect> {
    match command {
        RunCommand::Stop => vec![Effect::Stop],
        RunCommand::Answer(_) | RunCommand::Retry(_) => Vec::new(),
        RunCommand::Tell(AgentMessage { agent, text }) => {
            let Some(agent) = run.agents.get_mut(agent) else { return Vec::new() };
            let message = PersonMessage::of_command(id, text);
            let effect = agent.tells_turn(&message);
            agent.orders.messages.push(message);
            effect.into_iter().collect()
        }
        RunCommand::Hold(hold) => set_hold(run, hold, Some(at)),
        RunCommand::Release(hold) => set_hold(run, hold, None),
        RunCommand::Edit(PromptEdit { turn, text, is_late }) => match due(run, turn) {
            Ok(agent) if agent.is_held() && !is_late => {
                agent.edit_asked_text(text.clone());
                Vec::new()
            }
            Ok(_) | Err(_) => vec![too_late(turn, "its prompt was not edited")],
        },
        RunCommand::Attach(attached) => match due(run, &attached.turn) {
            Ok(agent)
                if agent.session.history() == Some(&attached.from)
                    && agent.is_held()
                    && !attached.is_late =>
            {
                let AttachedSession { session, message, .. } = attached;
                agent.session = Session::resumed(session.clone(), message.clone());
                Vec::new()
            }
            Ok(_) | Err(_) => {
                let session = &attached.session;
                let what = format!("what was said in the session {session} is not in its history");
                vec![too_late(&attached.turn, &what)]
            }
        },
        RunCommand::StopAgent { agent } => match run.agents.get_mut(agent) {
            Some(state) => {
                state.orders.is_ending = true;
                vec![Effect::StopAgent(agent.clone())]
            }
            None => Vec::new(),
        },
    }
}

/// Returns the warning about an order for a turn that is over.
fn too_late(turn: &TurnId, what: &str) -> Effect {
    let text = format!("it continued in the meantime, so {what}");
    Effect::Warn { agent: turn.agent.clone(), text }
}

/// Holds agents from a time on, or releases them.
fn set_hold(run: &mut Run, hold: &AgentHold, since: Option<Timestamp>) -> Vec<Effect> {
    let AgentHold { family, visit } = hold;
    let ids: Vec<AgentId> = if family.descendants {
        run.agents.values().map(|agent| agent.id.clone()).filter(|id| family.has(id)).collect()
    } else {
        run.agents.get(&family.agent).map(|agent| agent.id.clone()).into_iter().collect()
    };
    for id in &ids {
        if let Some(agent) = run.agents.get_mut(id) {
            match since {
                Some(since) => agent.orders.hold(visit.as_deref(), since),
                None => agent.orders.release(visit.as_deref()),
            }
        }
    }
    ids.into_iter().map(Effect::Proceed).collect()
}

/// Assigns the messages of an agent to the pending turn, or one of them to the running turn.
pub(super) fn messages_taken(
    run: &mut Run,
    turn: &TurnId,
    read: Option<&MessageId>,
) -> Result<Vec<Effect>, ApplyError> {
    due(run, turn)?.orders.take(read);
    let is_running = read.is_some();
    Ok(if is_running { Vec::new() } else { vec![Effect::Proceed(turn.agent.clone())] })
}
