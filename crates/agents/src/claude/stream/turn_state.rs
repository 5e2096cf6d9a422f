//! Reads the events of a stream into the state of the turn: its result, its cost, and where it was cut off. Pure.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::claude::message::{BASE_USAGE, FINAL_USAGE};
use crate::claude::stream::background::TurnRemainder;
use crate::claude::stream::line::{
    ControlResponse, LineKind, ModelUsage, RateLimit, RawField, StreamLine, StreamMessage,
    StreamTurnOrigin, UsageResponse, get, instant, text,
};
use crate::claude::stream::{
    AUTHENTICATION_FAILED, AnswerState, RateLimitRejection, SYNTHETIC, StreamParser, TurnResult,
    is_throttle, whole,
};
use raymond_model::money::Usd;
use raymond_model::usage::{ModelUse, ProcessSpending};

/// The reason for the end of a turn whose response was cut off.
const CUT_OFF: &str = "aborted_streaming";

impl StreamParser {
    pub(super) fn event(&mut self, event: &StreamLine<'_>) {
        if event.kind == LineKind::Partial {
            return self.partial_message();
        }
        self.events += 1;
        self.retry_delay_ms = 0;
        match event.kind {
            LineKind::Assistant => self.assistant(event),
            LineKind::System => self.system(event),
            LineKind::User => self.user(event),
            LineKind::RateLimit => self.rate_limit(event),
            LineKind::Result => self.result(event),
            LineKind::ControlResponse => {
                self.approvals.repeated(event);
                self.control_response(event);
            }
            LineKind::ControlRequest => self.approvals.requested(event),
            LineKind::ControlCancel => self.approvals.cancelled(event),
            LineKind::Partial | LineKind::Other => {}
        }
    }

    fn system(&mut self, event: &StreamLine<'_>) {
        let subtype = text(event.subtype).unwrap_or_default();
        match subtype.as_str() {
            "init" => self.version = text(event.claude_code_version),
            "api_retry" => self.api_retry(event),
            "permission_denied" => self.refused.denied(event),
            "informational" => self.traces.reported(event),
            "model_refusal_fallback" | "model_fallback" => self.traces.changed_model(event),
            _ => {}
        }
        self.background.system(&subtype, event);
    }

    fn assistant(&mut self, event: &StreamLine<'_>) {
        let error = text(event.error);
        self.not_logged_in |= error.as_deref() == Some(AUTHENTICATION_FAILED);
        self.reported_error = error.or(self.reported_error.take());
        let Some(message) = get::<StreamMessage<'_>>(event.message) else {
            if event.message.is_none() && event.is_of_main_agent() {
                // It was too long to be held.
                self.traces.forget_text();
                self.message = event.message_id().or(self.message.take());
            }
            return;
        };
        if text(message.model).as_deref() == Some(SYNTHETIC) {
            self.result_written = event.written_at();
            let written = message.content.into_iter().rfind(|content| content.kind == "text");
            self.traces.wrote_itself(written.and_then(|content| text(content.text)));
            return;
        }
        self.authentication_refusals = 0;
        self.result_written = None;
        if let (Some(id), None) = (event.message_id(), text(event.parent_tool_use_id)) {
            self.message = Some(id);
        }
        let is_main = event.is_of_main_agent();
        for content in message.content {
            match &*content.kind {
                "tool_use" => {
                    if is_main {
                        self.traces.called_tool();
                    }
                    self.used_tools = true;
                    self.refused.called(&content);
                    self.activity = text(content.name);
                    self.open_tools.extend(text(content.id));
                }
                "text" => {
                    if is_main {
                        self.traces.wrote(text(content.text));
                    }
                    self.activity = Some("writing".to_owned());
                }
                "thinking" => self.activity = Some("thinking".to_owned()),
                _ => {}
            }
        }
    }
}

impl StreamParser {
    fn api_retry(&mut self, event: &StreamLine<'_>) {
        let attempt: u32 = get(event.attempt).unwrap_or(1);
        self.activity = Some(format!("waiting for the API (attempt {attempt})"));
        self.retry_delay_ms = whole(get(event.retry_delay_ms).unwrap_or(0.0));
        let status: Option<u16> = get(event.error_status);
        let error = text(event.error);
        let asked = matches!(error.as_deref(), Some("rate_limit" | "overloaded"));
        if asked || status.is_some_and(is_throttle) {
            self.throttled += 1;
        }
        let refused = error.as_deref() == Some(AUTHENTICATION_FAILED);
        if refused || matches!(status, Some(401 | 403)) {
            self.authentication_refusals += 1;
        } else {
            self.authentication_refusals = 0;
        }
        self.retried_error = error;
    }

    /// Takes only the cost of a result.
    pub(super) fn costs_of(&mut self, event: &StreamLine<'_>) {
        self.events += 1;
        self.results += 1;
        self.meter.read_total(of_result(event));
        self.cost.has_lost_answer = true;
    }

    /// Takes the answer to a request for the cost. The total before the first turn is not its cost; any later one
    /// is.
    fn control_response(&mut self, event: &StreamLine<'_>) {
        self.answered_requests.take(event);
        match of_usage_response(event) {
            Some((request, total)) if request == BASE_USAGE => self.meter.set_base(total),
            Some((request, total)) if request == FINAL_USAGE => {
                self.meter.read_total(total);
                self.cost.is_read_at_the_end = true;
            }
            _ => {}
        }
    }

    /// Takes a result. A turn may have several: when background work ends, the model is notified and answers again. The
    /// last result counts, unless only the previous result is an answer.
    fn result(&mut self, event: &StreamLine<'_>) {
        self.approvals.result(event);
        let approvals = &self.approvals;
        self.refused.result(event, |call| approvals.is_unanswered(call));
        self.results += 1;
        self.meter.read_total(of_result(event));
        self.background.result(event);
        self.cost.lacks_a_response |= text(event.terminal_reason).as_deref() == Some(CUT_OFF)
            && event.model_usage_since_last_result.is_none();
        let origin = get::<StreamTurnOrigin<'_>>(event.origin).map(|origin| origin.kind);
        let messages: Option<Vec<String>> = get(event.user_message_uuids);
        if self.answer == AnswerState::Final
            || !self.expected.is_answered_by(origin.as_deref(), messages.as_deref())
        {
            self.traces.forget_text();
            return;
        }
        self.expected.answered();
        self.result_written = event.written_at().or(self.result_written);
        self.login_ends = instant(event.credential_expires_at).or(self.login_ends);
        let mut read = TurnResult::read(event);
        self.traces.complete(&mut read);
        if let Some(before) = self.result.take() {
            let duration_ms = read.duration_ms.saturating_add(before.duration_ms);
            if before.is_answer() && !read.is_error && read.is_finished() && !read.is_answer() {
                read = before;
            } else {
                self.messages.combine(&before, &mut read);
            }
            read.duration_ms = duration_ms;
        }
        self.result = Some(read);
        if let Some(waits) = self.background.names() {
            self.activity = Some(format!("waiting for {waits}"));
        }
    }

    fn user(&mut self, event: &StreamLine<'_>) {
        let waits = self.expected.is_waiting();
        if event.is_repetition() {
            self.repeated(event);
        } else {
            self.traces.prompted(event);
        }
        if !waits && self.open_tools.is_empty() {
            return;
        }
        let Some(message) = get::<StreamMessage<'_>>(event.message) else { return };
        for content in message.content {
            self.refused.answered(&content);
            if let Some(answered) = text(content.tool_use_id) {
                self.open_tools.retain(|tool| *tool != answered);
                if get::<bool>(content.is_error) != Some(true) {
                    self.approvals.has_run(&answered);
                }
            }
        }
    }

    /// Takes a message that the program repeats, because it answers it from now on.
    fn repeated(&mut self, event: &StreamLine<'_>) {
        let Some(id) = event.message_id() else { return };
        self.expected.repeated(id.as_str());
        let has_answer = self.result.is_some();
        if self.messages.repeated(id, has_answer) && self.answer == AnswerState::Open {
            self.background.turn_begins();
        }
    }

    /// Takes a rate limit event. A refusal that names no limit of the account is a momentary one of the API; an
    /// account that continues with extra usage is not refused.
    fn rate_limit(&mut self, event: &StreamLine<'_>) {
        let Some(info) = get::<RateLimit<'_>>(event.rate_limit_info) else { return };
        let rejected = text(info.status).as_deref() == Some("rejected");
        let limited = info.resets_at.is_some() || info.kind.is_some();
        let goes_on = get(info.on_extra_usage).unwrap_or(false);
        self.limit = (rejected && limited && !goes_on)
            .then(|| RateLimitRejection { resets_at: get(info.resets_at) });
    }
}

// Totals of cost and use that a process reports, for each model.
//
// A result and the answer to `get_usage` have them, with the totals of sub-agents and of compaction. (The `usage` of
// a result counts the main conversation alone.)

/// Returns the totals of a result; a field that is missing or has another form counts as 0.
pub(super) fn of_result(event: &StreamLine<'_>) -> ProcessSpending {
    totals(event.total_cost_usd, event.model_usage)
}

/// Returns the totals of an answer to `get_usage`, with the id of the request.
pub(super) fn of_usage_response(event: &StreamLine<'_>) -> Option<(String, ProcessSpending)> {
    let answer: ControlResponse<'_> = get(event.response)?;
    let UsageResponse { session } = get(answer.response)?;
    session.total_cost_usd?;
    Some((text(answer.request_id)?, totals(session.total_cost_usd, session.model_usage)))
}

fn totals(cost: RawField<'_>, model_usage: RawField<'_>) -> ProcessSpending {
    let models: BTreeMap<String, &RawValue> = get(model_usage).unwrap_or_default();
    let used = |(model, used): (String, &RawValue)| Some((model, model_use(&get(Some(used))?)));
    ProcessSpending { cost: dollars(cost), usage: models.into_iter().filter_map(used).collect() }
}

fn model_use(reported: &ModelUsage<'_>) -> ModelUse {
    ModelUse {
        input_tokens: tokens(reported.input_tokens),
        output_tokens: tokens(reported.output_tokens),
        cache_read_tokens: tokens(reported.cache_read_input_tokens),
        cache_write_tokens: tokens(reported.cache_creation_input_tokens),
        cost_usd: dollars(reported.cost_usd),
    }
}

fn tokens(field: RawField<'_>) -> u64 {
    whole(get(field).unwrap_or(0.0))
}

fn dollars(field: RawField<'_>) -> Usd {
    Usd::from_dollars(get(field).unwrap_or(0.0))
}

// Turns that are cut off: the part of their answer that counts, and the known part of their cost. Pure.

/// The moment at which a turn was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CutOff {
    /// The model was at work.
    was_at_work: bool,
    /// The number of results by then.
    results: u32,
    /// The tasks that it waited for, for people.
    tasks: Option<String>,
}

/// The completeness of the cost of a turn beyond its results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CostCompleteness {
    /// The cost was read when the turn was being ended.
    pub(super) is_read_at_the_end: bool,
    /// A response was cut off, and no total has it.
    pub(super) lacks_a_response: bool,
    /// A result came whose answer was too long to be held: the turn was over, and its total is known.
    pub(super) has_lost_answer: bool,
}

impl StreamParser {
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

#[cfg(test)]
mod totals_tests {
    use super::*;
    use crate::claude::stream::StreamParser;
    use raymond_model::id::MessageId;
    use raymond_model::usage::UsageByModel;

    const LINE: &str = concat!(
        r#"{"type":"result","total_cost_usd":0.25,"modelUsage":{"claude-opus-4-8":{"inputTokens":2000,"#,
        r#""outputTokens":200,"cacheReadInputTokens":400,"cacheCreationInputTokens":600,"#,
        r#""webSearchRequests":0,"costUSD":0.25,"contextWindow":200000,"maxOutputTokens":64000},"#,
        r#""odd":{"inputTokens":"many","outputTokens":-1,"costUSD":null},"worse":7}}"#,
        "\n"
    );

    fn opus(tokens: u64, dollars: f64) -> ProcessSpending {
        let cost = Usd::from_dollars(dollars);
        let used = ModelUse {
            input_tokens: tokens * 10,
            output_tokens: tokens,
            cache_read_tokens: tokens * 2,
            cache_write_tokens: tokens * 3,
            cost_usd: cost,
        };
        ProcessSpending {
            cost,
            usage: UsageByModel::from_iter([("claude-opus-4-8".to_owned(), used)]),
        }
    }

    #[test]
    fn turn_spending_excludes_earlier_process_spending() {
        for before in [ProcessSpending::default(), opus(150, 0.125)] {
            let mut stream = StreamParser::answer_to(MessageId::new("m"), before.clone());
            stream.feed(LINE.as_bytes()).expect("a short line");
            assert_eq!(*stream.total(), opus(200, 0.25), "what is odd counts as nothing");
            assert_eq!(*stream.taken(), opus(200, 0.25).since(&before));
        }
    }

    #[test]
    fn empty_or_invalid_model_usage_counts_as_zero() {
        for usage in ["null", "7", "[]", "{}"] {
            let mut stream = StreamParser::default();
            let line = format!("{{\"type\":\"result\",\"modelUsage\":{usage}}}\n");
            stream.feed(line.as_bytes()).expect("a short line");
            assert_eq!(*stream.taken(), ProcessSpending::default());
        }
    }
}
