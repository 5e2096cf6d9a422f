//! Decisions that follow from an advance of a graph, and from people's answers.
//!
//! An ending is a result like a prompt's: it goes back to the caller, and so does an error. An error fails the
//! agent only if there is no caller.

use super::failure::FailedTurn;
use super::fork::no_room;
use super::{NondeterministicInputs, TurnReport, step_finished};
use crate::domain::agent::Agent;
use crate::domain::event::{
    Event, FinishedTask, GraphAdvanced, NextAction, QuestionAnswered, QuestionTimedOut,
};
use crate::domain::graph_advance::{GraphAdvance, GraphNext};
use crate::domain::id::{AgentId, StateName};
use crate::domain::policy::AcceptedTransition;
use crate::domain::question::{Answer, AnswerCommand, InvalidAnswer, Question};
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::transition::{Transition, Variables};
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::turn_cost::TurnCost;

/// Returns the events of an advance of a graph: the advance itself, and its immediate consequences.
pub(super) fn walked(
    run: &Run,
    agent: &Agent,
    walk: &GraphAdvance,
    report: &TurnReport,
    chosen: NondeterministicInputs,
) -> Vec<Event> {
    let next = TurnId { step: agent.step.saturating_add(1), turn: 0, ..report.turn.clone() };
    if let GraphNext::Agent { .. } = &walk.then
        && let Some(pause) = no_room(run, 1)
    {
        return vec![Event::RunPaused { pause }];
    }
    let done = record(agent, walk, report, &chosen);
    let mut after = Agent { step: next.step, turn: 0, ..agent.clone() };
    after.task = None;
    let then = match &walk.then {
        GraphNext::Question(question) => {
            answered_ahead(run, question, &next, &agent.current_state).into_iter().collect()
        }
        GraphNext::End { error: Some(error), .. } if agent.stack.is_empty() => {
            vec![fail(next, &after, FailureCause::Ending, error)]
        }
        GraphNext::Fail(why) => vec![fail(next, &after, FailureCause::Workflow, why)],
        GraphNext::End { payload, .. } => {
            let transition = Transition::Result {
                payload: payload.clone(),
                variables: Variables::new(),
                structured: false,
            };
            let accepted = AcceptedTransition { transition, implicit: false, overruled: None };
            let report =
                TurnReport { judgement: report.judgement.clone(), ..TurnReport::empty(next) };
            step_finished(run, &after, &accepted, &report, chosen)
        }
        GraphNext::Walk
        | GraphNext::Operation(_)
        | GraphNext::Task(_)
        | GraphNext::Agent { .. } => Vec::new(),
    };
    let mut events = vec![Event::GraphAdvanced(Box::new(done))];
    events.extend(then);
    events
}

fn record(
    agent: &Agent,
    walk: &GraphAdvance,
    report: &TurnReport,
    chosen: &NondeterministicInputs,
) -> GraphAdvanced {
    let due = match &walk.then {
        GraphNext::Walk => NextAction::Walk,
        GraphNext::Operation(kind) => NextAction::Operation(kind.clone()),
        GraphNext::Task(task) => NextAction::Task(task.clone()),
        GraphNext::Question(question) => NextAction::Question(question.clone()),
        GraphNext::Agent { birth, background } => {
            NextAction::Agent { birth: birth.clone(), background: *background }
        }
        GraphNext::End { .. } | GraphNext::Fail(_) => NextAction::Nothing,
    };
    let new_session = match &due {
        NextAction::Task(_) => Some(chosen.ready.clone().unwrap_or_else(|| chosen.session.clone())),
        NextAction::Agent { .. } => Some(chosen.session.clone()),
        _ => None,
    };
    let task = agent.task.as_ref().map(|task| {
        Box::new(FinishedTask {
            prompt: task.name.clone(),
            cost: report.cost.clone(),
            session_id: agent.session.id.clone(),
            message: report.message.clone(),
        })
    });
    GraphAdvanced {
        turn: report.turn.clone(),
        state: agent.current_state.clone(),
        entered: walk.entered.clone(),
        migrated: walk.migrated.clone(),
        visits: walk.visits.clone(),
        changes: walk.changes.clone(),
        shown: walk.shown.clone(),
        node: walk.node.clone(),
        cursor: walk.cursor.clone(),
        due,
        task,
        new_session,
    }
}

fn fail(turn: TurnId, agent: &Agent, cause: FailureCause, why: &str) -> Event {
    FailedTurn {
        turn,
        state: agent.current_state.clone(),
        cause,
        cost: TurnCost::default(),
        why: why.to_owned(),
    }
    .fail(false)
}

/// Returns the answer to a question that was given before it was asked.
pub(super) fn answered_ahead(
    run: &Run,
    question: &Question,
    turn: &TurnId,
    state: &StateName,
) -> Option<Event> {
    let (answer, used) = run.ahead(question)?;
    Some(Event::QuestionAnswered(QuestionAnswered {
        turn: turn.clone(),
        state: state.clone(),
        node: question.node.clone(),
        answer,
        ahead: Some(used),
    }))
}

/// The reason an answer is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No question waits for it.
    #[error("there is no open question {node}{}", waiting(.open))]
    NoQuestion {
        /// The name.
        node: String,
        /// The questions that wait, as `agent/name`.
        open: Vec<String>,
    },
    /// More than one agent asks under that name.
    #[error("several agents ask {node}: name one, as {}", .asking.iter().map(|agent| format!("{agent}/{node}=…")).collect::<Vec<_>>().join(" or "))]
    Several {
        /// The name.
        node: String,
        /// The agents that ask.
        asking: Vec<AgentId>,
    },
    /// The question it was given to is closed; the same question is asked again.
    #[error("{agent}/{node} has been answered before, and is asked again")]
    Again {
        /// The agent that asks.
        agent: AgentId,
        /// The name it asks under.
        node: String,
    },
    /// The answer is not valid.
    #[error(transparent)]
    Invalid(#[from] InvalidAnswer),
}

fn waiting(open: &[String]) -> String {
    if open.is_empty() {
        return "; there are none at all".to_owned();
    }
    format!("; open questions: {}", open.join(", "))
}

/// Returns the event of an answer to a question.
///
/// # Errors
/// [`AnswerError`] if the answer is rejected.
pub fn answer(run: &Run, given: &AnswerCommand) -> Result<Event, AnswerError> {
    let AnswerCommand { agent, step, node, text } = given;
    let open = || run.agents.values().filter_map(|one| Some((one, one.asked.as_ref()?)));
    let mut asking = open().filter(|(one, asked)| {
        asked.question.node == *node && agent.as_ref().is_none_or(|agent| *agent == one.id)
    });
    let Some((one, asked)) = asking.next() else {
        let open = open().map(|(one, asked)| format!("{}/{}", one.id, asked.question.node));
        return Err(AnswerError::NoQuestion { node: node.clone(), open: open.collect() });
    };
    let others: Vec<AgentId> = asking.map(|(one, _)| one.id.clone()).collect();
    if !others.is_empty() {
        let asking = std::iter::once(one.id.clone()).chain(others).collect();
        return Err(AnswerError::Several { node: node.clone(), asking });
    }
    if step.is_some_and(|step| step != one.step) {
        return Err(AnswerError::Again { agent: one.id.clone(), node: node.clone() });
    }
    Ok(answered(one, node, asked.question.read(text)?, None))
}

/// Returns the event for a waiting question that an answer given ahead of time now fits. Call it again once that
/// event is recorded.
#[must_use]
pub fn answered_at_last(run: &Run) -> Option<Event> {
    run.agents.values().find_map(|agent| {
        let question = &agent.asked.as_ref()?.question;
        let (answer, used) = run.ahead(question)?;
        Some(answered(agent, &question.node, answer, Some(used)))
    })
}

fn answered(agent: &Agent, node: &str, answer: Answer, ahead: Option<u32>) -> Event {
    Event::QuestionAnswered(QuestionAnswered {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        node: node.to_owned(),
        answer,
        ahead,
    })
}

/// Returns the event of a question that was not answered in time, once its deadline has passed.
#[must_use]
pub fn timed_out(agent: &Agent, now: Timestamp) -> Option<Event> {
    let late = agent.asked.as_ref()?.late.as_ref()?;
    (late.at <= now).then(|| {
        Event::QuestionTimedOut(QuestionTimedOut {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            late: late.state.clone(),
        })
    })
}
