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

use self::answer::{AnswerTraces, SteeringMessages};
use self::approvals::{AnsweredRequests, ApprovalCalls, RefusedTools};
use self::background::{BackgroundTasks, TurnRemainder};
use self::line::{AssembledLine, LineKind, StreamLine, StreamLineAssembler, get, text};
pub use self::line::{LineTooLong, MAX_LINE_BYTES};
use self::turn_state::{CostCompleteness, CutOff};

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

/// The end of a turn, as the program reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnResult {
    /// The final message, or the error.
    pub text: Option<String>,
    /// The object that was given by the tool for that, as JSON.
    pub structured: Option<String>,
    /// True if it is an error.
    pub is_error: bool,
    /// The kind of end, such as `success` or `error_during_execution`.
    pub subtype: String,
    /// The duration of the turn, in milliseconds.
    pub duration_ms: u64,
    /// The kind of error that the program names, if it does.
    pub api_error: Option<String>,
    /// The status with which the API refused, if it did.
    pub api_status: Option<u16>,
    /// Further error texts.
    pub errors: Vec<String>,
    /// The reason for the end of the turn, if the program names one.
    pub terminal_reason: Option<String>,
    /// The number of times that the model answered, if the program names it.
    pub requests: Option<u64>,
}

/// The account's usage limit is reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimitRejection {
    /// The time of the reset, as the program reports it: seconds or milliseconds since 1970.
    pub resets_at: Option<f64>,
}

/// The effect of later results on the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum AnswerState {
    /// The last result counts.
    #[default]
    Open,
    /// Later results change nothing but the cost.
    Final,
}

/// The state of a stream that has been read so far.
#[derive(Debug, Default)]
pub struct StreamParser {
    lines: StreamLineAssembler,
    /// The line of a result whose answer was too long.
    lost_answer: Option<LineTooLong>,
    /// The number of events that were understood.
    pub events: u64,
    /// The beginning of the first line that is not an event.
    pub garbage: Option<String>,
    /// The last message of the model.
    pub message: Option<MessageId>,
    /// The last thing it was seen doing.
    pub activity: Option<String>,
    /// The number of parts of messages; they can be dropped at the end.
    pub partials: u64,
    /// True if the model is known to have been asked, even without a message of it.
    was_asked: bool,
    /// True if it has used tools, which may have left processes behind.
    pub used_tools: bool,
    meter: SpendingMeter,
    cost: CostCompleteness,
    expected: TurnBoundary,
    /// The fate of background work when the turn would else be over.
    pub background_work: BackgroundWork,
    /// The tasks that run in the background, after which the program may continue by itself.
    pub background: BackgroundTasks,
    cut_off: Option<CutOff>,
    answer: AnswerState,
    /// The number of results so far.
    pub results: u32,
    /// The tools that have been called and have not answered yet.
    pub open_tools: Vec<String>,
    /// The time that the program waits before it asks the API again, in milliseconds.
    pub retry_delay_ms: u64,
    /// The number of times that the API has asked for fewer requests.
    pub throttled: u32,
    /// The time at which the result, or the error before it, was written; from the line itself, or from the file.
    pub result_written: Option<Timestamp>,
    /// The end of the login, as the program reports it.
    pub login_ends: Option<Timestamp>,
    /// The usage limit that the program reported.
    pub limit: Option<RateLimitRejection>,
    /// The version of the program, as it names it.
    pub version: Option<String>,
    /// True if the program said that it is not logged in.
    pub not_logged_in: bool,
    /// The calls that need approval.
    pub approvals: ApprovalCalls,
    /// The messages of people that it was sent.
    pub messages: SteeringMessages,
    /// The tools that were refused.
    pub refused: RefusedTools,
    /// The traces of an answer of the model.
    pub traces: AnswerTraces,
    /// The answers to the requests of the runtime.
    pub answered_requests: AnsweredRequests,
    /// Number of requests in a row that the API has refused because of the credentials.
    pub authentication_refusals: u32,
    /// The kind of the error for which the program has last repeated its request.
    pub retried_error: Option<String>,
    /// The kind of the last error that the program reported in place of a message.
    pub reported_error: Option<String>,
    /// The end of the turn.
    pub result: Option<TurnResult>,
}

impl StreamParser {
    /// Returns a parser for the part of a stream that answers a message; `spent_before` is not part of its cost.
    pub fn answer_to(message: MessageId, spent_before: ProcessSpending) -> Self {
        let expected = TurnBoundary::answer_to(message);
        let meter = SpendingMeter::starting_at(spent_before);
        Self { meter, expected, ..Self::default() }
    }

    /// Sets the fate of background work, and the tasks that run already.
    pub fn with_background(self, work: BackgroundWork, tasks: BackgroundTasks) -> Self {
        Self { background_work: work, background: tasks, ..self }
    }

    /// Returns the rest of the turn after its last result; `None` before the first result.
    pub fn remainder(&self) -> Option<TurnRemainder> {
        let result = self.result.as_ref();
        result.map(|_| match self.answer {
            AnswerState::Final => TurnRemainder::Nothing,
            AnswerState::Open => {
                self.background.remainder(self.background_work).with_messages(&self.messages)
            }
        })
    }

    /// Keeps later results from changing the answer.
    pub fn finish_answer(&mut self) {
        self.answer = AnswerState::Final;
    }

    /// Returns the spending of the turn so far.
    pub fn taken(&self) -> &ProcessSpending {
        self.meter.turn()
    }

    /// Returns the last total that the process reported.
    pub fn total(&self) -> &ProcessSpending {
        self.meter.last_total()
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
        if self.remainder() == Some(TurnRemainder::Nothing) {
            self.answer = AnswerState::Final;
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
            self.open_tools.clear();
        }
    }

    /// Takes a part of a message. For the turn it only means that the API answers.
    fn partial_message(&mut self) {
        self.events += 1;
        self.partials += 1;
        self.authentication_refusals = 0;
        self.was_asked = true;
        if std::mem::take(&mut self.retry_delay_ms) > 0 {
            self.activity = Some("writing".to_owned());
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
            terminal_reason: text(event.terminal_reason),
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
