//! The tool calls of a turn that Claude Code asks to approve, and those that it refused, read from its stream. Pure.
//!
//! A call counts as answered once the answer was written to the program, or once the program repeats it. A call that
//! the program gave up, or ran without an answer, no longer needs an answer. When a turn is over, the calls that were
//! refused only because nobody answered are left.

use std::collections::VecDeque;

use raymond_model::approval::{ApprovalRequest, ApprovalRule, ApprovalVerdict, NO_RULE};
use raymond_model::hexadecimal::hexadecimal;
use raymond_model::refusal::{NAMED_PER_TURN, ToolRefusal, ToolRefusals};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::claude::stream::line::{ContentBlock, ControlResponse, RawField, StreamLine, get, text};

/// The answer to the agent if a person refused a call without a reason.
const DENIED: &str = "A person has refused this call.";

/// The calls of a turn that need approval.
#[derive(Debug, Default)]
pub struct ApprovalCalls {
    /// True if the program was given rules that hold to its end.
    pub has_given_rules: bool,
    calls: Vec<AskedCall>,
    /// True once the turn is being ended from outside: what the program says then is a consequence of that.
    is_cut_off: bool,
}

/// A call that needs approval.
#[derive(Debug)]
struct AskedCall {
    /// The id of the program's request.
    id: String,
    request: ApprovalRequest,
    /// The whole input, which goes back with the answer.
    input: Box<RawValue>,
    status: CallStatus,
}

/// The status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStatus {
    /// Nobody knows of it yet.
    New,
    /// A person is asked, and the question is stored.
    Held,
    /// It has its answer, or no longer needs one.
    Settled,
}

#[derive(Deserialize)]
struct AskedPermission<'line> {
    #[serde(borrow)]
    subtype: RawField<'line>,
    tool_name: RawField<'line>,
    tool_use_id: RawField<'line>,
    input: RawField<'line>,
    agent_id: RawField<'line>,
    blocked_path: RawField<'line>,
    decision_reason: RawField<'line>,
    decision_reason_type: RawField<'line>,
    permission_suggestions: RawField<'line>,
}

#[derive(Deserialize)]
struct SuggestedChange<'line> {
    #[serde(borrow, rename = "type")]
    kind: RawField<'line>,
    behavior: RawField<'line>,
    rules: RawField<'line>,
}

/// A rule as Claude Code writes it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgramRule {
    tool_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule_content: Option<String>,
}

#[derive(Serialize)]
struct ProgramAnswer<'call> {
    #[serde(rename = "type")]
    kind: &'static str,
    response: ProgramResponse<'call>,
}

#[derive(Serialize)]
struct ProgramResponse<'call> {
    subtype: &'static str,
    request_id: &'call str,
    response: ProgramVerdict<'call>,
}

#[derive(Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum ProgramVerdict<'call> {
    Allow {
        updated_input: &'call RawValue,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        updated_permissions: Vec<Value>,
    },
    Deny {
        message: &'call str,
    },
}

impl ApprovalCalls {
    /// Returns the calls that were asked, in their order, without the first of them.
    pub fn asked_since(&self, count: usize) -> impl Iterator<Item = &ApprovalRequest> {
        self.calls.iter().skip(count).map(|call| &call.request)
    }

    /// Returns whether a person is asked about a call.
    pub fn are_held(&self) -> bool {
        self.calls.iter().any(|call| call.status == CallStatus::Held)
    }

    /// Returns the ids of the calls that have no answer, and so have not run.
    pub fn unanswered(&self) -> Vec<String> {
        let unanswered = self.calls.iter().filter(|call| call.is_unanswered());
        unanswered.map(|call| call.request.call.clone()).collect()
    }

    /// Returns whether a call has no answer.
    pub fn is_unanswered(&self, id: &str) -> bool {
        self.calls.iter().any(|call| call.request.call == id && call.is_unanswered())
    }

    /// Notes that a person is asked about a call.
    pub fn hold(&mut self, call: &str) {
        self.set(call, CallStatus::Held);
    }

    /// Notes that the answer to a call was written.
    pub fn answered(&mut self, call: &str) {
        self.set(call, CallStatus::Settled);
    }

    /// Returns the line that tells the program the answer to a call; `None` if it waits for none.
    pub fn answer_line(&self, call: &str, verdict: &ApprovalVerdict) -> Option<String> {
        let mut unanswered = self.calls.iter().filter(|asked| asked.is_unanswered());
        let asked = unanswered.find(|asked| asked.request.call == call)?;
        let response = match verdict {
            ApprovalVerdict::Allow => {
                ProgramVerdict::Allow { updated_input: &asked.input, updated_permissions: vec![] }
            }
            ApprovalVerdict::AllowAlways { rules, .. } => ProgramVerdict::Allow {
                updated_input: &asked.input,
                updated_permissions: vec![added_rules(rules)],
            },
            ApprovalVerdict::Deny { reason } if reason.is_empty() => {
                ProgramVerdict::Deny { message: DENIED }
            }
            ApprovalVerdict::Deny { reason } => ProgramVerdict::Deny { message: reason },
        };
        let response = ProgramResponse { subtype: "success", request_id: &asked.id, response };
        let line = ProgramAnswer { kind: "control_response", response };
        serde_json::to_string(&line).ok().map(|line| line + "\n")
    }

    /// Notes that the turn is being ended from outside.
    pub(super) fn cut_off(&mut self) {
        self.is_cut_off = true;
    }

    /// Takes in a request of the program.
    pub(super) fn requested(&mut self, event: &StreamLine<'_>) {
        let Some(asked) = get::<AskedPermission<'_>>(event.request) else { return };
        if text(asked.subtype).as_deref() != Some("can_use_tool") {
            return;
        }
        let (Some(id), Some(call), Some(tool), Some(input)) =
            (text(event.request_id), text(asked.tool_use_id), text(asked.tool_name), asked.input)
        else {
            return;
        };
        if self.calls.iter().any(|known| known.request.call == call) {
            return;
        }
        let mut value: Value = get(Some(input)).unwrap_or_default();
        value.sort_all_objects();
        let checksum = checksum(&value);
        let rules = suggested_rules(asked.permission_suggestions);
        let mut request = ApprovalRequest::new(call, tool, &value, checksum, rules);
        request.subagent = text(asked.agent_id);
        let why = text(asked.decision_reason);
        // A hook and a rule can have any words for their reason.
        let kind = text(asked.decision_reason_type).unwrap_or_else(|| "no type".to_owned());
        let kind = Some(kind).filter(|kind| why.as_deref() == Some(NO_RULE) && kind != "other");
        let reasons = why.into_iter().chain(kind).chain(text(asked.blocked_path));
        let reasons: Vec<String> = reasons.collect();
        request.reason = (!reasons.is_empty()).then(|| reasons.join(", "));
        let (input, status) = (input.to_owned(), CallStatus::New);
        self.calls.push(AskedCall { id, request, input, status });
    }

    /// Takes in that the program gives a request up.
    pub(super) fn cancelled(&mut self, event: &StreamLine<'_>) {
        let Some(id) = text(event.request_id).filter(|_| !self.is_cut_off) else { return };
        for call in self.calls.iter_mut().filter(|call| call.id == id && call.is_unanswered()) {
            call.status = CallStatus::Settled;
        }
    }

    /// Takes in an answer that the program repeats.
    pub(super) fn repeated(&mut self, event: &StreamLine<'_>) {
        let Some(response) = get::<ControlResponse<'_>>(event.response) else { return };
        let Some(id) = text(response.request_id) else { return };
        for call in self.calls.iter_mut().filter(|call| call.id == id) {
            call.status = CallStatus::Settled;
        }
    }

    /// Takes in that a call has run.
    pub(super) fn has_run(&mut self, id: &str) {
        self.set(id, CallStatus::Settled);
    }

    /// Takes in the end of the turn, with the calls that were refused in it.
    pub(super) fn result(&mut self, event: &StreamLine<'_>) {
        if self.is_cut_off || self.calls.is_empty() {
            return;
        }
        let denied: Vec<PermissionDenial<'_>> = get(event.permission_denials).unwrap_or_default();
        let denied: Vec<String> = denied.iter().filter_map(|denial| text(denial.id)).collect();
        for call in self.calls.iter_mut().filter(|call| call.is_unanswered()) {
            if !denied.contains(&call.request.call) {
                call.status = CallStatus::Settled;
            }
        }
    }

    /// Sets the status of a call that has no answer.
    fn set(&mut self, id: &str, status: CallStatus) {
        let unanswered = self.calls.iter_mut().filter(|call| call.is_unanswered());
        for call in unanswered.filter(|call| call.request.call == id) {
            call.status = status;
        }
    }
}

impl AskedCall {
    fn is_unanswered(&self) -> bool {
        self.status != CallStatus::Settled
    }
}

/// Returns the checksum of an input whose keys are in order.
fn checksum(input: &Value) -> String {
    format!("sha256:{}", hexadecimal(Sha256::digest(input.to_string())))
}

/// Returns the rules that the program suggests; none if one of them cannot be read.
fn suggested_rules(suggestions: RawField<'_>) -> Vec<ApprovalRule> {
    let changes: Vec<SuggestedChange<'_>> = get(suggestions).unwrap_or_default();
    let is_rules = |change: &&SuggestedChange<'_>| {
        text(change.kind).as_deref() == Some("addRules")
            && text(change.behavior).as_deref() == Some("allow")
    };
    let read = |change: &SuggestedChange<'_>| get::<Vec<ProgramRule>>(change.rules);
    let rules: Option<Vec<Vec<ProgramRule>>> = changes.iter().filter(is_rules).map(read).collect();
    let rules = rules.unwrap_or_default().into_iter().flatten();
    rules.map(|rule| ApprovalRule { tool: rule.tool_name, content: rule.rule_content }).collect()
}

/// Returns the change that adds rules for the rest of the process. Nothing is written to a file.
fn added_rules(rules: &[ApprovalRule]) -> Value {
    let rule = |rule: &ApprovalRule| ProgramRule {
        tool_name: rule.tool.clone(),
        rule_content: rule.content.clone(),
    };
    let rules: Vec<ProgramRule> = rules.iter().map(rule).collect();
    serde_json::json!({
        "type": "addRules", "rules": rules, "behavior": "allow", "destination": "session",
    })
}

// The program's answers to the requests of the runtime. Pure.

/// The answers so far.
#[derive(Debug, Default)]
pub struct AnsweredRequests(Vec<AnsweredRequest>);

#[derive(Debug)]
struct AnsweredRequest {
    id: String,
    /// The reason for which the program has refused it.
    refusal: Option<String>,
}

impl AnsweredRequests {
    /// Takes an answer.
    pub(super) fn take(&mut self, event: &StreamLine<'_>) {
        let Some(answer) = get::<ControlResponse<'_>>(event.response) else { return };
        let Some(id) = text(answer.request_id) else { return };
        let is_refused = text(answer.subtype).as_deref() == Some("error");
        let refusal = is_refused.then(|| text(answer.error).unwrap_or_default());
        self.0.push(AnsweredRequest { id, refusal });
    }

    /// Returns the reason for which a request was refused; `None` if it was granted or has no answer.
    pub fn refusal(&self, id: &str) -> Option<&str> {
        self.0.iter().find(|answer| answer.id == id)?.refusal.as_deref()
    }

    /// Returns whether a request was granted.
    pub fn has_granted(&self, id: &str) -> bool {
        self.0.iter().any(|answer| answer.id == id && answer.refusal.is_none())
    }
}

// The tools that Claude Code refused in a turn, read from its stream.
//
// A `result` names them reliably. Newer versions report each refusal as it happens. Older ones only give the words of
// the tool's answer, which count until a `result` names the refusals. A turn can have several results, and each call
// counts once, by its id.

/// The number of calls whose inputs and answers are remembered, and whose repetition is noticed.
const MAX_CALLS: usize = 256;

/// The number of bytes of an answer that are read to decide whether it is a refusal.
const MAX_ANSWER_BYTES: usize = 2000;

/// The refused tools of a turn, as far as its stream has been read.
#[derive(Debug, Default)]
pub struct RefusedTools {
    /// The calls that have been seen, with what is needed to describe a refusal.
    calls: VecDeque<ToolCall>,
    /// The refused calls that are certain.
    certain: ToolRefusals,
    /// The last refusal that was seen as it happened.
    latest: Option<ToolRefusal>,
    /// The number of refusals that were seen as they happened.
    seen: u32,
    has_result: bool,
}

#[derive(Debug, Default)]
struct ToolCall {
    id: String,
    tool: String,
    input: Value,
    why: String,
    status: RefusalStatus,
}

/// The certainty of a call's refusal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum RefusalStatus {
    #[default]
    Open,
    /// Its answer reads like a refusal.
    Presumed,
    /// The program said so.
    Refused,
}

/// One of the `permission_denials` of a result.
#[derive(Deserialize)]
pub(crate) struct PermissionDenial<'line> {
    #[serde(borrow, rename = "tool_name")]
    name: RawField<'line>,
    #[serde(rename = "tool_use_id")]
    pub(crate) id: RawField<'line>,
    #[serde(rename = "tool_input")]
    input: RawField<'line>,
}

impl RefusedTools {
    /// Returns the refused calls of the turn.
    pub fn refusals(&self) -> ToolRefusals {
        let mut refusals = self.certain.clone();
        let presumed = self.calls.iter().filter(|call| call.status == RefusalStatus::Presumed);
        for call in presumed.filter(|_| !self.has_result) {
            refusals.add(&call.refusal(), NAMED_PER_TURN);
        }
        refusals
    }

    /// Returns the number of refusals that were seen as they happened, and the last of them.
    pub fn latest(&self) -> Option<(u32, &ToolRefusal)> {
        self.latest.as_ref().map(|refusal| (self.seen, refusal))
    }

    /// Takes in a tool's call.
    pub(super) fn called(&mut self, content: &ContentBlock<'_>) {
        let Some(id) = text(content.id) else { return };
        let tool = text(content.name).unwrap_or_default();
        let call = self.call(id);
        call.tool = tool;
        call.input = shortened(get(content.input).unwrap_or_default());
    }

    /// Takes in a tool's answer.
    pub(super) fn answered(&mut self, content: &ContentBlock<'_>) {
        let Some(id) = text(content.tool_use_id) else { return };
        if get::<bool>(content.is_error) != Some(true) {
            return;
        }
        let Some(why) = text(content.answer).map(beginning) else { return };
        let call = self.call(id);
        let is_news = call.status == RefusalStatus::Open && reads_like_a_refusal(&why);
        if is_news {
            call.status = RefusalStatus::Presumed;
        }
        if call.why.is_empty() {
            call.why = why;
        }
        if is_news {
            let refusal = call.refusal();
            self.see(refusal);
        }
    }

    /// Takes in a refusal that the program reports as it happens.
    pub(super) fn denied(&mut self, event: &StreamLine<'_>) {
        let Some(id) = text(event.tool_use_id) else { return };
        let (tool, why) = (text(event.tool_name), text(event.message).map(beginning));
        let call = self.call(id);
        if call.status == RefusalStatus::Refused {
            return;
        }
        let was_seen =
            std::mem::replace(&mut call.status, RefusalStatus::Refused) != RefusalStatus::Open;
        call.tool = tool.unwrap_or_else(|| std::mem::take(&mut call.tool));
        call.why = why.unwrap_or_else(|| std::mem::take(&mut call.why));
        let refusal = call.refusal();
        self.certain.add(&refusal, NAMED_PER_TURN);
        if !was_seen {
            self.see(refusal);
        }
    }

    /// Takes the refusals that a result names. All results of the turn count. A call that nobody has answered
    /// `is_unanswered`, and does not count as a refusal.
    pub(super) fn result(&mut self, event: &StreamLine<'_>, is_unanswered: impl Fn(&str) -> bool) {
        self.has_result = true;
        let denials: Vec<PermissionDenial<'_>> = get(event.permission_denials).unwrap_or_default();
        for denial in denials {
            let Some(id) = text(denial.id).filter(|id| !is_unanswered(id)) else { continue };
            let call = self.call(id);
            if std::mem::replace(&mut call.status, RefusalStatus::Refused) == RefusalStatus::Refused
            {
                continue;
            }
            call.tool = text(denial.name).unwrap_or_default();
            call.input = get(denial.input).unwrap_or_default();
            let refusal = call.refusal();
            call.input = Value::Null;
            self.certain.add(&refusal, NAMED_PER_TURN);
        }
    }

    fn see(&mut self, refusal: ToolRefusal) {
        self.latest = Some(refusal);
        self.seen = self.seen.saturating_add(1);
    }

    /// Returns the call of that id. An unknown call is added; if there are too many, the oldest is forgotten.
    fn call(&mut self, id: String) -> &mut ToolCall {
        let known = self.calls.iter().rposition(|call| call.id == id);
        let place = known.unwrap_or_else(|| {
            if self.calls.len() == MAX_CALLS {
                self.calls.pop_front();
            }
            self.calls.push_back(ToolCall { id, ..ToolCall::default() });
            self.calls.len() - 1
        });
        &mut self.calls[place]
    }
}

impl ToolCall {
    fn refusal(&self) -> ToolRefusal {
        ToolRefusal::new(&self.tool, &self.input, &self.why)
    }
}

/// Returns an input without texts that are too long to keep for every call, such as a file's contents.
fn shortened(mut input: Value) -> Value {
    for value in input.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        let is_short = match value {
            Value::String(text) => text.len() <= MAX_ANSWER_BYTES,
            Value::Array(_) | Value::Object(_) => false,
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        };
        if !is_short {
            *value = value.as_str().map(|text| beginning(text.to_owned())).into();
        }
    }
    input
}

fn beginning(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_ANSWER_BYTES));
    text
}

/// Returns whether a tool's answer has the words of a refusal.
pub(crate) fn reads_like_a_refusal(answer: &str) -> bool {
    answer == "This command requires approval"
        || answer.starts_with("This Bash command contains multiple operations. The following part")
        || answer.starts_with("Claude requested permissions to ")
        || (answer.starts_with("Permission to use ") && answer.contains(" has been denied"))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod refusals_tests;

#[cfg(test)]
mod answered_requests_tests {
    use crate::claude::stream::StreamParser;

    #[test]
    fn error_refuses_a_request_and_everything_else_grants_it() {
        let mut stream = StreamParser::default();
        for line in [
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"a","response":{"model":"x"}}}"#,
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"b","error":"API error: 529 busy","error_code":"check_server_error"}}"#,
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"c"}}"#,
            r#"{"type":"control_response","response":7}"#,
        ] {
            stream.feed(format!("{line}\n").as_bytes()).expect("a short line");
        }
        let answers = &stream.answered_requests;
        assert!(answers.has_granted("a") && answers.refusal("a").is_none());
        assert_eq!(answers.refusal("b"), Some("API error: 529 busy"));
        assert_eq!((answers.refusal("c"), answers.has_granted("c")), (Some(""), false));
        assert!(!answers.has_granted("d") && answers.refusal("d").is_none());
    }
}
