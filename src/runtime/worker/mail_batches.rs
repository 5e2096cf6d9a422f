//! The notes of a worker for the engine, in batches: all that came about while one call was under way goes with the next.
//!
//! Requests and answers of a host that are too large for the mailbox.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::domain::host_work::{HostAnswer, HostWork, MAX_MAIL_BYTES, StoredMail};
use crate::engine::host_mailbox::{HostReply, HostRequest};
use crate::engine::host_registry::HostClaim;
use crate::engine::{Engine, EngineError};
use crate::runtime::error::Error;
use crate::runtime::sharing::{fetch_mail, put_content, until_mended};

/// The most notes of one call.
const MOST_NOTES: usize = 200;

/// The time in which a further note is waited for. A call costs the engine more than the notes that it carries.
const GATHERING_TIME: Duration = Duration::from_millis(1);

/// The longest time in which notes are gathered.
const LONGEST_GATHERING: Duration = Duration::from_millis(5);

/// The bytes after which a call takes no further reply.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// A note of a worker for the engine, and who waits for its effect.
struct WaitingNote<N, A> {
    note: N,
    done: oneshot::Sender<A>,
}

/// The ends of the threads that tell the engine. The threads end after this is dropped.
pub(super) struct MailBatches {
    begins: Sender<WaitingNote<String, bool>>,
    replies: Sender<WaitingNote<HostReply, ()>>,
}

impl MailBatches {
    /// Starts the threads.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub(super) fn start(engine: &Arc<dyn Engine>, claim: &HostClaim) -> Result<Self, Error> {
        let (begins, begun) = channel();
        let (replies, answered) = channel();
        let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (to_begin, to_reply) =
            ((engine.clone(), claim.clone()), (engine.clone(), claim.clone()));
        let threads = [
            named("begins").spawn(move || tell_begins(&*to_begin.0, &to_begin.1, &begun)),
            named("replies").spawn(move || tell_replies(&*to_reply.0, &to_reply.1, &answered)),
        ];
        for thread in threads {
            thread.map_err(Error::NoThread)?;
        }
        Ok(Self { begins, replies })
    }

    /// Notes that a request begins. Returns false if it was withdrawn, or the host may do nothing more.
    pub(super) async fn may_begin(&self, key: String) -> bool {
        let (done, begun) = oneshot::channel();
        let sent = self.begins.send(WaitingNote { note: key, done });
        sent.is_ok() && begun.await.unwrap_or(false)
    }

    /// Replies to a request; the reply is durable afterwards, or the host may do nothing more.
    pub(super) async fn reply(&self, reply: HostReply) {
        let (done, told) = oneshot::channel();
        if self.replies.send(WaitingNote { note: reply, done }).is_ok() {
            let _ = told.await;
        }
    }
}

fn tell_begins(
    engine: &dyn Engine,
    claim: &HostClaim,
    incoming: &Receiver<WaitingNote<String, bool>>,
) {
    while let Some(batch) = next_batch(incoming, |_| 0) {
        let (keys, waiting): (Vec<String>, Vec<_>) =
            batch.into_iter().map(|WaitingNote { note, done }| (note, done)).unzip();
        let begun = until_mended(|| false, || engine.begin(claim, &keys)).unwrap_or_default();
        for (key, done) in keys.iter().zip(waiting) {
            let _ = done.send(begun.contains(key));
        }
    }
}

fn tell_replies(
    engine: &dyn Engine,
    claim: &HostClaim,
    incoming: &Receiver<WaitingNote<HostReply, ()>>,
) {
    while let Some(batch) = next_batch(incoming, |reply| reply.body.len()) {
        let (replies, waiting): (Vec<HostReply>, Vec<_>) =
            batch.into_iter().map(|WaitingNote { note, done }| (note, done)).unzip();
        match until_mended(|| false, || engine.reply(claim, &replies)) {
            Ok(()) => {}
            Err(EngineError::Unstorable { .. }) => {
                for reply in &replies {
                    reply_alone(engine, claim, reply);
                }
            }
            // The heartbeat meets the same, and ends the worker.
            Err(error) => tracing::debug!("{} replies were not accepted: {error}", replies.len()),
        }
        for done in waiting {
            let _ = done.send(());
        }
    }
}

/// Gives a reply alone. One that the engine cannot store is replaced by the reason, so that nobody waits for it.
fn reply_alone(engine: &dyn Engine, claim: &HostClaim, reply: &HostReply) {
    let HostReply { key, .. } = reply;
    match until_mended(|| false, || engine.reply(claim, std::slice::from_ref(reply))) {
        Err(EngineError::Unstorable { why, .. }) => {
            let why = format!("its answer cannot be stored: {why}");
            tracing::warn!("{key}: {why}");
            let answer = HostAnswer::Refused { why };
            let body = serde_json::to_string(&answer).unwrap_or_default();
            let refusal = [HostReply { key: key.clone(), body }];
            if let Err(error) = until_mended(|| false, || engine.reply(claim, &refusal)) {
                tracing::debug!("{key}: {error}");
            }
        }
        Err(error) => tracing::debug!("{key}: {error}"),
        Ok(()) => {}
    }
}

/// Waits for a note, and gathers those that come a moment later; `None` once no more can come.
fn next_batch<N, A>(
    incoming: &Receiver<WaitingNote<N, A>>,
    bytes: impl Fn(&N) -> usize,
) -> Option<Vec<WaitingNote<N, A>>> {
    let first = incoming.recv().ok()?;
    let mut size = bytes(&first.note);
    let (mut batch, end) = (vec![first], Instant::now() + LONGEST_GATHERING);
    while batch.len() < MOST_NOTES && size < MOST_BYTES {
        let left = end.saturating_duration_since(Instant::now()).min(GATHERING_TIME);
        let Ok(next) = incoming.recv_timeout(left) else { break };
        size += bytes(&next.note);
        batch.push(next);
    }
    Some(batch)
}

/// The beginning of a request that is a content of the engine.
const STORED: &str = "{\"work\":\"stored\"";

/// Fetches the body of a request that is a content of the engine. One that cannot be used stays as it is, and is refused
/// when it is carried out.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(super) fn open_request(
    engine: &dyn Engine,
    request: &mut HostRequest,
) -> Result<(), EngineError> {
    if request.body.starts_with(STORED)
        && let Ok(HostWork::Stored { mail }) = serde_json::from_str(&request.body)
    {
        match fetch_mail(engine, &mail)? {
            Ok(body) => request.body = body,
            Err(why) => tracing::warn!("the request {} is refused: {why}", request.key),
        }
    }
    Ok(())
}

/// Has the engine keep an answer that is too large. If the engine refuses, the mailbox carries the answer itself.
pub(super) async fn stored_if_large(engine: &Arc<dyn Engine>, answer: HostAnswer) -> HostAnswer {
    let Some(body) = serde_json::to_string(&answer).ok().filter(|body| body.len() > MAX_MAIL_BYTES)
    else {
        return answer;
    };
    let (engine, bytes) = (Arc::clone(engine), body.len() as u64);
    match spawn_blocking(move || put_content(&*engine, body.as_bytes())).await {
        Ok(Ok(sum)) => HostAnswer::Stored { mail: StoredMail { checksum: sum.into(), bytes } },
        Ok(Err(error)) => {
            tracing::warn!("an answer of {bytes} bytes goes through the mailbox: {error}");
            answer
        }
        Err(_) => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_takes_what_is_there_up_to_its_bounds() {
        let (sender, incoming) = channel();
        let put = |size: usize| {
            let done = oneshot::channel::<()>().0;
            sender.send(WaitingNote { note: size, done }).expect("it is taken");
        };
        (0..MOST_NOTES + 3).for_each(|_| put(1));
        let len = || next_batch(&incoming, |&size| size).map(|batch| batch.len());
        assert_eq!((len(), len()), (Some(MOST_NOTES), Some(3)));
        [MOST_BYTES / 2, MOST_BYTES / 2, 1].into_iter().for_each(put);
        assert_eq!((len(), len()), (Some(2), Some(1)));
        drop(sender);
        assert!(next_batch(&incoming, |&size| size).is_none());
    }
}
