//! Reads the events of a stream into the state of the turn: its result, its cost, and where it was cut off. Pure.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::claude::message::{BASE_USAGE, FINAL_USAGE};
use crate::claude::stream::answer::changed_model;
use crate::claude::stream::approvals::{denials, take_repeated, take_request};
use crate::claude::stream::line::{
    ControlResponse, LineKind, ModelUsage, RateLimit, RawField, StreamLine, StreamMessage,
    StreamTurnOrigin, UsageResponse, get, instant, text,
};
use crate::claude::stream::{
    AUTHENTICATION_FAILED, RateLimitRejection, SYNTHETIC, StreamParser, is_throttle, whole,
};
use crate::turn_progress::{AnswerState, TurnResult};
use raymond_model::money::Usd;
use raymond_model::usage::{ModelUse, ProcessSpending};

/// The reason for the end of a turn whose response was cut off.
const CUT_OFF: &str = "aborted_streaming";

impl StreamParser {
    pub(super) fn event(&mut self, event: &StreamLine<'_>) {
        if event.kind == LineKind::Partial {
            return self.partial_message();
        }
        self.progress.events += 1;
        self.progress.retry_delay_ms = 0;
        match event.kind {
            LineKind::Assistant => self.assistant(event),
            LineKind::System => self.system(event),
            LineKind::User => self.user(event),
            LineKind::RateLimit => self.rate_limit(event),
            LineKind::Result => self.result(event),
            LineKind::ControlResponse => {
                take_repeated(&mut self.progress.approvals, event);
                self.control_response(event);
            }
            LineKind::ControlRequest => take_request(&mut self.progress.approvals, event),
            LineKind::ControlCancel => {
                if let Some(id) = text(event.request_id) {
                    self.progress.approvals.given_up(&id);
                }
            }
            LineKind::Partial | LineKind::Other => {}
        }
    }

    fn system(&mut self, event: &StreamLine<'_>) {
        let subtype = text(event.subtype).unwrap_or_default();
        match subtype.as_str() {
            "init" => self.version = text(event.claude_code_version),
            "api_retry" => self.api_retry(event),
            "permission_denied" => self.progress.refused.take_denial(event),
            "informational" => self.traces.reported(event),
            "model_refusal_fallback" | "model_fallback" => {
                self.progress.notices.push(changed_model(event));
            }
            _ => {}
        }
        self.progress.background.system(&subtype, event);
    }

    fn assistant(&mut self, event: &StreamLine<'_>) {
        let error = text(event.error);
        self.reported_error = error.or(self.reported_error.take());
        let Some(message) = get::<StreamMessage<'_>>(event.message) else {
            if event.message.is_none() && event.is_of_main_agent() {
                // It was too long to be held.
                self.traces.forget_text();
                self.progress.message = event.message_id().or(self.progress.message.take());
            }
            return;
        };
        if text(message.model).as_deref() == Some(SYNTHETIC) {
            self.progress.result_written = event.written_at();
            let written = message.content.into_iter().rfind(|content| content.kind == "text");
            self.traces.wrote_itself(written.and_then(|content| text(content.text)));
            return;
        }
        self.progress.authentication_refusals = 0;
        self.progress.result_written = None;
        if let (Some(id), None) = (event.message_id(), text(event.parent_tool_use_id)) {
            self.progress.message = Some(id);
        }
        let is_main = event.is_of_main_agent();
        for content in message.content {
            match &*content.kind {
                "tool_use" => {
                    if is_main {
                        self.traces.called_tool();
                    }
                    self.progress.used_tools = true;
                    self.progress.refused.take_call(&content);
                    self.progress.activity = text(content.name);
                    self.progress.open_tools.extend(text(content.id));
                }
                "text" => {
                    if is_main {
                        self.traces.wrote(text(content.text));
                    }
                    self.progress.activity = Some("writing".to_owned());
                }
                "thinking" => self.progress.activity = Some("thinking".to_owned()),
                _ => {}
            }
        }
    }
}

impl StreamParser {
    fn api_retry(&mut self, event: &StreamLine<'_>) {
        let attempt: u32 = get(event.attempt).unwrap_or(1);
        self.progress.activity = Some(format!("waiting for the API (attempt {attempt})"));
        self.progress.retry_delay_ms = whole(get(event.retry_delay_ms).unwrap_or(0.0));
        let status: Option<u16> = get(event.error_status);
        let error = text(event.error);
        let asked = matches!(error.as_deref(), Some("rate_limit" | "overloaded"));
        if asked || status.is_some_and(is_throttle) {
            self.progress.throttled += 1;
        }
        let refused = error.as_deref() == Some(AUTHENTICATION_FAILED);
        if refused || matches!(status, Some(401 | 403)) {
            self.progress.authentication_refusals += 1;
        } else {
            self.progress.authentication_refusals = 0;
        }
        self.retried_error = error;
    }

    /// Takes only the cost of a result.
    pub(super) fn costs_of(&mut self, event: &StreamLine<'_>) {
        self.progress.events += 1;
        self.progress.results += 1;
        self.progress.meter.read_total(of_result(event));
        self.progress.cost.has_lost_answer = true;
    }

    /// Takes the answer to a request for the cost. The total before the first turn is not its cost; any later one
    /// is.
    fn control_response(&mut self, event: &StreamLine<'_>) {
        self.answered_requests.take(event);
        match of_usage_response(event) {
            Some((request, total)) if request == BASE_USAGE => self.progress.meter.set_base(total),
            Some((request, total)) if request == FINAL_USAGE => {
                self.progress.meter.read_total(total);
                self.progress.cost.is_read_at_the_end = true;
            }
            _ => {}
        }
    }

    /// Takes a result. A turn may have several: when background work ends, the model is notified and answers again. The
    /// last result counts, unless only the previous result is an answer.
    fn result(&mut self, event: &StreamLine<'_>) {
        let denied = denials(event);
        let calls: Vec<String> = denied.iter().map(|call| call.id.clone()).collect();
        self.progress.approvals.turn_ends(&calls);
        let approvals = &self.progress.approvals;
        let refused = denied.into_iter().filter(|call| !approvals.is_unanswered(&call.id));
        self.progress.refused.turn_ends(refused);
        self.progress.results += 1;
        self.progress.meter.read_total(of_result(event));
        self.progress.background.result(event);
        self.progress.cost.lacks_a_response |= text(event.terminal_reason).as_deref()
            == Some(CUT_OFF)
            && event.model_usage_since_last_result.is_none();
        let origin = get::<StreamTurnOrigin<'_>>(event.origin).map(|origin| origin.kind);
        let messages: Option<Vec<String>> = get(event.user_message_uuids);
        if self.progress.answer == AnswerState::Final
            || !self.expected.is_answered_by(origin.as_deref(), messages.as_deref())
        {
            self.traces.forget_text();
            return;
        }
        self.expected.answered();
        self.progress.result_written = event.written_at().or(self.progress.result_written);
        self.login_ends = instant(event.credential_expires_at).or(self.login_ends);
        let mut read = TurnResult::read(event);
        self.traces.complete(&mut read);
        if let Some(before) = self.progress.result.take() {
            let duration_ms = read.duration_ms.saturating_add(before.duration_ms);
            if before.is_answer() && !read.is_error && read.is_finished() && !read.is_answer() {
                read = before;
            } else {
                self.progress.messages.combine(&before, &mut read);
            }
            read.duration_ms = duration_ms;
        }
        self.progress.result = Some(read);
        if let Some(waits) = self.progress.background.names() {
            self.progress.activity = Some(format!("waiting for {waits}"));
        }
    }

    fn user(&mut self, event: &StreamLine<'_>) {
        let waits = self.expected.is_waiting();
        if event.is_repetition() {
            self.repeated(event);
        } else {
            self.traces.prompted(event);
        }
        if !waits && self.progress.open_tools.is_empty() {
            return;
        }
        let Some(message) = get::<StreamMessage<'_>>(event.message) else { return };
        for content in message.content {
            self.progress.refused.take_answer(&content);
            if let Some(answered) = text(content.tool_use_id) {
                self.progress.open_tools.retain(|tool| *tool != answered);
                if get::<bool>(content.is_error) != Some(true) {
                    self.progress.approvals.has_run(&answered);
                }
            }
        }
    }

    /// Takes a message that the program repeats, because it answers it from now on.
    fn repeated(&mut self, event: &StreamLine<'_>) {
        let Some(id) = event.message_id() else { return };
        self.expected.repeated(id.as_str());
        let has_answer = self.progress.result.is_some();
        if self.progress.messages.repeated(id, has_answer)
            && self.progress.answer == AnswerState::Open
        {
            self.progress.background.turn_begins();
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
            assert_eq!(*stream.progress.total(), opus(200, 0.25), "what is odd counts as nothing");
            assert_eq!(*stream.progress.taken(), opus(200, 0.25).since(&before));
        }
    }

    #[test]
    fn empty_or_invalid_model_usage_counts_as_zero() {
        for usage in ["null", "7", "[]", "{}"] {
            let mut stream = StreamParser::default();
            let line = format!("{{\"type\":\"result\",\"modelUsage\":{usage}}}\n");
            stream.feed(line.as_bytes()).expect("a short line");
            assert_eq!(*stream.progress.taken(), ProcessSpending::default());
        }
    }
}
