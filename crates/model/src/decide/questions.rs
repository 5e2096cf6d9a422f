//! Decisions on the answers to people's questions, and on those that come too late.
//!
//! The messages of people that a running turn reads.

use crate::agent::Agent;
use crate::decide::approval_answered;
use crate::event::{Event, QuestionAnswered, QuestionTimedOut};
use crate::id::{AgentId, MessageId, StateName};
use crate::question::{Answer, AnswerCommand, InvalidAnswer, Question};
use crate::run::Run;
use crate::time::Timestamp;
use crate::turn::TurnId;

/// Returns the answer to a question that was given before it was asked.
pub(super) fn prepared_answer(
    run: &Run,
    question: &Question,
    turn: &TurnId,
    state: &StateName,
) -> Option<Event> {
    let (answer, used) = run.prepared_answer(question)?;
    Some(Event::QuestionAnswered(QuestionAnswered {
        turn: turn.clone(),
        state: state.clone(),
        node: question.node.clone(),
        answer,
        used_answers: Some(used),
    }))
}

/// The reason an answer is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No question waits for it.
    #[error("no open question {node}{}", waiting(.open))]
    NoQuestion {
        /// The name.
        node: String,
        /// The questions that wait, as `agent/name`.
        open: Vec<String>,
    },
    /// More than one agent asks under that name.
    #[error("several agents ask {node}: name one, as {}", .agents.iter().map(|agent| format!("{agent}/{node}=…")).collect::<Vec<_>>().join(" or "))]
    Several {
        /// The name.
        node: String,
        /// The agents that ask.
        agents: Vec<AgentId>,
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
    if let Some(approval) = approval_answered(run, given) {
        return approval;
    }
    let AnswerCommand { agent, step, node, text } = given;
    let open = || run.agents.values().filter_map(|one| Some((one, one.question()?)));
    let sought = run.agents.sought(agent.as_ref()).into_iter();
    let mut open_ones = sought.filter_map(|one| {
        Some((one, one.question().filter(|asked| asked.question.node == *node)?))
    });
    let Some((one, asked)) = open_ones.next() else {
        let questions = open().map(|(one, asked)| format!("{}/{}", one.id, asked.question.node));
        let approvals = run.agents.values().flat_map(|one| {
            one.open_approvals().map(|asked| format!("{}/{}", one.id, asked.name()))
        });
        let open = questions.chain(approvals).collect();
        return Err(AnswerError::NoQuestion { node: node.clone(), open });
    };
    let others: Vec<AgentId> = open_ones.map(|(one, _)| one.id.clone()).collect();
    if !others.is_empty() {
        let agents = std::iter::once(one.id.clone()).chain(others).collect();
        return Err(AnswerError::Several { node: node.clone(), agents });
    }
    if step.is_some_and(|step| step != one.step) {
        return Err(AnswerError::Again { agent: one.id.clone(), node: node.clone() });
    }
    Ok(answered(one, node, asked.question.read(text)?, None))
}

/// Returns the event for a waiting question that an answer given ahead of time now fits. Call it again once that
/// event is recorded.
pub fn first_prepared_answer(run: &Run) -> Option<Event> {
    let fitting = run.agents.unordered().filter_map(|agent| {
        let question = &agent.question()?.question;
        Some((agent, question, run.prepared_answer(question)?))
    });
    let first = fitting.min_by(|(one, ..), (other, ..)| one.id.cmp_by_number(&other.id));
    first.map(|(agent, question, (answer, used))| {
        answered(agent, &question.node, answer, Some(used))
    })
}

fn answered(agent: &Agent, node: &str, answer: Answer, used_answers: Option<u32>) -> Event {
    Event::QuestionAnswered(QuestionAnswered {
        turn: agent.turn_id(),
        state: agent.current_state.clone(),
        node: node.to_owned(),
        answer,
        used_answers,
    })
}

/// Returns the event of a question that was not answered in time, once its deadline has passed.
pub fn timed_out(agent: &Agent, now: Timestamp) -> Option<Event> {
    let late = agent.question()?.late.as_ref()?;
    (late.at <= now).then(|| {
        Event::QuestionTimedOut(QuestionTimedOut {
            turn: agent.turn_id(),
            state: agent.current_state.clone(),
            enters: late.state.clone(),
        })
    })
}

/// Returns the event of a message that a running turn has read; `None` if its turn is over, or if it is no message of a
/// person that still waits.
pub fn message_read(run: &Run, turn: &TurnId, message: &MessageId) -> Option<Event> {
    let agent = run.agents.get(&turn.agent).filter(|agent| agent.turn_id() == *turn)?;
    let is_read = |id: &MessageId| id == message;
    let mut waiting = agent.orders.messages.iter().filter(|message| !message.is_taken);
    waiting
        .any(|waiting| waiting.id.as_ref().is_some_and(is_read))
        .then(|| Event::MessagesTaken { turn: turn.clone(), message: Some(message.clone()) })
}
