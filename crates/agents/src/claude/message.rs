//! The messages to a process that serves several turns: a line of JSON each. Pure.
//!
//! A message has a low priority, so that it can wait. Otherwise a process that has begun a turn by itself, because a
//! background task has ended, would mix the message into that turn and answer both as one.
//!
//! The program executes a message that begins with a slash word. A line feed before the word makes it text.

use std::borrow::Cow;

use serde_json::json;

use raymond_model::id::MessageId;
use raymond_model::settings::ProcessSwitch;

/// The longest prompt that is sent this way, in bytes: it comes back in the stream, whose lines are
/// limited. A longer prompt gets a separate process.
pub const MAX_PROMPT_BYTES: usize = 1024 * 1024;

/// The id of the request for the cost before a process's first turn.
pub const BASE_USAGE: &str = "usage-0";

/// The id of the request for the cost of a turn that is being ended.
pub const FINAL_USAGE: &str = "usage-1";

/// The id of the request to send the system prompt of the process.
pub const INITIALIZE: &str = "initialize-0";

/// The id of the request to interrupt the turn that runs.
pub const INTERRUPT: &str = "interrupt";

/// Returns a request for the cost of the session so far.
pub fn get_usage(id: &str) -> String {
    control_request(id, &json!({ "subtype": "get_usage", "skip_behaviors": true }))
}

/// Returns a request to send the system prompt of the process instead of the recorded prompt of the session. A version
/// that does not record prompts ignores the request.
pub fn renew_system_prompt() -> String {
    let request = json!({ "subtype": "initialize", "systemPromptSnapshot": false });
    control_request(INITIALIZE, &request)
}

/// Returns a request to interrupt the turn that runs.
pub fn interrupt() -> String {
    control_request(INTERRUPT, &json!({ "subtype": "interrupt" }))
}

fn control_request(id: &str, request: &serde_json::Value) -> String {
    let line = json!({ "type": "control_request", "request_id": id, "request": request });
    format!("{line}\n")
}

/// Returns the message that asks a turn. It `may_be_command` only if its state says so.
pub fn prompt(id: &MessageId, text: &str, may_be_command: bool) -> String {
    let command = Some(text.trim_start()).filter(|text| may_be_command && text.starts_with('/'));
    let text = command.map_or_else(|| as_text(text), Cow::Borrowed);
    user_message(id, "later", &text)
}

fn user_message(id: &MessageId, priority: &str, text: &str) -> String {
    let message = json!({ "role": "user", "content": [{ "type": "text", "text": text }] });
    let line = json!({ "type": "user", "uuid": id, "priority": priority, "message": message });
    format!("{line}\n")
}

/// Returns a text so that the program takes it for nothing else.
fn as_text(text: &str) -> Cow<'_, str> {
    if may_be_taken_for_command(text) { format!("\n{text}").into() } else { text.into() }
}

/// Returns the text that a message was made of.
pub fn as_asked(text: &str) -> &str {
    text.strip_prefix('\n').filter(|rest| may_be_taken_for_command(rest)).unwrap_or(text)
}

/// Returns whether a text begins with a slash, line feeds apart.
fn may_be_taken_for_command(text: &str) -> bool {
    text.trim_start_matches('\n').starts_with('/')
}

/// Returns the message that tells a running turn something: the model reads it with its next request.
pub fn steering(id: &MessageId, text: &str) -> String {
    user_message(id, "next", &as_text(text))
}

/// Returns a request to change a process for the turns to come.
pub fn switch(id: &str, switch: &ProcessSwitch) -> String {
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
    control_request(id, &request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raymond_model::model::ModelName;
    use raymond_model::turn_options::EffortLevel;

    #[test]
    fn prompts_and_switches_are_single_lines() {
        let id = MessageId::new("m1");
        let asked = prompt(&id, "two\nlines \"quoted\"", false);
        let read: serde_json::Value = serde_json::from_str(&asked).expect("JSON");
        assert_eq!(read["message"]["content"][0]["text"], "two\nlines \"quoted\"");
        assert_eq!((&read["uuid"], &read["priority"]), (&json!("m1"), &json!("later")));
        for line in [asked, switch("m", &ProcessSwitch::Model(ModelName::HAIKU))] {
            assert_eq!(line.matches('\n').count(), 1);
        }
    }

    /// Returns the text of a message.
    fn sent(line: &str) -> String {
        let read: serde_json::Value = serde_json::from_str(line).expect("JSON");
        read["message"]["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    #[test]
    fn text_with_leading_slash_is_a_command_only_if_its_state_says_so() {
        let id = MessageId::new("m");
        for text in ["/clear", "/model opus", "/srv/app: fix it", "/", "\n/clear", "\n\n/x\ny"] {
            for asked in [sent(&prompt(&id, text, false)), sent(&steering(&id, text))] {
                assert_eq!(asked, format!("\n{text}"));
                assert_eq!(as_asked(&asked), text, "what was sent is known again");
            }
            assert_eq!(sent(&prompt(&id, text, true)), text.trim_start());
        }
        assert_eq!(sent(&prompt(&id, "\n  /review", true)), "/review");
        for text in ["", "hello /clear", " /clear", "\n", "\nhello", "!ls", "#x", "@x", "\\/x"] {
            assert_eq!(sent(&prompt(&id, text, false)), text);
            assert_eq!(as_asked(text), text);
        }
    }

    #[test]
    fn each_option_switch_becomes_control_request() {
        let request = |change: ProcessSwitch| {
            let line: serde_json::Value =
                serde_json::from_str(&switch("m", &change)).expect("JSON");
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
