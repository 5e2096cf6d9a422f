//! The decisions about questions to hosts, of whoever looks at a run. No supervisor sees them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::run_calls::CarriedRequest;
use super::run_mail::enqueue;
use super::state::{ObjectState, Undecided};
use crate::restate::objects::answered_list::{is_question, set_list};
use crate::restate::objects::run_log::RunHead;
use crate::restate::objects::run_mail::HostQueue;

const QUESTIONS: &str = "questions";

/// The most questions that are kept. The oldest goes: nobody came back for it.
const MOST: usize = 100;

/// A question, and the host that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KeptQuestion {
    key: String,
    host: String,
}

fn reply_key(key: &str) -> String {
    format!("reply/{key}")
}

/// Queues a question for its host.
pub(super) fn ask(
    run: &str,
    head: &mut RunHead,
    question: &CarriedRequest,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let CarriedRequest { key, host, .. } = question;
    let mut questions: Vec<KeptQuestion> = state.get_or_default(QUESTIONS)?;
    if !is_question(key) || questions.iter().any(|question| question.key == *key) {
        return Ok(());
    }
    if questions.len() >= MOST {
        remove(&questions.remove(0), state)?;
    }
    questions.push(KeptQuestion { key: key.clone(), host: host.clone() });
    state.set(QUESTIONS, &questions)?;
    enqueue(run, head, &[question], state)
}

/// Keeps the reply to a question.
pub(super) fn keep_reply(
    key: &str,
    body: &str,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    state.set(&reply_key(key), &body)
}

/// Returns the reply to a question; `None` if there is none yet.
pub(super) fn reply(key: &str, state: &ObjectState<'_>) -> Result<Option<String>, Undecided> {
    state.get(&reply_key(key))
}

/// Removes a question, with its reply.
pub(super) fn end(key: &str, state: &mut ObjectState<'_>) -> Result<(), Undecided> {
    let mut questions: Vec<KeptQuestion> = state.get_or_default(QUESTIONS)?;
    let Some(place) = questions.iter().position(|question| question.key == key) else {
        return Ok(());
    };
    let question = questions.remove(place);
    set_list(QUESTIONS, &questions, state)?;
    remove(&question, state)
}

fn remove(
    KeptQuestion { key, host }: &KeptQuestion,
    state: &mut ObjectState<'_>,
) -> Result<(), Undecided> {
    let mut queue = HostQueue::load(host, state)?;
    queue.remove(&HashSet::from([key.as_str()]));
    queue.save(state)?;
    state.clear(&reply_key(key));
    Ok(())
}
