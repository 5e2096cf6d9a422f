//! The input of a tool call, cut to a size that can be kept and shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The number of bytes of texts that are kept of an input.
const MAX_BYTES: usize = 16 * 1024;

/// The number of values that are kept of an input, and the depth of them.
const MAX_VALUES: usize = 256;
const MAX_DEPTH: usize = 8;

/// The input of a tool call, cut to a size that can be kept and shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoundedInput {
    /// The input, or its beginning.
    pub value: Value,
    /// The number of bytes of the whole input that are left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out_bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The room that is left for the rest of an input.
struct InputRoom {
    bytes: usize,
    values: usize,
    left_out: usize,
}

impl BoundedInput {
    /// Returns an input, cut if it is too large.
    pub fn of(input: &Value) -> Self {
        let mut room = InputRoom { bytes: MAX_BYTES, values: MAX_VALUES, left_out: 0 };
        let value = room.cut(input, MAX_DEPTH).unwrap_or_default();
        Self { value, left_out_bytes: u64::try_from(room.left_out).unwrap_or(u64::MAX) }
    }

    /// Returns a text of the input.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key)?.as_str()
    }
}

impl InputRoom {
    /// Returns as much of a value as there is room for; `None` if there is none at all.
    fn cut(&mut self, value: &Value, depth: usize) -> Option<Value> {
        if self.values == 0 || depth == 0 || self.bytes == 0 {
            self.left_out = self.left_out.saturating_add(value.to_string().len());
            return None;
        }
        self.values -= 1;
        Some(match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => {
                items.iter().filter_map(|item| self.cut(item, depth - 1)).collect()
            }
            Value::Object(fields) => {
                let mut kept = Map::new();
                for (key, value) in fields {
                    let key = self.text(key);
                    let cut = self.cut(value, depth - 1);
                    kept.extend(cut.map(|value| (key, value)));
                }
                Value::Object(kept)
            }
        })
    }

    fn text(&mut self, text: &str) -> String {
        let cut = text.floor_char_boundary(self.bytes);
        self.bytes -= cut;
        self.left_out = self.left_out.saturating_add(text.len() - cut);
        text[..cut].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_input_is_kept_whole() {
        let input = json!({ "command": "touch a", "timeout": 5, "list": [true, null] });
        let bounded = BoundedInput::of(&input);
        assert_eq!((bounded.value.clone(), bounded.left_out_bytes), (input, 0));
        assert_eq!(bounded.text("command"), Some("touch a"));
    }

    #[test]
    fn large_input_is_cut_and_says_how_much_is_left_out() {
        let bounded = BoundedInput::of(&json!({ "content": "é".repeat(MAX_BYTES) }));
        let kept = bounded.text("content").expect("a text").len();
        let room = MAX_BYTES - "content".len();
        assert!(kept <= room && kept > room - 2, "{kept}");
        assert!(bounded.left_out_bytes >= (MAX_BYTES) as u64, "{}", bounded.left_out_bytes);
        let many: Vec<u32> = (0..1000).collect();
        let bounded = BoundedInput::of(&json!({ "many": many }));
        assert!(bounded.value["many"].as_array().is_some_and(|kept| kept.len() < MAX_VALUES));
        assert!(bounded.left_out_bytes > 0);
        let mut deep = json!("end");
        (0..100).for_each(|_| deep = json!([deep]));
        assert!(BoundedInput::of(&deep).left_out_bytes > 0);
    }
}
