//! The money of live tests: each run is given a part of what is free, and gives back what it has left.
//!
//! A run is held to half of its part, because a process may spend up to twice what its run has left before it is cut
//! off. So what is spent and what is reserved together never exceed the whole.

use super::money::Usd;

/// The least part with which a run is begun, in dollars.
const MIN_PART: f64 = 0.01;

/// The money of live tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBudget {
    /// The most that all runs may cost.
    pub total: Usd,
    /// The cost of the runs that have ended.
    pub spent: Usd,
    /// The parts of those that run.
    reserved: Usd,
}

/// The answer to a run that wants to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveBudgetAnswer {
    /// It may, with this part.
    Part(LivePart),
    /// Others have to end first.
    Wait,
    /// Too little is left for any run.
    Spent,
}

/// The part of the money that is set aside for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePart(Usd);

impl LivePart {
    /// Returns the budget that the run is given.
    pub fn run_budget(self) -> Usd {
        self.0.half()
    }
}

impl LiveBudget {
    /// Returns the budget before anything is spent.
    pub fn new(total: Usd) -> Self {
        Self { total, spent: Usd::ZERO, reserved: Usd::ZERO }
    }

    /// Sets money aside for a run: what is free, divided by the number of runs that are to begin now, or by fewer if
    /// that is too little. `usual` is the most that such a run has cost; one that would be cut off does not begin.
    pub fn reserve(&mut self, to_begin: u32, usual: Usd) -> LiveBudgetAnswer {
        let free = self.total.saturating_sub(self.spent).saturating_sub(self.reserved);
        let least = usual.times(2).max(Usd::from_dollars(MIN_PART));
        let parts = (1..=to_begin.max(1)).rev().map(|runs| free.divided(runs));
        if let Some(part) = parts.into_iter().find(|part| *part >= least) {
            self.reserved += part;
            return LiveBudgetAnswer::Part(LivePart(part));
        }
        if self.reserved.is_zero() { LiveBudgetAnswer::Spent } else { LiveBudgetAnswer::Wait }
    }

    /// Takes in the end of a run. One whose cost is not known counts as its whole part.
    pub fn settle(&mut self, part: LivePart, cost: Option<Usd>) {
        self.reserved = self.reserved.saturating_sub(part.0);
        self.spent += cost.unwrap_or(part.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn usd(dollars: f64) -> Usd {
        Usd::from_dollars(dollars)
    }

    #[test]
    fn free_money_is_shared_by_the_runs_that_begin() {
        let mut budget = LiveBudget::new(usd(1.0));
        assert_eq!(budget.reserve(2, Usd::ZERO), LiveBudgetAnswer::Part(LivePart(usd(0.5))));
        assert_eq!(budget.reserve(1, Usd::ZERO), LiveBudgetAnswer::Part(LivePart(usd(0.5))));
        assert_eq!(LivePart(usd(0.5)).run_budget(), usd(0.25));
        assert_eq!(budget.reserve(1, Usd::ZERO), LiveBudgetAnswer::Wait);
        budget.settle(LivePart(usd(0.5)), Some(usd(0.1)));
        assert_eq!(budget.reserve(1, Usd::ZERO), LiveBudgetAnswer::Part(LivePart(usd(0.4))));
        budget.settle(LivePart(usd(0.4)), None);
        budget.settle(LivePart(usd(0.5)), Some(usd(0.495)));
        assert_eq!(
            (budget.spent, budget.reserve(1, Usd::ZERO)),
            (usd(0.995), LiveBudgetAnswer::Spent)
        );
    }

    #[test]
    fn little_money_is_not_split_into_parts_that_are_too_small() {
        let mut budget = LiveBudget::new(usd(0.015));
        assert_eq!(budget.reserve(8, Usd::ZERO), LiveBudgetAnswer::Part(LivePart(usd(0.015))));
        assert_eq!(LiveBudget::new(usd(0.005)).reserve(1, Usd::ZERO), LiveBudgetAnswer::Spent);
    }

    #[test]
    fn run_that_would_be_cut_off_does_not_begin() {
        let mut budget = LiveBudget::new(usd(0.10));
        assert_eq!(budget.reserve(2, usd(0.04)), LiveBudgetAnswer::Part(LivePart(usd(0.10))));
        budget.settle(LivePart(usd(0.10)), Some(usd(0.04)));
        assert_eq!(budget.reserve(1, usd(0.04)), LiveBudgetAnswer::Spent);
        assert_eq!(budget.reserve(1, usd(0.03)), LiveBudgetAnswer::Part(LivePart(usd(0.06))));
    }

    proptest! {
        #[test]
        fn runs_that_keep_to_their_parts_never_exceed_the_whole(
            total in 0u32..500,
            steps in proptest::collection::vec((1u32..5, 0.0f64..=1.0), 1..60),
        ) {
            let mut budget = LiveBudget::new(usd(f64::from(total) / 100.0));
            let mut running: Vec<LivePart> = Vec::new();
            for (to_begin, used) in steps {
                if let LiveBudgetAnswer::Part(part) = budget.reserve(to_begin, Usd::ZERO) {
                    running.push(part);
                } else if let Some(part) = running.pop() {
                    budget.settle(part, Some(usd(part.0.dollars() * used)));
                }
                let parts = running.iter().fold(Usd::ZERO, |sum, part| sum.saturating_add(part.0));
                prop_assert!(budget.spent.saturating_add(parts) <= budget.total);
            }
        }
    }
}
