//! The messages to a process that serves several turns: a line of JSON each. Pure.
//!
//! A message has a low priority, so that it can wait. Otherwise a process that has begun a turn of its own,
//! because a background task has ended, would weave the message into that turn and answer both as one.

use serde_json::json;

use crate::domain::id::MessageId;
use crate::domain::option_switch::ProcessSwitch;

/// The longest prompt that is sent this way, in bytes: it comes back in the stream, whose lines are
/// limited. A longer one gets a process of its own.
pub const MAX_PROMPT_BYTES: usize = 1024 * 1024;

/// The id of the request for the cost before a process's first turn.
pub const BASE_USAGE: &str = "usage-0";

/// The id of the request for the cost of a turn that is being ended.
pub const FINAL_USAGE: &str = "usage-1";

/// Returns a request for the cost of the session so far.
#[must_use]
pub fn get_usage(id: &str) -> String {
    control_request(id, &json!({ "subtype": "get_usage", "skip_behaviors": true }))
}

/// Returns a request to send the system prompt of the process, not the one that the session has recorded. A
/// version that records none ignores it.
#[must_use]
pub fn renew_system_prompt() -> String {
    let request = json!({ "subtype": "initialize", "systemPromptSnapshot": false });
    control_request("initialize-0", &request)
}

/// Returns a request to interrupt the turn that runs.
#[must_use]
pub fn interrupt() -> String {
    control_request("interrupt", &json!({ "subtype": "interrupt" }))
}

fn control_request(id: &str, request: &serde_json::Value) -> String {
    let line = json!({ "type": "control_request", "request_id": id, "request": request });
    format!("{line}\n")
}

/// Returns the message that asks a turn.
#[must_use]
pub fn prompt(id: &MessageId, text: &str) -> String {
    let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
    let line = json!({ "type": "user", "uuid": id, "priority": "later", "message": message });
    format!("{line}\n")
}

/// Returns the message that tells a running turn something: the model reads it with its next request.
#[must_use]
pub fn steering(id: &MessageId, text: &str) -> String {
    let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
    let line = json!({ "type": "user", "uuid": id, "priority": "next", "message": message });
    format!("{line}\n")
}

/// Returns a request to change a process for the turns to come.
#[must_use]
pub fn switch(id: &MessageId, switch: &ProcessSwitch) -> String {
    let request = match switch {
        ProcessSwitch::Model(model) => json!({ "subtype": "set_model", "model": model }),
        ProcessSwitch::Permission(mode) => {
            json!({ "subtype": "set_permission_mode", "mode": mode })
        }
        ProcessSwitch::Effort(effort) => {
            let settings = json!({ "effortLevel": effort.name() });
            json!({ "subtype": "apply_flag_settings", "settings": settings })
        }
    };
    control_request(id.as_str(), &request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::model::ModelName;
    use crate::domain::turn_options::EffortLevel;

    #[test]
    fn prompts_and_switches_are_single_lines() {
        let id = MessageId::new("m1");
        let asked = prompt(&id, "two\nlines \"quoted\"");
        let read: serde_json::Value = serde_json::from_str(&asked).expect("JSON");
        assert_eq!(read["message"]["content"][0]["text"], "two\nlines \"quoted\"");
        assert_eq!((&read["uuid"], &read["priority"]), (&json!("m1"), &json!("later")));
        for line in [asked, switch(&id, &ProcessSwitch::Model(ModelName::HAIKU))] {
            assert_eq!(line.matches('\n').count(), 1);
        }
    }

    #[test]
    fn each_option_switch_becomes_control_request() {
        let request = |one: ProcessSwitch| {
            let line: serde_json::Value =
                serde_json::from_str(&switch(&MessageId::new("m"), &one)).expect("JSON");
            line["request"].clone()
        };
        let model = request(ProcessSwitch::Model(ModelName::HAIKU));
        assert_eq!(model, json!({ "subtype": "set_model", "model": "haiku" }));
        let mode = request(ProcessSwitch::Permission("plan".to_owned()));
        assert_eq!(mode, json!({ "subtype": "set_permission_mode", "mode": "plan" }));
        let effort = request(ProcessSwitch::Effort(EffortLevel::Max));
        let settings = json!({ "effortLevel": "max" });
        assert_eq!(effort, json!({ "subtype": "apply_flag_settings", "settings": settings }));
    }
}
