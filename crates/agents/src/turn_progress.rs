//! What is known of a turn while it runs, whatever program works on it. Pure.
//!
//! The dialogue of a program writes it, from what its process prints. All else reads it.

use raymond_model::id::MessageId;
use raymond_model::time::Timestamp;
use raymond_model::transition::TagName;
use raymond_model::turn::says_nothing;
use raymond_model::turn_options::BackgroundWork;
use raymond_model::usage::{ProcessSpending, SpendingMeter};

use crate::approvals::{ApprovalCalls, RefusedTools};
use crate::background::{BackgroundTasks, TurnRemainder};

/// The end of a turn, as the program reports it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnResult {
    /// The final message, or the error.
    pub text: Option<String>,
    /// The object that was given by the tool for that, as JSON.
    pub structured: Option<String>,
    /// True if it is an error.
    pub is_error: bool,
    /// The kind of end, as the program names it.
    pub subtype: String,
    /// The duration of the turn, in milliseconds.
    pub duration_ms: u64,
    /// The kind of error that the program names, if it does.
    pub api_error: Option<String>,
    /// The status with which the API refused, if it did.
    pub api_status: Option<u16>,
    /// Further error texts.
    pub errors: Vec<String>,
    /// The reason for which the turn ended before the model had finished it, if it did.
    pub unfinished: Option<String>,
    /// The number of times that the model answered, if the program names it.
    pub requests: Option<u64>,
}

/// The effect of later results on the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AnswerState {
    /// The last result counts.
    #[default]
    Open,
    /// Later results change nothing but the cost.
    Final,
}

/// What is known of a turn so far.
#[derive(Debug, Default)]
pub struct TurnProgress {
    /// The number of events that were understood.
    pub events: u64,
    /// The last message of the model: the session can be branched there.
    pub message: Option<MessageId>,
    /// The last thing it was seen doing.
    pub activity: Option<String>,
    /// The number of parts of messages; they can be dropped at the end.
    pub partials: u64,
    /// True if the model is known to have been asked, even without a message of it.
    pub(crate) was_asked: bool,
    /// True if it has used tools, which may have left processes behind.
    pub used_tools: bool,
    pub(crate) meter: SpendingMeter,
    pub(crate) cost: CostCompleteness,
    /// The fate of background work when the turn would else be over.
    pub background_work: BackgroundWork,
    /// The tasks that run in the background, after which the program may continue by itself.
    pub background: BackgroundTasks,
    pub(crate) cut_off: Option<CutOff>,
    pub(crate) answer: AnswerState,
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
    /// The calls that need approval.
    pub approvals: ApprovalCalls,
    /// The messages of people that it was sent.
    pub messages: SteeringMessages,
    /// The tools that were refused.
    pub refused: RefusedTools,
    /// Number of requests in a row that the API has refused because of the credentials.
    pub authentication_refusals: u32,
    /// What people should know about the turn, regardless of its outcome.
    pub notices: Vec<String>,
    /// The end of the turn.
    pub result: Option<TurnResult>,
}

impl TurnProgress {
    /// Returns the rest of the turn after its last result; `None` before the first result. An unread message announces
    /// a further turn.
    pub fn remainder(&self) -> Option<TurnRemainder> {
        self.result.as_ref()?;
        let of_tasks = || self.background.remainder(self.background_work);
        Some(match self.answer {
            AnswerState::Final => TurnRemainder::Nothing,
            AnswerState::Open => match of_tasks() {
                TurnRemainder::Nothing if self.messages.are_in_flight() => TurnRemainder::Announced,
                remainder => remainder,
            },
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
}

// Turns that are cut off: the part of their answer that counts, and the known part of their cost.

/// The moment at which a turn was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CutOff {
    /// The model was at work.
    was_at_work: bool,
    /// The number of results by then.
    results: u32,
    /// The tasks that it waited for, for people.
    tasks: Option<String>,
}

/// The completeness of the cost of a turn beyond its results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CostCompleteness {
    /// The cost was read when the turn was being ended.
    pub(crate) is_read_at_the_end: bool,
    /// A response was cut off, and no total has it.
    pub(crate) lacks_a_response: bool,
    /// A result came whose answer was too long to be held: the turn was over, and its total is known.
    pub(crate) has_lost_answer: bool,
}

impl TurnProgress {
    /// Marks the turn as cut off. If it waits for background work, which is ended now, it has no
    /// answer, nor may one still come.
    pub fn cut_off(&mut self) {
        self.approvals.cut_off();
        let (was_at_work, is_unfinished) = match self.remainder() {
            None if self.cost.has_lost_answer => (false, true),
            None => (true, self.background.has_awaited(self.background_work)),
            Some(TurnRemainder::Turn) => (true, true),
            Some(TurnRemainder::Announced | TurnRemainder::Tasks) => (false, true),
            Some(TurnRemainder::Nothing) => (false, false),
        };
        let tasks = self.background.names().filter(|_| is_unfinished);
        self.cut_off = Some(CutOff { was_at_work, results: self.results, tasks });
        if is_unfinished {
            self.result = None;
            self.answer = AnswerState::Final;
        }
    }

    /// Returns whether the cost of a turn that is cut off is known, including the cost of its last response.
    pub fn has_settled(&self) -> bool {
        self.cut_off.as_ref().is_some_and(|cut_off| {
            let is_over = !cut_off.was_at_work || self.results > cut_off.results;
            is_over && (self.cost.is_read_at_the_end || self.cost.has_lost_answer)
        })
    }

    /// Returns the tasks that are known to run, or ran when the turn was cut off, for people.
    pub fn awaited_tasks(&self) -> Option<String> {
        let cut_off = self.cut_off.as_ref().and_then(|cut_off| cut_off.tasks.clone());
        cut_off.or_else(|| self.background.names())
    }

    /// Returns whether the cost was read when the turn was being ended.
    pub fn has_final_cost(&self) -> bool {
        self.cost.is_read_at_the_end
    }

    /// Marks the stream of a process that was asked while the disk was full.
    pub fn set_was_asked(&mut self) {
        self.was_asked = true;
    }

    /// Returns whether the turn may have cost more than [`taken`](Self::taken) says: only newer versions report an
    /// estimate for a response that is cut off.
    pub fn has_unknown_cost(&self) -> bool {
        let is_over =
            matches!(self.remainder(), Some(TurnRemainder::Nothing | TurnRemainder::Announced))
                || self.cost.has_lost_answer;
        let is_known = if self.cut_off.is_some() { self.has_settled() } else { is_over };
        let was_asked = self.message.is_some() || self.was_asked;
        self.cost.lacks_a_response || (was_asked && !is_known)
    }
}

impl TurnResult {
    /// Returns whether the model has ended the turn, as far as the program says.
    pub fn is_finished(&self) -> bool {
        self.unfinished.is_none()
    }

    /// Returns whether it says that no model was asked.
    pub fn asked_no_model(&self) -> bool {
        self.requests == Some(0)
    }

    /// Returns whether it has an answer that a later result without one leaves standing.
    pub(crate) fn is_answer(&self) -> bool {
        !self.is_error && self.is_finished() && !self.asked_no_model() && self.has_words()
    }

    pub(crate) fn has_words(&self) -> bool {
        self.structured.is_some() || self.text.as_ref().is_some_and(|text| !says_nothing(text))
    }
}

// The messages from people that were sent to a running turn, and those that it has read.
//
// The program repeats a message when it reads it: before its next request, or in a separate turn after the result if
// the turn has no further request. So a turn is not over while a message is on its way.

/// The messages of a turn.
#[derive(Debug, Default)]
pub struct SteeringMessages {
    /// Those that were written to the program and not read yet.
    in_flight: Vec<MessageId>,
    /// All that the program has repeated, the prompt among them.
    repeated: Vec<MessageId>,
    /// True if the program answers one after it has given an answer.
    are_late: bool,
}

impl SteeringMessages {
    /// Notes that a message is being written to the program.
    pub fn sent(&mut self, id: MessageId) {
        self.in_flight.push(id);
    }

    /// Notes that a message could not be written whole.
    pub fn not_sent(&mut self, id: &MessageId) {
        self.in_flight.retain(|sent| sent != id);
    }

    /// Returns whether a message was written that the program has not read.
    pub fn are_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Returns the messages that were read, in their order, without the first of them.
    pub fn read_since(&self, count: usize) -> impl Iterator<Item = &MessageId> {
        self.repeated.iter().skip(count)
    }

    /// Takes in a message that the program repeats; returns whether it was on its way.
    pub(crate) fn repeated(&mut self, id: MessageId, has_answer: bool) -> bool {
        let before = self.in_flight.len();
        self.in_flight.retain(|sent| *sent != id);
        self.are_late |= has_answer;
        self.repeated.push(id);
        self.in_flight.len() < before
    }

    /// Takes the answer before a message into the answer to it, if there are both: a transition that the last one does
    /// not request stays requested.
    pub(crate) fn combine(&self, before: &TurnResult, last: &mut TurnResult) {
        if !self.are_late || last.is_error || before.is_error {
            return;
        }
        if last.structured.is_none() {
            last.structured.clone_from(&before.structured);
        }
        let (Some(earlier), Some(text)) = (&before.text, &last.text) else { return };
        if !has_tag(text) {
            last.text = Some(format!("{earlier}\n\n{text}"));
        }
    }
}

/// Returns whether a text ends an element that requests a transition.
pub(crate) fn has_tag(text: &str) -> bool {
    let names = TagName::ALL.iter().map(|tag| tag.name()).chain(TagName::OF_WORKFLOWS);
    names.into_iter().any(|name| text.contains(&format!("</{name}>")))
}

/// The longest line that is held, in bytes.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// A line that is longer than [`MAX_LINE_BYTES`], and whose answer cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of its output is the result, and longer than {} MiB", MAX_LINE_BYTES >> 20)]
pub struct LineTooLong {
    /// The line, from 1.
    pub line: u64,
}
