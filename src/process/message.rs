//! What is said to a process that stays: a line of JSON for each thing. Pure.
//!
//! A message says that it can wait: a process that has begun a turn of its own, because something in
//! the background came to its end, would else weave the message into that turn and answer both as one.

use serde_json::json;

use crate::domain::id::MessageId;
use crate::domain::settings::Model;

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

/// Changes the model of the turns to come.
#[must_use]
pub fn set_model(id: &MessageId, model: Model) -> String {
    let request = json!({ "subtype": "set_model", "model": model.name() });
    let line = json!({ "type": "control_request", "request_id": id, "request": request });
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_one_line() {
        let id = MessageId::new("m1");
        let asked = prompt(&id, "two\nlines \"quoted\"");
        let read: serde_json::Value = serde_json::from_str(&asked).expect("JSON");
        assert_eq!(read["message"]["content"][0]["text"], "two\nlines \"quoted\"");
        assert_eq!((&read["uuid"], &read["priority"]), (&json!("m1"), &json!("later")));
        for line in [asked, set_model(&id, Model::Haiku)] {
            assert_eq!(line.matches('\n').count(), 1);
        }
    }
}
