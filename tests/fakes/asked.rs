//! Tool calls that need approval: asked on stdout, answered on stdin, and logged in `ran.jsonl` when they run.

use std::io::Write;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::flags::ClaudeFlags;
use crate::inbox::{ControlState, ToldAnswer};
use crate::session::new_id;
use crate::stream::{self, StreamTurn, line};

/// A tool call that needs approval.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskedTool {
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// The contents of the rules that are suggested.
    #[serde(default)]
    pub(crate) rules: Vec<String>,
    /// A file in the folder; the tool is done when it appears.
    pub(crate) hold: Option<String>,
}

/// The way in which a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Ran,
    Denied,
    /// The turn was interrupted while the call waited.
    Interrupted,
}

/// The surroundings of a call.
#[derive(Debug)]
pub(crate) struct CallPlace<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) turn: &'a StreamTurn,
    pub(crate) flags: &'a ClaudeFlags,
    pub(crate) control: &'a ControlState,
    /// The number of the turn in its process.
    pub(crate) number: usize,
}

impl AskedTool {
    /// Calls the tool: asks first, unless a rule lets it run.
    pub(crate) fn call(&self, id: &str, place: &CallPlace<'_>) -> Result<CallEnd, String> {
        let call = json!({"type": "tool_use", "id": id, "name": self.tool, "input": self.input});
        stream::write(&place.turn.message(&new_id(8), &place.turn.model, "tool_use", &call))?;
        if self.is_allowed(place) {
            return self.run(id, place);
        }
        if !place.flags.asks() {
            tell_result(id, true, "This command requires approval", place)?;
            return Ok(CallEnd::Denied);
        }
        let request = new_id(10);
        stream::write(&self.request(&request, id))?;
        let answer = place.control.answer_to(&request, place.number);
        let response = match answer {
            ToldAnswer::Closed => {
                let why = "Tool permission request failed: Error: Tool permission stream closed before response received";
                tell_result(id, true, why, place)?;
                return Ok(CallEnd::Denied);
            }
            ToldAnswer::Interrupted => {
                let cancel = json!({"type": "control_cancel_request", "request_id": request});
                stream::write(&line(&cancel))?;
                let why = "The user doesn't want to proceed with this tool use.";
                tell_result(id, true, why, place)?;
                return Ok(CallEnd::Interrupted);
            }
            ToldAnswer::Line(told) => {
                if place.flags.replay_user_messages {
                    stream::write(&line(&told))?;
                }
                told["response"]["response"].clone()
            }
        };
        if response["behavior"] == "allow" {
            if response["updatedInput"] != self.input {
                return Err(format!("fake-claude: another input came back: {response}"));
            }
            for change in response["updatedPermissions"].as_array().into_iter().flatten() {
                if change["destination"] != "session" || change["type"] != "addRules" {
                    return Err(format!("fake-claude: a change beyond the session: {change}"));
                }
                place.control.add_rules(&change["rules"]);
            }
            return self.run(id, place);
        }
        let message = response["message"].as_str().unwrap_or_default();
        tell_result(id, true, message, place)?;
        Ok(CallEnd::Denied)
    }

    /// Returns the call as the result lists it when it was refused.
    pub(crate) fn denial(&self, id: &str) -> Value {
        json!({"tool_name": self.tool, "tool_use_id": id, "tool_input": self.input})
    }

    fn request(&self, request: &str, id: &str) -> Vec<u8> {
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|content| json!({"toolName": self.tool, "ruleContent": content}))
            .collect();
        let mut suggestions =
            vec![json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"})];
        if !rules.is_empty() {
            suggestions.push(json!({
                "type": "addRules", "rules": rules, "behavior": "allow",
                "destination": "localSettings",
            }));
        }
        line(&json!({
            "type": "control_request", "request_id": request,
            "request": {
                "subtype": "can_use_tool", "tool_name": self.tool, "input": self.input,
                "tool_use_id": id, "decision_reason": "This command requires approval", "decision_reason_type": "other",
                "permission_suggestions": suggestions,
            },
        }))
    }

    /// Returns whether all its rules were given, to the process or for its session.
    fn is_allowed(&self, place: &CallPlace<'_>) -> bool {
        let path = self.input["file_path"].as_str();
        let of_file = path.map(|path| format!("Edit(/{path})"));
        let own = self.rules.iter().map(|content| format!("{}({content})", self.tool));
        let needed: Vec<String> =
            if self.rules.is_empty() { of_file.into_iter().collect() } else { own.collect() };
        let is_given =
            |rule: &String| place.flags.allowed.contains(rule) || place.control.has_rule(rule);
        !needed.is_empty() && needed.iter().all(is_given)
    }

    fn run(&self, id: &str, place: &CallPlace<'_>) -> Result<CallEnd, String> {
        let path = place.folder.join("ran.jsonl");
        let ran = json!({"tool": self.tool, "input": self.input});
        std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| writeln!(file, "{ran}"))
            .map_err(|error| format!("fake-claude: {}: {error}", path.display()))?;
        if let Some(hold) = &self.hold {
            let file = place.folder.join(hold);
            while place.folder.exists() && !file.exists() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        tell_result(id, false, "done", place)?;
        Ok(CallEnd::Ran)
    }
}

/// Prints the result of a call.
fn tell_result(
    id: &str,
    is_error: bool,
    content: &str,
    place: &CallPlace<'_>,
) -> Result<(), String> {
    let answer = json!({
        "type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": content,
    });
    stream::write(&line(&json!({
        "type": "user", "uuid": new_id(6), "session_id": place.turn.session,
        "parent_tool_use_id": null, "message": {"role": "user", "content": [answer]},
    })))
}
