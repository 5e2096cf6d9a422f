//! The lines of stream-json, in the shapes that the real program prints.

use std::io::Write;

use serde_json::{Value, json};

use crate::session::new_id;
use crate::usage::ProcessUsage;

/// The model of a turn for which no model was given.
pub(crate) const MODEL: &str = "opus";

/// The version, unless `FAKE_CLAUDE_VERSION` names another.
const VERSION: &str = "2.1.197";

const TOOL_USE: &str = "toolu_1";

/// The data that the lines of a turn have in common.
#[derive(Debug, Clone)]
pub(crate) struct StreamTurn {
    pub(crate) session: String,
    /// The id of the assistant's message.
    pub(crate) uuid: String,
    pub(crate) model: String,
    pub(crate) permission_mode: String,
    /// True if the process has a schema. Then a reply that is an object is printed as one, valid or not.
    pub(crate) has_schema: bool,
    /// The cost of the whole process, in US dollars.
    pub(crate) cost: f64,
    /// The same cost without this turn.
    pub(crate) cost_before: f64,
    /// The usage of each model by the whole process.
    pub(crate) used: ProcessUsage,
    /// True if a message is printed while it is written.
    pub(crate) partial: bool,
    /// The message from stdin, if it is to be repeated.
    pub(crate) replay: Option<Value>,
    /// The refused tools, as the result lists them.
    pub(crate) denials: Value,
}

impl StreamTurn {
    /// Returns the first lines of a turn.
    pub(crate) fn opening(&self) -> Vec<u8> {
        let mut said = self.init();
        said.extend(self.replay.as_ref().map(|message| self.replayed(message)).unwrap_or_default());
        said
    }

    /// Prints all lines of a good turn at once.
    pub(crate) fn say(&self, text: &str) -> Result<(), String> {
        let mut said = self.opening();
        said.extend(self.assistant(text));
        said.extend(self.result(text));
        write(&said)
    }

    fn init(&self) -> Vec<u8> {
        let named = std::env::var("FAKE_CLAUDE_VERSION");
        let version = named.unwrap_or_else(|_| VERSION.to_owned());
        line(&json!({
            "type": "system", "subtype": "init", "session_id": self.session,
            "model": self.model, "permissionMode": self.permission_mode, "tools": [],
            "mcp_servers": [], "claude_code_version": version,
        }))
    }

    pub(crate) fn replayed(&self, message: &Value) -> Vec<u8> {
        let uuid = message["uuid"].as_str().map_or_else(|| new_id(3), str::to_owned);
        line(&json!({
            "type": "user", "message": message["message"], "session_id": self.session,
            "parent_tool_use_id": null, "uuid": uuid, "isReplay": true,
        }))
    }

    pub(crate) fn retry(&self, attempt: u32, delay_ms: u64) -> Vec<u8> {
        line(&json!({
            "type": "system", "subtype": "api_retry", "attempt": attempt, "max_retries": 10,
            "retry_delay_ms": delay_ms, "error_status": 429, "error": "rate_limit",
            "session_id": self.session, "uuid": new_id(4),
        }))
    }

    pub(crate) fn assistant(&self, text: &str) -> Vec<u8> {
        self.message(&self.uuid, &self.model, "end_turn", &json!({"type": "text", "text": text}))
    }

    /// Returns the first words of a message while it is written, if that is asked for.
    pub(crate) fn partial(&self, text: &str) -> Vec<u8> {
        if !self.partial {
            return Vec::new();
        }
        let words: String = text.chars().take(40).collect();
        let start = json!({"type": "message_start", "message": {"model": self.model}});
        let delta = json!({"type": "text_delta", "text": words});
        let delta = json!({"type": "content_block_delta", "index": 0, "delta": delta});
        let event = |event: Value| {
            line(&json!({
                "type": "stream_event", "event": event, "session_id": self.session,
                "parent_tool_use_id": null, "uuid": new_id(8),
            }))
        };
        [event(start), event(delta)].concat()
    }

    /// Returns a message that the program writes in place of the model.
    pub(crate) fn synthetic(&self, text: &str) -> Vec<u8> {
        let block = json!({"type": "text", "text": text});
        self.message(&self.uuid, "<synthetic>", "stop_sequence", &block)
    }

    pub(crate) fn tool_use(&self, name: &str) -> Vec<u8> {
        let block = json!({"type": "tool_use", "id": TOOL_USE, "name": name, "input": {}});
        self.message(&new_id(5), &self.model, "tool_use", &block)
    }

    pub(crate) fn tool_result(&self) -> Vec<u8> {
        let block = json!({"type": "tool_result", "tool_use_id": TOOL_USE, "content": "done"});
        line(&json!({
            "type": "user", "uuid": new_id(6), "session_id": self.session,
            "parent_tool_use_id": null, "message": {"role": "user", "content": [block]},
        }))
    }

    pub(crate) fn message(
        &self,
        uuid: &str,
        model: &str,
        stop_reason: &str,
        block: &Value,
    ) -> Vec<u8> {
        line(&json!({
            "type": "assistant", "uuid": uuid, "session_id": self.session,
            "parent_tool_use_id": null,
            "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": model,
                "content": [block], "stop_reason": stop_reason, "usage": usage(),
            },
        }))
    }

    pub(crate) fn limit_event(&self, resets_at: Option<u64>) -> Vec<u8> {
        let info = json!({
            "status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour",
        });
        line(&json!({
            "type": "rate_limit_event", "rate_limit_info": info, "uuid": new_id(7),
            "session_id": self.session,
        }))
    }

    pub(crate) fn result(&self, text: &str) -> Vec<u8> {
        let mut more = json!({"result": text, "terminal_reason": "completed"});
        let object = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
        if let Some(object) = object.filter(|_| self.has_schema) {
            more["structured_output"] = object;
        }
        self.end("success", false, &more)
    }

    /// Returns the end of a turn that a background task began.
    pub(crate) fn unasked(&self, text: &str) -> Vec<u8> {
        let origin = json!({"kind": "task-notification"});
        self.end("success", false, &json!({"result": text, "origin": origin}))
    }

    pub(crate) fn failed(&self, status: Option<u16>, text: &str) -> Vec<u8> {
        self.end("success", true, &json!({"result": text, "api_error_status": status}))
    }

    /// Returns the end of a turn that an `interrupt` stopped; older versions charge nothing for its last
    /// response.
    pub(crate) fn aborted(&self) -> Vec<u8> {
        let more = json!({
            "terminal_reason": "aborted_streaming", "errors": [],
            "total_cost_usd": self.cost_before, "modelUsage": {},
        });
        self.end("error_during_execution", true, &more)
    }

    pub(crate) fn no_such_session(&self) -> Vec<u8> {
        let errors = [format!("No conversation found with session ID: {}", self.session)];
        let more = json!({"errors": errors, "total_cost_usd": 0.0, "modelUsage": {}});
        self.end("error_during_execution", true, &more)
    }

    fn end(&self, subtype: &str, is_error: bool, more: &Value) -> Vec<u8> {
        let mut end = json!({
            "type": "result", "subtype": subtype, "is_error": is_error,
            "session_id": self.session, "total_cost_usd": self.cost, "num_turns": 1,
            "duration_ms": 1, "duration_api_ms": 1, "usage": usage(), "modelUsage": self.used.printed(),
            "permission_denials": self.denials, "uuid": new_id(2),
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            end[key] = value.clone();
        }
        line(&end)
    }
}

fn usage() -> Value {
    json!({"input_tokens": 10, "output_tokens": 10,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
}

/// Returns the object as a line, with its type first as in the real program.
pub(crate) fn line(value: &Value) -> Vec<u8> {
    let mut rest = value.clone();
    let kind = rest.as_object_mut().and_then(|object| object.remove("type"));
    let kind = kind.unwrap_or_default();
    format!("{{\"type\":{kind},{}\n", &rest.to_string()[1..]).into_bytes()
}

pub(crate) fn control_success(id: &Value) -> Vec<u8> {
    line(&json!({
        "type": "control_response", "response": {"subtype": "success", "request_id": id},
    }))
}

pub(crate) fn control_error(id: &Value, subtype: &str) -> Vec<u8> {
    control_refused(id, &format!("Unsupported control request subtype: {subtype}"))
}

pub(crate) fn control_refused(id: &Value, error: &str) -> Vec<u8> {
    line(&json!({
        "type": "control_response",
        "response": {"subtype": "error", "request_id": id, "error": error},
    }))
}

/// Writes and flushes the bytes.
/// Returns the lines that follow a message to a turn that runs: it is queued, and the session is not idle before it is read.
pub(crate) fn queued(uuid: &Value) -> Vec<u8> {
    let lifecycle = json!({ "type": "command_lifecycle", "command_uuid": uuid, "state": "queued" });
    [line(&lifecycle), session_state("running")].concat()
}

pub(crate) fn session_state(state: &str) -> Vec<u8> {
    line(&json!({ "type": "system", "subtype": "session_state_changed", "state": state }))
}

pub(crate) fn write(bytes: &[u8]) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|error| format!("fake-claude: stdout: {error}"))
}
