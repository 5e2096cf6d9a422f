//! The fuel of one advance, the same for every language: no agent can keep the supervisor from the others.
//!
//! A graph that has used it up is cut and continues after the others; a program that has used it up never blocks, and
//! fails.

/// The steps of one advance. They take less than a second.
const STEPS: u64 = 1_000_000;

/// The steps of an action, an instruction or an output, besides its expressions.
const STEPS_PER_ACTION: u64 = 100;

/// The most actions of one advance.
pub const MAX_ACTIONS_PER_ADVANCE: u64 = STEPS / STEPS_PER_ACTION;

/// The remaining steps of an advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdvanceFuel {
    steps: u64,
}

impl Default for AdvanceFuel {
    fn default() -> Self {
        Self { steps: STEPS }
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
}
