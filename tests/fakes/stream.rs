//! The lines of stream-json, in the shapes the real program was seen to print.

use std::io::Write;

use serde_json::{Value, json};

/// What every line of a turn tells.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) session: String,
    /// The id of the assistant's message.
    pub(crate) uuid: String,
    pub(crate) model: String,
    pub(crate) permission_mode: String,
}

impl Turn {
    pub(crate) fn init(&self) -> Vec<u8> {
        line(&json!({
            "type": "system", "subtype": "init", "session_id": self.session,
            "model": self.model, "permissionMode": self.permission_mode, "tools": [],
            "mcp_servers": [], "claude_code_version": "2.1.197",
        }))
    }

    pub(crate) fn assistant(&self, text: &str) -> Vec<u8> {
        line(&json!({
            "type": "assistant", "uuid": self.uuid, "session_id": self.session,
            "parent_tool_use_id": null,
            "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": self.model,
                "content": [{"type": "text", "text": text}],
                "stop_reason": "end_turn", "usage": usage(),
            },
        }))
    }

    pub(crate) fn result(&self, text: &str, cost: f64) -> Vec<u8> {
        line(&self.end(
            "success",
            false,
            cost,
            &json!({"result": text, "terminal_reason": "completed"}),
        ))
    }

    pub(crate) fn failed(&self, status: Option<u16>, text: &str, cost: f64) -> Vec<u8> {
        line(&self.end("success", true, cost, &json!({"result": text, "api_error_status": status})))
    }

    pub(crate) fn no_such_session(&self) -> Vec<u8> {
        let errors = [format!("No conversation found with session ID: {}", self.session)];
        line(&self.end("error_during_execution", true, 0.0, &json!({"errors": errors})))
    }

    fn end(&self, subtype: &str, is_error: bool, cost: f64, more: &Value) -> Value {
        let mut end = json!({
            "type": "result", "subtype": subtype, "is_error": is_error,
            "session_id": self.session, "total_cost_usd": cost, "num_turns": 1,
            "duration_ms": 1, "duration_api_ms": 1, "usage": usage(), "modelUsage": {},
            "permission_denials": [], "uuid": crate::session::new_id(2),
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            end[key] = value.clone();
        }
        end
    }
}

fn usage() -> Value {
    json!({"input_tokens": 10, "output_tokens": 10,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
}

/// The object as a line, its type first as the real program has it.
fn line(value: &Value) -> Vec<u8> {
    let mut rest = value.clone();
    let kind = rest.as_object_mut().and_then(|object| object.remove("type"));
    let kind = kind.unwrap_or_default();
    format!("{{\"type\":{kind},{}\n", &rest.to_string()[1..]).into_bytes()
}

/// Writes and flushes, or says what stood in the way.
pub(crate) fn write(bytes: &[u8]) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|error| format!("fake-claude: stdout: {error}"))
}
