//! The way of answers to a running process: whoever serves its turn writes them to it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

use super::stream::StreamParser;
use crate::domain::approval::ApprovalVerdict;
use crate::domain::id::AgentId;
use crate::fault::point;

/// The longest time for a process to read an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The outcome of a call that needs approval.
#[derive(Debug)]
pub struct ApprovalNews {
    /// The id of the call.
    pub call: String,
    /// The answer; `None` if a person is asked.
    pub verdict: Option<ApprovalVerdict>,
}

/// The channels to the running turns of a run, by their agents.
#[derive(Debug, Default)]
pub struct ApprovalSenders(RefCell<HashMap<AgentId, UnboundedSender<ApprovalNews>>>);

impl ApprovalSenders {
    /// Opens the channel to the turn of an agent, in the place of that of an earlier turn.
    pub fn open(&self, agent: &AgentId) -> UnboundedReceiver<ApprovalNews> {
        let (sender, receiver) = unbounded_channel();
        self.0.borrow_mut().insert(agent.clone(), sender);
        receiver
    }

    /// Closes the channel to the turn of an agent.
    pub fn close(&self, agent: &AgentId) {
        self.0.borrow_mut().remove(agent);
    }

    /// Tells the turn of an agent. A turn that is over is not told: what follows is decided from its outcome.
    pub fn tell(&self, agent: &AgentId, news: ApprovalNews) {
        if let Some(sender) = self.0.borrow().get(agent) {
            let _ = sender.send(news);
        }
    }
}

/// The answers to the calls of one turn, on their way to its process.
#[derive(Debug)]
pub struct ApprovalChannel<'turn> {
    /// The channel.
    pub news: &'turn mut UnboundedReceiver<ApprovalNews>,
    /// The pipe to the process; `None` if it cannot be told anything.
    pub stdin: &'turn mut Option<ChildStdin>,
    /// The time for which the process waits for a person.
    pub hold: Duration,
    /// The time since which it waits.
    pub since: Option<Instant>,
}

impl ApprovalChannel<'_> {
    /// Waits for the next answer; for ever if there can be none.
    pub async fn next(&mut self) -> ApprovalNews {
        match self.news.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    /// Takes in an answer, and writes it to the process. Without the pipe the process has refused the call by itself.
    pub async fn take(&mut self, news: ApprovalNews, stream: &mut StreamParser) {
        let ApprovalNews { call, verdict } = news;
        let Some(verdict) = verdict else { return stream.approvals.hold(&call) };
        let Some(stdin) = self.stdin.as_mut() else { return };
        let Some(line) = stream.approvals.answer_line(&call, &verdict) else { return };
        point("approval.before");
        let written = async {
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await
        };
        // A part of a line cannot be taken back, so it counts as told: whether the call runs is not known then.
        stream.approvals.answered(&call);
        if !timeout(WRITE_TIMEOUT, written).await.is_ok_and(|written| written.is_ok()) {
            drop(self.stdin.take());
        }
        point("approval.told");
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
