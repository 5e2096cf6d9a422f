//! What is said to a process that stays: a line of JSON for each thing. Pure.
//!
//! A message says that it can wait: a process that has begun a turn of its own, because something in
//! the background came to its end, would else weave the message into that turn and answer both as one.

use serde_json::json;

use crate::domain::id::MessageId;
use crate::domain::process_reuse::ProcessSwitch;

/// The longest prompt that is sent this way, in bytes: it comes back in the stream, whose lines are
/// limited. A longer one is asked of a process of its own.
pub const LONGEST_PROMPT: usize = 1024 * 1024;

/// Asks a turn.
#[must_use]
pub fn prompt(id: &MessageId, text: &str) -> String {
    let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
    let line = json!({ "type": "user", "uuid": id, "priority": "later", "message": message });
    format!("{line}\n")
}

/// Changes a process for the turns to come.
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
    let line = json!({ "type": "control_request", "request_id": id, "request": request });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::model::ModelName;
    use crate::domain::turn_options::EffortLevel;

    #[test]
    fn each_thing_is_one_line() {
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
    fn each_switch_is_a_control_request() {
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
