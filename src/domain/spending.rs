//! The cost of one turn, from the totals that its process reports.
//!
//! Claude Code reports totals: of the process in older versions, of the whole session, with all that
//! earlier processes spent in it, in newer ones. It does not say which. So the first reading is taken
//! before the turn begins, and the turn costs what each later reading adds to the one before it.
//! A total that falls has started again from zero, as it does after `/clear`.
//!
//! Totals of two processes are never subtracted from each other: a process that was killed may not
//! have saved its own, and the next one then starts from an older total.

use super::usage::ProcessSpending;

/// A running account of one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpendingMeter {
    last_total: ProcessSpending,
    turn: ProcessSpending,
}

impl SpendingMeter {
    /// Returns a meter for a turn that begins when the total is `total`.
    pub fn starting_at(total: ProcessSpending) -> Self {
        Self { last_total: total, turn: ProcessSpending::default() }
    }

    /// Takes the total that a process reports before its first turn, which is not this turn's.
    pub fn set_base(&mut self, total: ProcessSpending) {
        if self.turn == ProcessSpending::default() {
            self.last_total = total;
        }
    }

    /// Books what has been added since the last reading.
    pub fn read_total(&mut self, total: ProcessSpending) {
        if total.cost < self.last_total.cost {
            self.turn += &total;
        } else {
            self.turn += &total.since(&self.last_total);
        }
        self.last_total = total;
    }

    /// Returns the cost of the turn so far.
    pub fn turn(&self) -> &ProcessSpending {
        &self.turn
    }

    /// Returns the last total that was read.
    pub fn last_total(&self) -> &ProcessSpending {
        &self.last_total
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Usd;
    use crate::domain::usage::{ModelUse, UsageByModel};

    fn opus(dollars: f64) -> ProcessSpending {
        let cost = Usd::from_dollars(dollars);
        let used = ModelUse { cost_usd: cost, ..ModelUse::default() };
        ProcessSpending { cost, usage: UsageByModel::from_iter([("opus".to_owned(), used)]) }
    }

    /// The cost of each turn of a process: base, then the totals read in each of its turns.
    fn turns(base: f64, turns: &[&[f64]]) -> Vec<f64> {
        let mut total = opus(0.0);
        let mut costs = Vec::new();
        for (number, readings) in turns.iter().enumerate() {
            let mut meter = SpendingMeter::starting_at(total.clone());
            if number == 0 {
                meter.set_base(opus(base));
            }
            readings.iter().for_each(|&reading| meter.read_total(opus(reading)));
            assert_eq!(meter.turn().usage.total().cost_usd, meter.turn().cost);
            costs.push(meter.turn().cost.dollars());
            total = meter.last_total().clone();
        }
        costs
    }

    #[test]
    fn turn_cost_is_increase_of_process_total() {
        assert_eq!(turns(0.0, &[&[0.5], &[0.75], &[1.75]]), [0.5, 0.25, 1.0], "warm");
        assert_eq!(turns(4.0, &[&[4.5], &[4.75]]), [0.5, 0.25], "resumed, with the total restored");
        assert_eq!(turns(0.0, &[&[0.5]]), [0.5], "resumed, without");
        assert_eq!(turns(1.0, &[&[1.25, 1.25, 1.5]]), [0.5], "several results in one turn");
    }

    #[test]
    fn falling_total_is_counted_from_zero() {
        assert_eq!(turns(4.0, &[&[4.5, 0.25], &[0.5]]), [0.75, 0.25]);
    }

    #[test]
    fn late_repeated_base_does_not_change_turn_cost() {
        let mut meter = SpendingMeter::default();
        meter.read_total(opus(0.5));
        meter.set_base(opus(0.5));
        meter.read_total(opus(0.75));
        assert_eq!(meter.turn().cost, Usd::from_dollars(0.75));
    }
}
