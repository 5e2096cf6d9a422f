//! Whether a run may afford one more turn.
//!
//! What a turn will cost is not known before it ends, and many start at once. So a running turn is
//! reckoned at the most that any turn in its state has cost so far, and of the turns in states that
//! have not cost anything known yet only one runs at a time. A hundred workers then overshoot a
//! budget by about one turn, not by a hundred. A turn that would have to go alone may use what is left.

use std::collections::BTreeMap;

use super::id::StateName;
use super::money::Usd;

/// What a run has spent and may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purse<'run> {
    /// What has been spent.
    pub spent: Usd,
    /// What may be spent; nothing limits it if absent.
    pub limit: Option<Usd>,
    /// The most that one turn has cost, by the state it ran in.
    pub known: &'run BTreeMap<StateName, Usd>,
}

impl Purse<'_> {
    /// Whether one more turn, in `state`, may start beside those that run.
    #[must_use]
    pub fn affords<'state>(
        &self,
        state: &StateName,
        running: impl Iterator<Item = &'state StateName> + Clone,
    ) -> bool {
        let Some(limit) = self.limit else { return true };
        if self.spent >= limit {
            return false;
        }
        if running.clone().next().is_none() {
            return true;
        }
        let first_of_its_kind = |state: &StateName| !self.known.contains_key(state);
        if first_of_its_kind(state) && running.clone().any(first_of_its_kind) {
            return false;
        }
        let owed =
            running.fold(self.reckon(state), |sum, state| sum.saturating_add(self.reckon(state)));
        self.spent.saturating_add(owed) <= limit
    }

    /// What a turn in a state is expected to cost at the most.
    fn reckon(&self, state: &StateName) -> Usd {
        let known = self.known.get(state).or_else(|| self.known.values().max());
        known.copied().unwrap_or_default()
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

    fn state(name: &str) -> StateName {
        StateName::parse(name).expect("a state")
    }

    fn known(costs: &[(&str, f64)]) -> BTreeMap<StateName, Usd> {
        costs.iter().map(|(name, cost)| (state(name), Usd::from_dollars(*cost))).collect()
    }

    /// Whether a turn in W.md may start beside so many others there, and the given further ones.
    fn affords(
        spent: f64,
        limit: f64,
        costs: &[(&str, f64)],
        beside: usize,
        further: &[&str],
    ) -> bool {
        let known = known(costs);
        let purse = Purse {
            spent: Usd::from_dollars(spent),
            limit: Some(Usd::from_dollars(limit)),
            known: &known,
        };
        let mut running = vec![state("W.md"); beside];
        running.extend(further.iter().map(|name| state(name)));
        purse.affords(&state("W.md"), running.iter())
    }

    #[test]
    fn without_a_limit_everything_is_affordable() {
        let known = BTreeMap::new();
        let purse = Purse { spent: Usd::from_dollars(1e6), limit: None, known: &known };
        assert!(
            purse.affords(&state("W.md"), vec![state("W.md"); 1000].iter()) && !purse.is_empty()
        );
    }

    #[test]
    fn the_first_turn_in_a_state_goes_without_another_first() {
        assert!(affords(0.0, 1.0, &[], 0, &[]));
        assert!(!affords(0.0, 1.0, &[], 1, &[]));
        assert!(!affords(0.0, 1.0, &[], 0, &["OTHER.md"]));
        assert!(affords(0.0, 1.0, &[("OTHER.md", 0.1)], 0, &["OTHER.md"]));
        assert!(affords(0.0, 1.0, &[("W.md", 0.0)], 99, &[]));
    }

    #[test]
    fn cheap_turns_elsewhere_do_not_make_dear_ones_affordable() {
        let costs = [("START.md", 0.001)];
        assert!(affords(0.016, 1.0, &costs, 0, &["START.md"]));
        assert!(!affords(0.016, 1.0, &costs, 1, &["START.md"]), "the second of an unknown kind");
        let costs = [("START.md", 0.001), ("W.md", 2.0)];
        assert!(
            !affords(0.016, 1.0, &costs, 0, &["START.md"]),
            "the first is known to be too dear"
        );
    }

    #[test]
    fn running_turns_are_reckoned_at_the_dearest_of_their_state() {
        assert!(affords(0.02, 0.10, &[("W.md", 0.02)], 3, &[]));
        assert!(!affords(0.02, 0.10, &[("W.md", 0.02)], 4, &[]));
    }

    #[test]
    fn a_spent_budget_affords_nothing() {
        assert!(!affords(0.10, 0.10, &[("W.md", 0.01)], 0, &[]));
        assert!(!affords(0.0, 0.0, &[], 0, &[]));
    }

    #[test]
    fn what_is_left_may_be_used_by_one_that_goes_alone() {
        assert!(affords(0.095, 0.10, &[("W.md", 0.02)], 0, &[]));
        assert!(!affords(0.095, 0.10, &[("W.md", 0.02)], 1, &[]));
    }
}
