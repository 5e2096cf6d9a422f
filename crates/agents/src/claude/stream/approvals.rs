//! The tool calls of a turn that Claude Code asks to approve, and those that it refused, read from its stream. Pure.

use raymond_model::approval::{ApprovalRequest, ApprovalRule, ApprovalVerdict, NO_RULE};
use raymond_model::hexadecimal::hexadecimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::approvals::{ApprovalCalls, RefusedCall, RefusedTools};
use crate::claude::stream::line::{ContentBlock, ControlResponse, RawField, StreamLine, get, text};

/// The answer to the agent if a person refused a call without a reason.
const DENIED: &str = "A person has refused this call.";

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

/// Returns the line that tells the program the answer to a call; `None` if it waits for none.
pub(crate) fn answer_line(
    calls: &ApprovalCalls,
    call: &str,
    verdict: &ApprovalVerdict,
) -> Option<String> {
    let asked = calls.waiting(call)?;
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

/// Takes in a request of the program.
pub(super) fn take_request(calls: &mut ApprovalCalls, event: &StreamLine<'_>) {
    let Some(asked) = get::<AskedPermission<'_>>(event.request) else { return };
    if text(asked.subtype).as_deref() != Some("can_use_tool") {
        return;
    }
    let (Some(id), Some(call), Some(tool), Some(input)) =
        (text(event.request_id), text(asked.tool_use_id), text(asked.tool_name), asked.input)
    else {
        return;
    };
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
    calls.asked(id, request, input.to_owned());
}

/// Takes in an answer that the program repeats.
pub(super) fn take_repeated(calls: &mut ApprovalCalls, event: &StreamLine<'_>) {
    let response = get::<ControlResponse<'_>>(event.response);
    if let Some(id) = response.and_then(|response| text(response.request_id)) {
        calls.repeated(&id);
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
    /// Takes in a tool's call.
    pub(super) fn take_call(&mut self, content: &ContentBlock<'_>) {
        if let Some(id) = text(content.id) {
            let tool = text(content.name).unwrap_or_default();
            self.called(id, tool, get(content.input).unwrap_or_default());
        }
    }

    /// Takes in a tool's answer.
    pub(super) fn take_answer(&mut self, content: &ContentBlock<'_>) {
        if get::<bool>(content.is_error) == Some(true)
            && let (Some(id), Some(answer)) = (text(content.tool_use_id), text(content.answer))
        {
            self.failed(id, answer, reads_like_a_refusal);
        }
    }

    /// Takes in a refusal that the program reports as it happens.
    pub(super) fn take_denial(&mut self, event: &StreamLine<'_>) {
        if let Some(id) = text(event.tool_use_id) {
            self.denied(id, text(event.tool_name), text(event.message));
        }
    }
}

/// Returns the calls that a result names as refused.
pub(crate) fn denials(event: &StreamLine<'_>) -> Vec<RefusedCall> {
    let denials: Vec<PermissionDenial<'_>> = get(event.permission_denials).unwrap_or_default();
    let read = |denial: &PermissionDenial<'_>| {
        Some(RefusedCall {
            id: text(denial.id)?,
            tool: text(denial.name).unwrap_or_default(),
            input: get(denial.input).unwrap_or_default(),
        })
    };
    denials.iter().filter_map(read).collect()
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
