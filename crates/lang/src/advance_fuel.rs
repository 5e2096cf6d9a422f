//! The fuel of one advance, the same for every language: no agent can keep the supervisor from the others.
//!
//! A graph that has used it up is cut and continues after the others; a program that has used it up never blocks, and
//! fails.

use serde_json::Value;

/// The steps of one advance. They take less than a second.
const STEPS: u64 = 1_000_000;

/// The steps of an action, an instruction or an output, besides its expressions.
const STEPS_PER_ACTION: u64 = 100;

/// The most actions of one advance.
pub const MAX_ACTIONS_PER_ADVANCE: u64 = STEPS / STEPS_PER_ACTION;

/// The most bytes of JSON that one advance stores, far less than the longest record that can be read again.
const MAX_STORED_BYTES: usize = 32 * 1024 * 1024;

/// The remaining steps of an advance, and the bytes that it may still store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdvanceFuel {
    steps: u64,
    bytes: usize,
}

impl Default for AdvanceFuel {
    fn default() -> Self {
        Self { steps: STEPS, bytes: MAX_STORED_BYTES }
    }
}

impl AdvanceFuel {
    /// Spends the steps of an action, an instruction or an output.
    pub fn spend_action(&mut self) {
        self.spend(STEPS_PER_ACTION);
    }

    /// Spends the steps of an expression.
    pub fn spend(&mut self, steps: u64) {
        self.steps = self.steps.saturating_sub(steps);
    }

    /// Spends the bytes of a value that is stored.
    ///
    /// # Errors
    /// The reason why it is not: the record of the advance would be too long to be read again.
    pub fn store(&mut self, value: &Value) -> Result<(), String> {
        let size = json_bytes(value);
        let left = self.bytes.checked_sub(size);
        self.bytes = left.ok_or_else(|| {
            format!(
                "one step stores at most {} MiB of JSON, and this value needs {} bytes more than are left; write large values to files",
                MAX_STORED_BYTES / (1024 * 1024),
                size - self.bytes
            )
        })?;
        Ok(())
    }

    /// Returns whether nothing is left.
    pub fn is_used_up(self) -> bool {
        self.steps == 0
    }
}

/// Returns the number of bytes of a value as JSON.
fn json_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text_bytes(text),
        Value::Array(list) => 2 + list.iter().map(|part| json_bytes(part) + 1).sum::<usize>(),
        Value::Object(map) => {
            2 + map.iter().map(|(key, part)| text_bytes(key) + json_bytes(part) + 2).sum::<usize>()
        }
    }
}

/// Returns the number of bytes of a text as JSON: a control character takes six, a quote or a backslash two.
fn text_bytes(text: &str) -> usize {
    let bytes = text.bytes().map(|byte| match byte {
        0..=0x1f => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    });
    2 + bytes.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuel_lasts_for_the_most_actions_or_for_one_long_expression() {
        let mut fuel = AdvanceFuel::default();
        for _ in 1..MAX_ACTIONS_PER_ADVANCE {
            fuel.spend_action();
        }
        assert!(!fuel.is_used_up());
        fuel.spend_action();
        assert!(fuel.is_used_up());
        let mut fuel = AdvanceFuel::default();
        fuel.spend(u64::MAX);
        assert!(fuel.is_used_up());
    }

    #[test]
    fn values_are_stored_up_to_a_size_of_their_json() {
        let mut fuel = AdvanceFuel::default();
        // A control character takes six bytes in JSON.
        let value = Value::String("\u{1}".repeat(MAX_STORED_BYTES / 10));
        assert_eq!(fuel.store(&value), Ok(()));
        let refused = fuel.store(&value).expect_err("it does not fit beside the first");
        assert!(refused.contains("write large values to files"), "{refused}");
        assert_eq!(fuel.store(&Value::from("small")), Ok(()));
    }

    #[test]
    fn size_is_at_least_that_of_the_json() {
        let value = serde_json::json!({"a\"\n": [1, -2.5, null, true, "\u{1}\\x"], "b": {}});
        assert!(json_bytes(&value) >= value.to_string().len());
    }
}
