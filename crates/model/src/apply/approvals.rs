//! Approvals of tool calls: asked, answered, and the turns that are ended while they wait.

use super::money::{EstimateUpdate, spend};
use super::{ApplyError, due};
use crate::apply::Effect;
use crate::approval::{ApprovalStage, ApprovalVerdict, GrantedRule, PendingApproval};
use crate::event::{ApprovalAnswered, ApprovalAsked, TurnSuspended};
use crate::id::AgentId;
use crate::run::Run;
use crate::time::Timestamp;

pub(super) fn approval_asked(
    run: &mut Run,
    event: &ApprovalAsked,
    at: Timestamp,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    let stage = match event.grant {
        Some(_) => ApprovalStage::Answered(ApprovalVerdict::Allow),
        None => ApprovalStage::Asked,
    };
    let asked = PendingApproval {
        number: event.number,
        turn: event.turn.turn,
        since: at,
        request: event.request.clone(),
        stage,
    };
    agent.approvals.ask(asked, event.grant);
    run.approvals_asked = run.approvals_asked.max(event.number);
    let verdict = event.grant.map(|_| ApprovalVerdict::Allow);
    Ok(vec![tell(&event.turn.agent, &event.request.call, verdict)])
}

pub(super) fn approval_answered(
    run: &mut Run,
    event: &ApprovalAnswered,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    let id = agent.id.clone();
    let answered = agent.approvals.answer((event.number, event.turn.turn), event.verdict.clone());
    let Some(answered) = answered else { return Err(ApplyError::NotAsked(id)) };
    let is_running = matches!(answered.stage, ApprovalStage::Answered(_));
    let call = answered.request.call.clone();
    let is_complete = !is_running && !agent.approvals.hold_next_turn();
    if is_complete {
        agent.resume_suspended();
    }
    if let ApprovalVerdict::AllowAlways { rules, scope } = &event.verdict {
        for rule in rules {
            run.approval_rules.push(GrantedRule {
                rule: rule.clone(),
                scope: scope.clone(),
                approval: event.number,
                by: event.by.clone(),
            });
        }
    }
    Ok(if is_running {
        vec![tell(&id, &call, Some(event.verdict.clone()))]
    } else if is_complete {
        vec![Effect::Proceed(id)]
    } else {
        Vec::new()
    })
}

pub(super) fn turn_suspended(
    run: &mut Run,
    event: &TurnSuspended,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.count_turn(event.cost.amount);
    agent.suspend_turn(event.message.clone(), &event.calls, event.unsure);
    let waits = agent.awaits_approval();
    if !waits {
        agent.resume_suspended();
    }
    let estimate = EstimateUpdate::of_failed_turn(event.cost.estimated, event.cost.amount);
    spend(run, &event.turn.agent, &event.state, event.cost.amount, estimate);
    let id = event.turn.agent.clone();
    Ok(vec![if waits { Effect::AwaitApproval(id) } else { Effect::Proceed(id) }])
}

/// Returns the effect that tells a running turn about a call.
fn tell(agent: &AgentId, call: &str, verdict: Option<ApprovalVerdict>) -> Effect {
    Effect::TellApproval { agent: agent.clone(), call: call.to_owned(), verdict }
}
