//! Whether a run may afford one more turn.
//!
//! What a turn will cost is not known before it ends, and many start at once. So each running turn
//! is reckoned at the most that any turn of this run has cost so far, and while none has ended yet
//! only one runs. A hundred workers then overshoot a budget by about one turn, not by a hundred.

use super::money::Usd;

/// What a run has spent and may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purse {
    /// What has been spent.
    pub spent: Usd,
    /// What may be spent; nothing limits it if absent.
    pub limit: Option<Usd>,
    /// The most that one turn has cost; absent while none has ended.
    pub costliest_turn: Option<Usd>,
}

impl Purse {
    /// Whether one more turn may start beside `running` others.
    #[must_use]
    pub fn affords_beside(&self, running: usize) -> bool {
        let Some(limit) = self.limit else { return true };
        if self.spent >= limit {
            return false;
        }
        if running == 0 {
            return true;
        }
        self.costliest_turn
            .is_some_and(|most| self.spent.saturating_add(most.times(running + 1)) <= limit)
    }

    /// Whether nothing may start any more, however few are running.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.limit.is_some_and(|limit| self.spent >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purse(spent: f64, limit: f64, costliest: impl Into<Option<f64>>) -> Purse {
        Purse {
            spent: Usd::from_dollars(spent),
            limit: Some(Usd::from_dollars(limit)),
            costliest_turn: costliest.into().map(Usd::from_dollars),
        }
    }

    #[test]
    fn without_a_limit_everything_is_affordable() {
        let purse = Purse { spent: Usd::from_dollars(1e6), limit: None, costliest_turn: None };
        assert!(purse.affords_beside(1000) && !purse.is_empty());
    }

    #[test]
    fn the_first_turn_goes_alone() {
        assert!(purse(0.0, 1.0, None).affords_beside(0));
        assert!(!purse(0.0, 1.0, None).affords_beside(1));
        assert!(purse(0.0, 1.0, 0.0).affords_beside(99));
    }

    #[test]
    fn running_turns_are_reckoned_at_the_costliest() {
        let purse = purse(0.02, 0.10, 0.02);
        assert!(purse.affords_beside(3));
        assert!(!purse.affords_beside(4));
    }

    #[test]
    fn a_spent_budget_affords_nothing() {
        assert!(!purse(0.10, 0.10, 0.01).affords_beside(0));
        assert!(purse(0.10, 0.10, 0.01).is_empty());
        assert!(!purse(0.0, 0.0, 0.0).affords_beside(0));
    }

    #[test]
    fn what_is_left_may_be_used_by_one_that_goes_alone() {
        assert!(purse(0.095, 0.10, 0.02).affords_beside(0));
        assert!(!purse(0.095, 0.10, 0.02).affords_beside(1));
    }
}
