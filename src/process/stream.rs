//! Reads Claude Code's stream, one JSON object a line, in memory that does not grow with it. Pure.
//!
//! It reads tolerantly: unknown events and fields are passed over, a line that is not JSON is
//! remembered for the error message, and bytes that are not UTF-8 are replaced. Only one line is
//! held at a time, and its length is capped.

pub mod glimpse;
mod line;
mod spent;

use memchr::memchr;
use serde_json::value::RawValue;

use self::line::{Line, Message, Origin, RateLimit, get, text};

use crate::domain::id::MessageId;
use crate::domain::passage::Expected;
use crate::domain::usage::Spent;

/// The longest line, in bytes.
pub const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// The model name of messages the program writes itself, which no model has seen.
const SYNTHETIC: &str = "<synthetic>";

/// A line that is longer than [`LONGEST_LINE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of its output is longer than {} MiB", LONGEST_LINE >> 20)]
pub struct TooLong {
    /// The line, from 1.
    pub line: u64,
}

/// The end of a turn, as the program reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnResult {
    /// The final message, or the error.
    pub text: Option<String>,
    /// Whether it is an error.
    pub is_error: bool,
    /// The kind of end, such as `success` or `error_during_execution`.
    pub subtype: String,
    /// What the turn has taken.
    pub taken: Spent,
    /// What the process has taken so far.
    pub spent: Spent,
    /// How long the turn took, in milliseconds.
    pub duration_ms: u64,
    /// The status with which the API refused, if it did.
    pub api_status: Option<u16>,
    /// Further error texts.
    pub errors: Vec<String>,
}

/// The account's usage limit is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rejected {
    /// When it resets, as the program says it: seconds or milliseconds since 1970.
    pub resets_at: Option<f64>,
}

/// What has been read of a stream.
#[derive(Debug, Default)]
pub struct Stream {
    partial: Vec<u8>,
    lines: u64,
    /// How many events were understood.
    pub events: u64,
    /// The beginning of the first line that is not an event.
    pub garbage: Option<String>,
    /// The last message of the model.
    pub message: Option<MessageId>,
    /// The last thing it was seen doing.
    pub activity: Option<String>,
    /// Whether it has used tools, which may have left processes behind.
    pub used_tools: bool,
    /// What the process had taken before.
    spent_before: Spent,
    expected: Expected,
    /// What the program does in the background, which may have it go on by itself.
    pub open_tasks: Vec<String>,
    /// The tools that have been called and have not answered yet.
    pub open_tools: Vec<String>,
    /// How long the program waits before it asks the API again, in milliseconds.
    pub retry_delay_ms: u64,
    /// How often the API has asked for fewer requests.
    pub throttled: u32,
    /// The usage limit that the program reported.
    pub limit: Option<Rejected>,
    /// The version of the program, as it names it.
    pub version: Option<String>,
    /// Whether the program said that it is not logged in.
    pub not_logged_in: bool,
    /// The end of the turn.
    pub result: Option<TurnResult>,
}

impl Stream {
    /// The part of a stream that answers a message; what the process had taken before is not its own.
    #[must_use]
    pub fn answer_to(message: MessageId, spent_before: Spent) -> Self {
        let expected = Expected::answer_to(message);
        Self { spent_before, expected, ..Self::default() }
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// [`TooLong`]; what was read before stays.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        while let Some(end) = memchr(b'\n', bytes) {
            if self.partial.is_empty() {
                self.line(&bytes[..end])?;
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&bytes[..end]);
                self.line(&line)?;
                line.clear();
                line.shrink_to(LONGEST_LINE / 16);
                self.partial = line;
            }
            bytes = &bytes[end + 1..];
        }
        if self.partial.len() + bytes.len() > LONGEST_LINE {
            return Err(TooLong { line: self.lines + 1 });
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes what is left as a line, when nothing more will come.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn end(&mut self) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.partial);
        if line.is_empty() { Ok(()) } else { self.line(&line) }
    }

    fn line(&mut self, line: &[u8]) -> Result<(), TooLong> {
        self.lines += 1;
        if line.len() > LONGEST_LINE {
            return Err(TooLong { line: self.lines });
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(line);
        match serde_json::from_str::<Line<'_>>(&text) {
            Ok(event) => self.event(&event),
            Err(_) if self.garbage.is_none() => self.garbage = Some(excerpt(&text)),
            Err(_) => {}
        }
        Ok(())
    }

    fn event(&mut self, event: &Line<'_>) {
        self.events += 1;
        self.retry_delay_ms = 0;
        match &*event.kind {
            "assistant" => self.assistant(event),
            "system" => match text(event.subtype).as_deref() {
                Some("init") => self.version = text(event.claude_code_version),
                Some("api_retry") => self.api_retry(event),
                Some("task_started") => self.open_tasks.extend(text(event.task_id)),
                Some("task_notification") => self.task_ended(event),
                _ => {}
            },
            "user" => self.user(event),
            "rate_limit_event" => self.rate_limit(event),
            "result" => self.result(event),
            _ => {}
        }
    }

    fn assistant(&mut self, event: &Line<'_>) {
        self.not_logged_in |= text(event.error).as_deref() == Some("authentication_failed");
        let Some(message) = get::<Message<'_>>(event.message) else { return };
        if text(message.model).as_deref() == Some(SYNTHETIC) {
            return;
        }
        if let (Some(uuid), None) = (text(event.uuid), text(event.parent_tool_use_id)) {
            self.message = Some(MessageId::new(&uuid));
        }
        for content in message.content {
            match &*content.kind {
                "tool_use" => {
                    self.used_tools = true;
                    self.activity = text(content.name);
                    self.open_tools.extend(text(content.id));
                }
                "text" => self.activity = Some("writing".to_owned()),
                "thinking" => self.activity = Some("thinking".to_owned()),
                _ => {}
            }
        }
    }
}

impl Stream {
    fn api_retry(&mut self, event: &Line<'_>) {
        let attempt: u32 = get(event.attempt).unwrap_or(1);
        self.activity = Some(format!("waiting for the API (attempt {attempt})"));
        self.retry_delay_ms = whole(get(event.retry_delay_ms).unwrap_or(0.0));
        let status: Option<u16> = get(event.error_status);
        let asked = matches!(text(event.error).as_deref(), Some("rate_limit" | "overloaded"));
        if asked || status.is_some_and(is_throttle) {
            self.throttled += 1;
        }
    }

    fn task_ended(&mut self, event: &Line<'_>) {
        if let Some(ended) = text(event.task_id) {
            self.open_tasks.retain(|task| *task != ended);
        }
    }

    fn result(&mut self, event: &Line<'_>) {
        let origin = get::<Origin<'_>>(event.origin).map(|origin| origin.kind);
        if self.result.is_none() && self.expected.is_ended_by(origin.as_deref()) {
            let read = TurnResult::read(event);
            let taken = read.spent.since(&self.spent_before);
            self.result = Some(TurnResult { taken, ..read });
        }
    }

    fn user(&mut self, event: &Line<'_>) {
        if self.expected.is_waiting()
            && let Some(id) = text(event.uuid)
        {
            self.expected.repeated(&id);
        }
        if self.open_tools.is_empty() {
            return;
        }
        let Some(message) = get::<Message<'_>>(event.message) else { return };
        for content in message.content {
            if let Some(answered) = text(content.tool_use_id) {
                self.open_tools.retain(|tool| *tool != answered);
            }
        }
    }

    /// A refusal that names no limit of the account is one of the API's, for a moment; and an account
    /// that goes on with extra usage is not refused.
    fn rate_limit(&mut self, event: &Line<'_>) {
        let Some(info) = get::<RateLimit<'_>>(event.rate_limit_info) else { return };
        let rejected = text(info.status).as_deref() == Some("rejected");
        let limited = info.resets_at.is_some() || info.kind.is_some();
        let goes_on = get(info.on_extra_usage).unwrap_or(false);
        self.limit =
            (rejected && limited && !goes_on).then(|| Rejected { resets_at: get(info.resets_at) });
    }
}

/// Whether the API's status means that it has no room for the request now.
#[must_use]
pub fn is_throttle(status: u16) -> bool {
    matches!(status, 429 | 503 | 529)
}

impl TurnResult {
    fn read(event: &Line<'_>) -> Self {
        let errors: Vec<&RawValue> = get(event.errors).unwrap_or_default();
        Self {
            text: text(event.result),
            is_error: get(event.is_error).unwrap_or(false),
            subtype: text(event.subtype).unwrap_or_default(),
            taken: Spent::default(),
            spent: spent::read(event),
            duration_ms: whole(get(event.duration_ms).unwrap_or(0.0)),
            api_status: get(event.api_error_status),
            errors: errors
                .into_iter()
                .map(|error| text(Some(error)).unwrap_or_else(|| error.to_string()))
                .collect(),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates, and a negative number counts as none"
)]
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

/// The beginning of a text, for a message.
#[must_use]
pub fn excerpt(text: &str) -> String {
    const LENGTH: usize = 200;
    let text = text.trim();
    let cut = text.floor_char_boundary(LENGTH);
    let shown: String = text[..cut].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if cut < text.len() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests;
