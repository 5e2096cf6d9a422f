//! The fuel of one advance, the same for every language: no agent can keep the supervisor from the others.
//!
//! A graph that has used it up is cut and continues after the others; a program that has used it up never blocks, and
//! fails.

use serde::Serialize;

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

/// Counts the bytes that are written to it.
struct ByteCount(usize);

impl std::io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
    pub fn store(&mut self, value: &impl Serialize) -> Result<(), String> {
        let mut size = ByteCount(0);
        serde_json::to_writer(&mut size, value).map_err(|error| error.to_string())?;
        let left = self.bytes.checked_sub(size.0);
        self.bytes = left.ok_or_else(|| {
            format!(
                "one step stores at most {MAX_STORED_BYTES} bytes of JSON, and this value needs {} more than are left; write large values to files",
                size.0 - self.bytes
            )
        })?;
        Ok(())
    }

    /// Returns whether nothing is left.
    #[must_use]
    pub fn is_used_up(self) -> bool {
        self.steps == 0
    }
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
        let value = "\u{1}".repeat(MAX_STORED_BYTES / 10);
        assert_eq!(fuel.store(&value), Ok(()));
        let refused = fuel.store(&value).expect_err("it does not fit beside the first");
        assert!(refused.contains("write large values to files"), "{refused}");
        assert_eq!(fuel.store(&"small"), Ok(()));
    }
}
