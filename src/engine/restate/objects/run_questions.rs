//! The decisions about questions to hosts, of whoever looks at a run. No supervisor sees them.

use std::collections::HashSet;

use super::run_calls::CarriedRequest;
use super::run_head::RunHead;
use super::run_mail::enqueue;
use super::run_requests::{RequestState, is_question, load, request_key, set_list, unqueue};
use super::state::{ObjectState, Undecided};

const QUESTIONS: &str = "questions";

/// The most questions that are kept. The oldest goes: nobody came back for it.
const MOST: usize = 100;

/// Queues a question for its host.
pub(super) fn ask(
    run: &str,
    head: &mut RunHead,
    question: &CarriedRequest,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    if !is_question(&question.key) || load(&question.key, state)?.is_some() {
        return Ok(());
    }
    let mut questions: Vec<String> = state.get_or_default(QUESTIONS)?;
    if questions.len() >= MOST {
        let oldest = questions.remove(0);
        remove(&oldest, state)?;
    }
    questions.push(question.key.clone());
    state.set(QUESTIONS, &questions)?;
    enqueue(run, head, &[question], state)
}

/// Returns the reply to a question; `None` if there is none yet.
pub(super) fn reply(key: &str, state: &ObjectState<'_>) -> Result<Option<String>, Undecided> {
    let question = load(key, state)?;
    let answered = question.filter(|question| question.state == RequestState::Answered);
    Ok(answered.map(|question| question.text))
}

/// Removes a question, with its reply.
pub(super) fn end(key: &str, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
    let mut questions: Vec<String> = state.get_or_default(QUESTIONS)?;
    let before = questions.len();
    questions.retain(|question| question != key);
    if questions.len() < before {
        set_list(QUESTIONS, &questions, state)?;
        remove(key, state)?;
    }
    Ok(())
}

fn remove(key: &str, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
    if let Some(question) = load(key, state)? {
        if question.state == RequestState::Open {
            unqueue(&question.host, &HashSet::from([key]), state)?;
        }
        state.clear(&request_key(key));
    }
    Ok(())
}
