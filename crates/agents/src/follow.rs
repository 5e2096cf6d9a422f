//! Follows a process until its turn is over, and passes the news for the turn on to it.
//!
//! A turn is over at its `result`, not at the end of the process: processes that the agent's tools started can hold the
//! output open for hours. A write to the stream's file wakes the follower, and so does the end of its child. Where the
//! system does not report writes, the file is read again after a pause, which grows while nothing arrives.
//!
//! Timeouts count from the start of following. An adopted turn gets its whole time again, because
//! the time before may have passed while nobody watched.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use tokio::process::ChildStdin;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::background::TurnRemainder;
use crate::child::ProcessExit;
use crate::dialogue::Dialogue;
use crate::transcript::{Error, StreamFollower};
use crate::turn_progress::TurnProgress;
use crate::worker::{StopLevel, WorkerProcess, stopped, write_within};
use crate::write_watch::WriteWatch;
use raymond_model::approval::ApprovalVerdict;
use raymond_model::id::{AgentId, MessageId};
use raymond_model::supervision::TurnTimeouts;
use raymond_store::fault::FaultPoint;

/// The pause after new output, where the system does not report writes.
const MIN_POLL_PAUSE: Duration = Duration::from_millis(2);
/// The longest pause.
const MAX_POLL_PAUSE: Duration = Duration::from_millis(100);
/// The longest time for a process to begin a further turn that it has announced.
const ANNOUNCED_TURN_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of refused requests in a row after which the credentials count as wrong. The program itself would repeat the
/// request for minutes. A single refusal does not count, because an OAuth token is renewed after it.
const MAX_AUTHENTICATION_REFUSALS: u32 = 3;

/// The reason why following ended.
#[derive(Debug)]
pub enum FollowEnd {
    /// The stream has a result.
    Result,
    /// The process has ended; its last output is still to be read.
    Exited(ProcessExit),
    /// The turn was asked to stop.
    Stopped,
    /// A tool call waits for a person for longer than a process is kept.
    Parked,
    /// It took too long.
    TimedOut,
    /// It made no progress for too long.
    Stalled,
    /// It gave no sign of having read its prompt.
    NoOutput,
    /// The API refused its credentials several times in a row.
    Unauthorized,
    /// Its output cannot be used.
    Unreadable(Error),
}

/// The options for following a turn.
pub struct FollowOptions<'turn> {
    /// The timeouts of its agent's supervision.
    pub limits: TurnTimeouts,
    /// The timeout of its first output, if that is known to come soon.
    pub first_output: Option<Duration>,
    /// Begins to watch its stream, where the system reports writes.
    pub(super) watch: &'turn dyn Fn() -> Option<WriteWatch>,
    /// The time after which the watch begins.
    pub watch_after: Duration,
}

/// Follows a turn to its end, and calls `changed` after new output.
pub async fn follow(
    process: &mut WorkerProcess,
    follower: &mut StreamFollower,
    dialogue: &mut dyn Dialogue,
    stop: &mut watch::Receiver<StopLevel>,
    options: FollowOptions<'_>,
    mut channel: TurnNewsChannel<'_>,
    changed: impl Fn(&dyn Dialogue),
) -> FollowEnd {
    let FollowOptions { limits, first_output, watch, watch_after } = options;
    let began = Instant::now();
    let deadline = began + Duration::from_millis(limits.timeout_ms);
    let mut progressed = began;
    let mut grace = None;
    let mut writes = None;
    let mut first_pause = MIN_POLL_PAUSE;
    let mut pause = first_pause;
    loop {
        if writes.is_none() && began.elapsed() >= watch_after {
            let found = watch();
            // A write wakes the follower at once. The file is also read after a pause, in case a write was not
            // reported.
            if found.is_some() {
                first_pause = MAX_POLL_PAUSE;
                pause = first_pause;
            }
            writes = Some(found);
        }
        match follower.read(dialogue) {
            Ok(true) => {
                pause = first_pause;
                progressed = Instant::now();
                changed(dialogue);
            }
            Ok(false) => pause = (pause * 3 / 2).min(MAX_POLL_PAUSE),
            Err(error) => return FollowEnd::Unreadable(error),
        }
        match dialogue.progress().remainder() {
            Some(TurnRemainder::Nothing) => return FollowEnd::Result,
            Some(TurnRemainder::Announced)
                if progressed.elapsed() > ANNOUNCED_TURN_TIMEOUT
                    && !dialogue.progress().background.session_runs() =>
            {
                return FollowEnd::Result;
            }
            Some(TurnRemainder::Announced | TurnRemainder::Turn | TurnRemainder::Tasks) | None => {}
        }
        if dialogue.progress().authentication_refusals >= MAX_AUTHENTICATION_REFUSALS {
            return FollowEnd::Unauthorized;
        }
        if dialogue.progress().events == 0
            && first_output.is_some_and(|longest| progressed.elapsed() > longest)
        {
            return FollowEnd::NoOutput;
        }
        if idle_timeout(dialogue.progress(), limits)
            .is_some_and(|longest| progressed.elapsed() > longest)
        {
            return FollowEnd::Stalled;
        }
        if grace.is_none() && *stop.borrow() == StopLevel::Patiently {
            grace = Some(Instant::now() + Duration::from_millis(limits.shutdown_ms));
        }
        let held_until = channel.held_until(dialogue);
        if held_until.is_some() && *stop.borrow() != StopLevel::None {
            return FollowEnd::Parked;
        }
        tokio::select! {
            exit = process.exited() => return FollowEnd::Exited(exit),
            () = stopped(stop) => return FollowEnd::Stopped,
            () = sleep_until(grace.unwrap_or(deadline)), if grace.is_some() => return FollowEnd::Stopped,
            () = sleep_until(held_until.unwrap_or(deadline)), if held_until.is_some() => {
                return FollowEnd::Parked;
            }
            () = sleep_until(deadline) => return FollowEnd::TimedOut,
            news = channel.next() => {
                channel.take(news, dialogue).await;
                progressed = Instant::now();
            }
            () = written(writes.as_ref().and_then(Option::as_ref)) => {}
            () = sleep(pause) => {}
        }
    }
}

/// Waits for a write to the stream; forever, where the system does not report writes.
async fn written(watch: Option<&WriteWatch>) {
    match watch {
        Some(watch) => watch.written().await,
        None => std::future::pending().await,
    }
}

/// Returns the idle timeout of a turn: `None` while one of its tools is at work, or after its result while
/// background tasks are; otherwise the limit, plus the pause that the program has announced before it
/// asks the API again.
fn idle_timeout(progress: &TurnProgress, limits: TurnTimeouts) -> Option<Duration> {
    let announced = limits.idle_timeout_ms.saturating_add(progress.retry_delay_ms);
    let is_working = progress.remainder() == Some(TurnRemainder::Tasks)
        || !progress.open_tools.is_empty()
        || progress.approvals.are_held();
    (!is_working).then(|| Duration::from_millis(announced))
}

// The news for a running turn: answers to its calls, and messages from people. Its follower writes them to its process.

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
    /// Opens the channel to the turn of an agent, and replaces that of an earlier turn.
    pub fn open(&self, agent: &AgentId) -> UnboundedReceiver<TurnNews> {
        let (sender, receiver) = unbounded_channel();
        self.0.borrow_mut().insert(agent.clone(), sender);
        receiver
    }

    /// Closes the channel to the turn of an agent.
    pub fn close(&self, agent: &AgentId) {
        self.0.borrow_mut().remove(agent);
    }

    /// Sends news to the turn of an agent. A turn that is over gets none, because its outcome decides what follows.
    pub fn tell(&self, agent: &AgentId, news: TurnNews) {
        if let Some(sender) = self.0.borrow().get(agent) {
            let _ = sender.send(news);
        }
    }
}

/// The news of one turn, on their way to its process.
#[derive(Debug)]
pub struct TurnNewsChannel<'turn> {
    news: &'turn mut UnboundedReceiver<TurnNews>,
    /// The pipe to the process; `None` if nothing can be sent to it.
    stdin: &'turn mut Option<ChildStdin>,
    /// The time for which the process waits for a person.
    hold: Duration,
    /// The time since which it waits.
    since: Option<Instant>,
    /// The messages that are sent once no call waits for a person.
    waiting: Vec<(MessageId, String)>,
}

impl<'turn> TurnNewsChannel<'turn> {
    /// Returns the channel of a turn that has begun.
    pub fn new(
        news: &'turn mut UnboundedReceiver<TurnNews>,
        stdin: &'turn mut Option<ChildStdin>,
        hold: Duration,
    ) -> Self {
        Self { news, stdin, hold, since: None, waiting: Vec::new() }
    }

    /// Waits for the next news; forever if none can come.
    async fn next(&mut self) -> TurnNews {
        match self.news.recv().await {
            Some(news) => news,
            None => std::future::pending().await,
        }
    }

    /// Takes in the news, and writes them to the process.
    async fn take(&mut self, news: TurnNews, dialogue: &mut dyn Dialogue) {
        match news {
            TurnNews::Approval { call, verdict: None } => {
                dialogue.progress_mut().approvals.hold(&call);
            }
            TurnNews::Approval { call, verdict: Some(verdict) } => {
                self.answer(&call, &verdict, dialogue).await;
            }
            TurnNews::Message { id, text } => self.waiting.push((id, text)),
        }
        // The turn may be parked while a call waits for a person. Its process must not have a message then, which it
        // would answer as soon as the turn is cut off.
        if dialogue.progress().approvals.unanswered().is_empty() {
            for (id, text) in std::mem::take(&mut self.waiting) {
                self.send(id, &text, dialogue).await;
            }
        }
    }

    /// Writes an answer to the process. Without the pipe the process has refused the call by itself.
    async fn answer(&mut self, call: &str, verdict: &ApprovalVerdict, dialogue: &mut dyn Dialogue) {
        if self.stdin.is_none() {
            return;
        }
        let Some(line) = dialogue.answer_line(call, verdict) else { return };
        FaultPoint::ApprovalBefore.reach();
        // A part of a line cannot be taken back, so the answer counts as sent. Then it is not known whether the call
        // runs.
        let approvals = &mut dialogue.progress_mut().approvals;
        approvals.answered(call);
        approvals.has_given_rules |= matches!(verdict, ApprovalVerdict::AllowAlways { .. });
        write_within(self.stdin, &line, WRITE_TIMEOUT).await;
        FaultPoint::ApprovalTold.reach();
    }

    /// Sends a message to the process. If the process has not read it by the end of its turn, it stays for the next
    /// prompt.
    async fn send(&mut self, id: MessageId, text: &str, dialogue: &mut dyn Dialogue) {
        let line = dialogue.message_line(&id, text);
        if self.stdin.is_none() || line.len() > MAX_MESSAGE_LINE {
            return;
        }
        FaultPoint::MessageBefore.reach();
        dialogue.progress_mut().messages.sent(id.clone());
        if !write_within(self.stdin, &line, WRITE_TIMEOUT).await {
            dialogue.progress_mut().messages.not_sent(&id);
        }
        FaultPoint::MessageSent.reach();
    }

    /// Returns the time until which the process waits for a person; `None` if it waits for none, or ends the wait
    /// itself.
    fn held_until(&mut self, dialogue: &dyn Dialogue) -> Option<Instant> {
        if self.stdin.is_none() || !dialogue.progress().approvals.are_held() {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        Some(since + self.hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::stream::StreamParser;

    #[test]
    fn idle_timeout_is_suspended_by_tools_and_extended_by_retries() {
        let limits = TurnTimeouts { timeout_ms: 1, idle_timeout_ms: 600_000, shutdown_ms: 1 };
        let mut stream = StreamParser::default();
        let mut after = |line: &str| {
            stream.feed(format!("{line}\n").as_bytes()).expect("a short line");
            idle_timeout(&stream.progress, limits).map(|longest| longest.as_secs())
        };
        let call = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash"}]}}"#;
        let answer = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"done"}]}}"#;
        let retry = r#"{"type":"system","subtype":"api_retry","attempt":3,"retry_delay_ms":30000,"error_status":529}"#;
        assert_eq!(after(r#"{"type":"system","subtype":"init"}"#), Some(600));
        assert_eq!(after(call), None, "a tool takes as long as it takes");
        assert_eq!(after(answer), Some(600));
        assert_eq!(after(retry), Some(630), "a pause that was announced");
        assert_eq!(after(r#"{"type":"assistant","message":{"content":[]}}"#), Some(600));
        assert_eq!(stream.progress.throttled, 1);
    }
}
