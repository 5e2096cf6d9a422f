//! The reducer for joins, questions to people, approvals of tool calls, and the pauses of the whole run.
//!
//! In a join, an agent waits for those it has forked, and their outcomes become its state's results.

use super::{ApplyError, EstimateUpdate, close_shares, due, spend};
use crate::agent::{Agent, StepStage};
use crate::apply::Effect;
use crate::apply::advance::result_value;
use crate::approval::{ApprovalStage, ApprovalVerdict, GrantedRule, PendingApproval};
use crate::event::{
    ApprovalAnswered, ApprovalAsked, JoinBegun, JoinFinished, QuestionAnswered, QuestionTimedOut,
    StoppedChild, TurnSuspended,
};
use crate::graph_execution::WaitResult;
use crate::id::AgentId;
use crate::join::{ChildOutcomes, ChildStatus, JoinFallback, PendingJoin, UnjoinedChildren};
use crate::question::Answer;
use crate::run::{AgentEnding, FinishedAgent, PauseReason, Run, RunStatus, UnbilledTurn};
use crate::settings::{OnLimit, Settings};
use crate::time::Timestamp;
use crate::turn::{FailureCause, TurnId};

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

pub(super) fn join_finished(
    run: &mut Run,
    event: &JoinFinished,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    let Some(pending) = agent.pending_join() else {
        return Err(ApplyError::Join(format!("{} does not wait for agents", agent.id)));
    };
    let fails = *pending.join.fallback(event.outcome) == JoinFallback::Fail;
    let retry_point = fails.then(|| Box::new(agent.clone()));
    let forks = agent.unjoined.take(agent.join_depth());
    let parent = agent.id.clone();
    let results = results(run, &parent, &forks, &event.stopped);
    let agent = due(run, &event.turn)?;
    agent.end_join(results.into());
    agent.retry_point = retry_point;
    if let Some(state) = &event.enters {
        agent.current_state = state.clone();
        agent.given_reply = None;
    }
    for ended in run.finished.iter_mut().filter(|ended| is_joined(&ended.id, &parent, &forks)) {
        ended.parent_notified = true;
        if !fails {
            ended.variables = None;
        }
    }
    let mut effects = stop_children(run, &parent, &event.stopped, fails);
    effects.push(Effect::Proceed(parent));
    Ok(effects)
}

fn is_joined(id: &AgentId, parent: &AgentId, forks: &UnjoinedChildren) -> bool {
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
    let ended = run.finished.iter().filter(|ended| is_joined(&ended.id, parent, forks));
    for FinishedAgent { id, state, ending, structured, variables, .. } in ended {
        let (Some(state), Some(variables)) = (state, variables) else { continue };
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
        outcomes.add(&agent.id, &agent.spec.state, status, &agent.spec.variables);
    }
    outcomes.listed()
}

/// Ends agents that are no longer needed. If the join fails, a retry needs them again.
fn stop_children(
    run: &mut Run,
    parent: &AgentId,
    stopped: &[StoppedChild],
    fails: bool,
) -> Vec<Effect> {
    let mut effects = Vec::with_capacity(stopped.len());
    for StoppedChild { agent: id, at_work } in stopped {
        let Some(agent) = run.agents.remove(id) else { continue };
        close_shares(run, id);
        effects.extend(agent.warns_of_untold());
        let state = agent.shown_state();
        run.finished.push(FinishedAgent {
            ending: AgentEnding::Error(format!(
                "stopped in {state}: {parent} continues without it (rest: stop)"
            )),
            cause: Some(FailureCause::Unneeded),
            cost_usd: agent.cost_usd,
            unbilled_turn: at_work.then(|| UnbilledTurn::of(&agent)),
            structured: false,
            variables: None,
            parent_notified: true,
            untold: agent.orders.untold(),
            retryable: fails.then(|| Box::new(agent.clone())),
            id: agent.id,
            state: Some(agent.spec.first_place().clone()),
            folder: agent.spec.folder,
            failed_in: None,
            failed_folder: None,
        });
        effects.push(Effect::Discard(id.clone()));
    }
    effects
}

// Questions to people: their answers, and their timeouts.

pub(super) fn question_answered(
    run: &mut Run,
    event: &QuestionAnswered,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    agent.script_steps = 0;
    let Some(asked) = agent.question() else {
        return Err(ApplyError::NotAsked(event.turn.agent.clone()));
    };
    let Answer { id, raw } = &event.answer;
    let is_option = asked.question.options.iter().any(|option| option.id == *id);
    if agent.execution.takes_results() {
        agent.end_wait(WaitResult::Answered(event.answer.clone()));
    } else if let Some(program) = agent.execution.program_mut() {
        program.answer = Some(if is_option { id } else { raw }.clone());
        agent.stage = StepStage::default();
    } else {
        agent.stage = StepStage::default();
        agent.variables.insert(ANSWER.to_owned(), event.answer.raw.clone());
        agent.variables.insert(ASK_ID.to_owned(), ask_id(&event.turn));
    }
    if let Some(used) = event.used_answers {
        run.used_answers.insert(event.node.clone(), used);
    }
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

/// The variable that holds a person's answer in the state a prompt's question leads to.
const ANSWER: &str = "answer";

/// The variable that holds the id of the question that was answered.
const ASK_ID: &str = "ask_id";

/// Returns the id of a question: the agent and the step that it waits in, such as `main.2-7`.
fn ask_id(turn: &TurnId) -> String {
    format!("{}-{}", turn.agent, turn.step)
}

pub(super) fn question_timed_out(
    run: &mut Run,
    event: &QuestionTimedOut,
) -> Result<Vec<Effect>, ApplyError> {
    let agent = due(run, &event.turn)?;
    if agent.question().is_none() {
        return Err(ApplyError::NotAsked(event.turn.agent.clone()));
    }
    agent.stage = StepStage::default();
    agent.current_state = event.enters.clone();
    Ok(vec![Effect::Proceed(event.turn.agent.clone())])
}

// Events of the run as a whole: it pauses, waits for a limit, resumes.

pub(super) fn limit_reached(run: &mut Run, until: Timestamp) -> Vec<Effect> {
    run.limited_until = run.limited_until.max(Some(until));
    vec![Effect::AwaitLimit]
}

pub(super) fn run_paused(run: &mut Run, pause: &PauseReason) -> Vec<Effect> {
    if run.status == RunStatus::Running {
        run.status = RunStatus::Paused;
        run.pause = Some(pause.clone());
    }
    vec![Effect::Hold]
}

pub(super) fn run_resumed(run: &mut Run, settings: &Settings) -> Vec<Effect> {
    run.settings = settings.clone();
    if run.agents.is_empty() {
        return vec![Effect::End];
    }
    if run.status == RunStatus::Paused || settings.on_limit != OnLimit::Wait {
        run.limited_until = None;
    }
    run.status = RunStatus::Running;
    run.pause = None;
    run.agents.values_mut().for_each(Agent::unpark);
    let limited = run.limited_until.map(|_| Effect::AwaitLimit);
    run.agents.keys().cloned().map(Effect::Proceed).chain(limited).collect()
}

// Approvals of tool calls: asked, answered, and the turns that are ended while they wait.

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
    let answered = agent.approvals.answer(event.number, event.turn.turn, event.verdict.clone());
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
