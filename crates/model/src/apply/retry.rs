//! Failed agents that live again: they leave the list of the finished, and what they waited for is waited for again.

use std::collections::HashMap;

use super::ApplyError;
use super::money::{EstimateUpdate, spend};
use crate::agent::{Agent, StepStage};
use crate::apply::Effect;
use crate::budget::BudgetShare;
use crate::id::AgentId;
use crate::money::Usd;
use crate::program_execution::{LostRequest, RequestBody, RequestStatus};
use crate::retry::RetriedAgent;
use crate::run::{AgentEnding, FinishedAgent, Run, RunStatus};
use crate::time::Timestamp;

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
        retried.iter().map(|one| (&one.agent, one)).collect();
    let (again, finished) = std::mem::take(&mut run.finished)
        .into_iter()
        .partition::<Vec<_>, _>(|ended| sessions.contains_key(&ended.id));
    run.finished = finished;
    let mut effects = Vec::with_capacity(again.len());
    let mut unbilled = Vec::new();
    for ended in again {
        let Some(one) = sessions.get(&ended.id) else { continue };
        let Some(mut agent) = ended.retryable else { continue };
        agent.cost_usd = ended.cost_usd;
        agent.live_again(one.session.clone(), at);
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

/// Makes an agent wait again for the children that live again. Their ends are counted from the run, because some may
/// have ended while it did not live.
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
    request: &crate::program_execution::RoleRequest,
    child: Option<AgentId>,
    at: Timestamp,
) -> Option<String> {
    let agent = run.agents.get_mut(role)?;
    let mailbox = agent.execution.mailbox_mut()?;
    mailbox.released = false;
    let handle = mailbox.handle.clone();
    let has_it = mailbox.is_at(&request.id) || mailbox.queue.iter().any(|own| own.id == request.id);
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
