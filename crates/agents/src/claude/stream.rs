//! Reads Claude Code's stream, one JSON object a line, in memory that does not grow with it. Pure.
//!
//! It reads tolerantly: unknown events and fields are skipped, a line that is not JSON is kept for the error message,
//! and bytes that are not UTF-8 are replaced. Only one line is held at a time, and its length is limited. Only the
//! short members of a longer line count. If that line is the result and lacks the answer, the error is reported once.
//! The costs in it and in the lines after it count.
//!
//! All readers of the stream share `line`: [`StreamParser`] for the outcome of a turn, [`activity`] for the view of
//! a running turn, and the [transcript](super::turn_transcript) of a finished turn.

use raymond_model::id::MessageId;
use raymond_model::time::Timestamp;
use raymond_model::turn::TurnBoundary;
use raymond_model::turn_options::BackgroundWork;
use raymond_model::usage::{ProcessSpending, SpendingMeter};
use serde_json::value::RawValue;

use self::answer::{AnswerTraces, FINISHED};
use self::approvals::AnsweredRequests;
use self::line::{AssembledLine, LineKind, StreamLine, StreamLineAssembler, get, text};
use crate::background::{BackgroundTasks, TurnRemainder};
use crate::turn_progress::{AnswerState, LineTooLong, TurnProgress, TurnResult};

pub mod activity;
pub mod answer;
pub mod approvals;
pub mod background;
pub mod line;
mod turn_state;

/// The model name of messages that the program writes itself, without a model.
const SYNTHETIC: &str = "<synthetic>";

/// The kind of error that the program names when the API does not accept the credentials.
const AUTHENTICATION_FAILED: &str = "authentication_failed";

/// The account's usage limit is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimitRejection {
    /// The time of the reset, as the program reports it: seconds or milliseconds since 1970.
    pub resets_at: Option<f64>,
}

/// The state of a stream that has been read so far.
#[derive(Debug, Default)]
pub struct StreamParser {
    /// What is known of the turn.
    pub(crate) progress: TurnProgress,
    lines: StreamLineAssembler,
    /// The line of a result whose answer was too long.
    lost_answer: Option<LineTooLong>,
    /// The beginning of the first line that is not an event.
    pub garbage: Option<String>,
    expected: TurnBoundary,
    /// The message that asks the turn.
    pub(crate) asked: Option<MessageId>,
    /// The ids of the requests to change the process.
    pub(crate) switches: Vec<String>,
    /// The end of the login, as the program reports it.
    pub login_ends: Option<Timestamp>,
    /// The usage limit that the program reported.
    pub limit: Option<RateLimitRejection>,
    /// The version of the program, as it names it.
    pub version: Option<String>,
    /// The traces of an answer of the model.
    pub traces: AnswerTraces,
    /// The answers to the requests of the runtime.
    pub answered_requests: AnsweredRequests,
    /// The kind of the error for which the program has last repeated its request.
    pub retried_error: Option<String>,
    /// The kind of the last error that the program reported in place of a message.
    pub reported_error: Option<String>,
}

impl StreamParser {
    /// Returns a parser for the part of a stream that answers a message; `spent_before` is not part of its cost.
    pub fn answer_to(message: MessageId, spent_before: ProcessSpending) -> Self {
        let asked = Some(message.clone());
        let expected = TurnBoundary::answer_to(message);
        let meter = SpendingMeter::starting_at(spent_before);
        let progress = TurnProgress { meter, ..TurnProgress::default() };
        Self { progress, expected, asked, ..Self::default() }
    }

    /// Sets the fate of background work, and the tasks that run already.
    pub fn with_background(mut self, work: BackgroundWork, tasks: BackgroundTasks) -> Self {
        self.progress.background_work = work;
        self.progress.background = tasks;
        self
    }

    /// Takes the next bytes of the stream.
    ///
    /// # Errors
    /// [`LineTooLong`], once for each result whose answer is too long; all bytes are taken nevertheless.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), LineTooLong> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line| self.line(line));
        self.lines = lines;
        self.check_answer()
    }

    /// Checks that no answer was lost since the last check.
    ///
    /// # Errors
    /// [`LineTooLong`], if the line of a result was too long for its answer to be held.
    pub(crate) fn check_answer(&mut self) -> Result<(), LineTooLong> {
        self.lost_answer.take().map_or(Ok(()), Err)
    }

    /// Takes the remaining bytes as a line, at the end of the stream.
    pub fn end(&mut self) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.end(|line| self.line(line));
        self.lines = lines;
    }

    fn line(&mut self, line: AssembledLine<'_>) {
        match line {
            AssembledLine::Whole(line) => self.whole_line(line),
            AssembledLine::TooLong { members, line } => {
                if let Some(event) = StreamLine::parse(&String::from_utf8_lossy(&members)) {
                    self.take_reduced(&event, LineTooLong { line });
                }
            }
        }
    }

    fn whole_line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if line::begins_as_partial(line) {
            return self.partial_message();
        }
        let text = String::from_utf8_lossy(line);
        match StreamLine::parse(&text) {
            Some(event) => self.take(&event),
            None if self.garbage.is_none() => self.garbage = Some(excerpt(&text)),
            None => {}
        }
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self, event: &StreamLine<'_>) {
        self.event(event);
        if self.progress.remainder() == Some(TurnRemainder::Nothing) {
            self.progress.answer = AnswerState::Final;
        }
    }

    /// Takes an event without its long members. Only a result is nothing without them, if no message has its text.
    pub(crate) fn take_reduced(&mut self, event: &StreamLine<'_>, line: LineTooLong) {
        let is_lost = event.kind == LineKind::Result
            && event.result.is_none()
            && !self.traces.has_text()
            && get(event.is_error) != Some(true);
        if is_lost {
            self.costs_of(event);
            self.lost_answer = Some(line);
            return;
        }
        self.take(event);
        if event.kind == LineKind::User {
            // It has the answer of a tool, but which tool is not known.
            self.progress.open_tools.clear();
        }
    }

    /// Takes a part of a message. For the turn it only means that the API answers.
    fn partial_message(&mut self) {
        self.progress.events += 1;
        self.progress.partials += 1;
        self.progress.authentication_refusals = 0;
        self.progress.was_asked = true;
        if std::mem::take(&mut self.progress.retry_delay_ms) > 0 {
            self.progress.activity = Some("writing".to_owned());
        }
    }
}

/// Returns whether the API's status means that it has no room for the request now.
pub fn is_throttle(status: u16) -> bool {
    matches!(status, 429 | 503 | 529)
}

impl TurnResult {
    pub(crate) fn read(event: &StreamLine<'_>) -> Self {
        let errors: Vec<&RawValue> = get(event.errors).unwrap_or_default();
        Self {
            text: text(event.result),
            structured: get::<&RawValue>(event.structured_output)
                .map(|object| object.get().to_owned())
                .filter(|object| object != "null"),
            is_error: get(event.is_error).unwrap_or(false),
            subtype: text(event.subtype).unwrap_or_default(),
            unfinished: text(event.terminal_reason).filter(|reason| !FINISHED.contains(&&**reason)),
            requests: get(event.num_turns),
            duration_ms: whole(get(event.duration_ms).unwrap_or(0.0)),
            api_error: text(event.api_error),
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

/// Returns the beginning of a text, for a message.
pub fn excerpt(text: &str) -> String {
    const LENGTH: usize = 200;
    let text = text.trim();
    let cut = text.floor_char_boundary(LENGTH);
    let shown: String = text[..cut].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if cut < text.len() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests;
