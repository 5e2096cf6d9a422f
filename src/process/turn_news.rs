//! The news for a running turn, answers to its calls and messages of people: whoever follows it writes them to its process.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

use super::message;
use super::stream::StreamParser;
use crate::domain::approval::ApprovalVerdict;
use crate::domain::id::{AgentId, MessageId};
use crate::fault::point;

/// The longest time for a process to read an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest line with a message of a person that is written into a turn, in bytes. It fits a pipe, so that a kill of
/// raymond leaves no part of it there. A longer one waits for the next prompt.
const MAX_MESSAGE_LINE: usize = 32 * 1024;

/// The news for a running turn.
#[derive(Debug)]
pub enum TurnNews {
    /// The outcome of a call that needs approval.
    Approval {
        /// The id of the call.
        call: String,
        /// The answer; `None` if a person is asked.
        verdict: Option<ApprovalVerdict>,
    },
    /// A message of a person.
    Message {
        /// The id by which the process shows that it has read it.
        id: MessageId,
        /// The text, as the model gets it.
        text: String,
    },
}

/// The channels to the running turns of a run, by their agents.
#[derive(Debug, Default)]
pub struct TurnNewsSenders(RefCell<HashMap<AgentId, UnboundedSender<TurnNews>>>);

impl TurnNewsSenders {
    /// Opens the channel to the turn of an agent, in the place of that of an earlier turn.
    pub fn open(&self, agent: &AgentId) -> UnboundedReceiver<TurnNews> {
        let (sender, receiver) = unbounded_channel();
        self.0.borrow_mut().insert(agent.clone(), sender);
        receiver
    }

    /// Closes the channel to the turn of an agent.
    pub fn close(&self, agent: &AgentId) {
        self.0.borrow_mut().remove(agent);
    }

    /// Tells the turn of an agent. A turn that is over is not told: what follows is decided from its outcome.
    pub fn tell(&self, agent: &AgentId, news: TurnNews) {
        if let Some(sender) = self.0.borrow().get(agent) {
            let _ = sender.send(news);
        }
    }
}

/// The news of one turn, on their way to its process.
#[derive(Debug)]
pub struct TurnNewsChannel<'turn> {
    /// The channel.
    pub news: &'turn mut UnboundedReceiver<TurnNews>,
    /// The pipe to the process; `None` if it cannot be told anything.
    pub stdin: &'turn mut Option<ChildStdin>,
    /// The time for which the process waits for a person.
    pub hold: Duration,
    /// The time since which it waits.
    pub since: Option<Instant>,
    /// The messages that are sent once no call waits for a person.
    pub waiting: Vec<(MessageId, String)>,
}

impl TurnNewsChannel<'_> {
    /// Waits for the next news; for ever if there can be none.
    pub async fn next(&mut self) -> TurnNews {
        match self.news.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    /// Takes in the news, and writes them to the process.
    pub async fn take(&mut self, news: TurnNews, stream: &mut StreamParser) {
        match news {
            TurnNews::Approval { call, verdict: None } => stream.approvals.hold(&call),
            TurnNews::Approval { call, verdict: Some(verdict) } => {
                self.answer(&call, &verdict, stream).await;
            }
            TurnNews::Message { id, text } => self.waiting.push((id, text)),
        }
        // The turn may be parked while a call waits for a person. Its process must not have a message then, which it would
        // answer as soon as the turn is cut off.
        if stream.approvals.unanswered().is_empty() {
            for (id, text) in std::mem::take(&mut self.waiting) {
                self.send(id, &text, stream).await;
            }
        }
    }

    /// Writes an answer to the process. Without the pipe the process has refused the call by itself.
    async fn answer(&mut self, call: &str, verdict: &ApprovalVerdict, stream: &mut StreamParser) {
        if self.stdin.is_none() {
            return;
        }
        let Some(line) = stream.approvals.answer_line(call, verdict) else { return };
        point("approval.before");
        // A part of a line cannot be taken back, so it counts as told: whether the call runs is not known then.
        stream.approvals.answered(call);
        stream.approvals.has_given_rules |= matches!(verdict, ApprovalVerdict::AllowAlways { .. });
        self.write(&line).await;
        point("approval.told");
    }

    /// Sends a message to the process. One that the process has not read by the end of its turn stays for the next prompt.
    async fn send(&mut self, id: MessageId, text: &str, stream: &mut StreamParser) {
        let line = message::steering(&id, text);
        if self.stdin.is_none() || line.len() > MAX_MESSAGE_LINE {
            return;
        }
        point("message.before");
        stream.messages.sent(id.clone());
        if !self.write(&line).await {
            stream.messages.not_sent(&id);
        }
        point("message.sent");
    }

    /// Writes a line; returns false if the process does not read it, and then it is told nothing more.
    async fn write(&mut self, line: &str) -> bool {
        let Some(stdin) = self.stdin.as_mut() else { return false };
        let written = async {
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await
        };
        let is_written = timeout(WRITE_TIMEOUT, written).await.is_ok_and(|written| written.is_ok());
        if !is_written {
            drop(self.stdin.take());
        }
        is_written
    }

    /// Returns the time until which the process waits for a person; `None` if it waits for none, or ends the wait itself.
    pub fn held_until(&mut self, stream: &StreamParser) -> Option<Instant> {
        if self.stdin.is_none() || !stream.approvals.are_held() {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        Some(since + self.hold)
    }
}
