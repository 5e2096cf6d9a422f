//! Questions to people: their answers, and their timeouts.
//!
//! Events of the run as a whole: it pauses, waits for a limit, resumes.

use crate::agent::{Agent, StepStage};
use crate::apply::Effect;
use crate::apply::{ApplyError, due};
use crate::event::{QuestionAnswered, QuestionTimedOut};
use crate::graph_execution::WaitResult;
use crate::question::Answer;
use crate::run::{PauseReason, Run, RunStatus};
use crate::settings::{OnLimit, Settings};
use crate::time::Timestamp;
use crate::turn::TurnId;

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
    } else if let Some(own) = agent.execution.program_mut() {
        own.answer = Some(if is_option { id } else { raw }.clone());
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
