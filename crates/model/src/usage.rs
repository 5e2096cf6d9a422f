//! The usage of models by turns, tokens and cost, and the cost of one turn from the totals that its process reports.
//!
//! A turn can use more than one model: sub-agents have their own, and Claude Code asks a small one for chores. For that
//! reason usage is kept by model, and is added up for a ledger. The program counts for a whole process, so a turn's
//! usage is also a difference; it is never negative.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Usd;

/// The usage of each model, by the name the program gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct UsageByModel(BTreeMap<String, ModelUse>);

/// The spending of a process since it began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSpending {
    /// The cost, in US dollars.
    #[serde(rename = "spent_usd")]
    pub cost: Usd,
    /// The usage of each model; empty if that was not kept.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
}

/// The usage of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelUse {
    /// The input tokens that no cache held or took.
    pub input_tokens: u64,
    /// The output tokens.
    pub output_tokens: u64,
    /// The input tokens that were read from a cache.
    pub cache_read_tokens: u64,
    /// The input tokens that were written to a cache.
    pub cache_write_tokens: u64,
    /// The cost of these tokens, in US dollars.
    pub cost_usd: Usd,
}

impl UsageByModel {
    /// Returns whether no usage is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns each model with its usage, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ModelUse)> {
        self.0.iter().map(|(model, used)| (model.as_str(), used))
    }

    /// Returns the usage of all models together.
    pub fn total(&self) -> ModelUse {
        self.0.values().fold(ModelUse::default(), |sum, &used| sum.saturating_add(used))
    }

    /// Returns the usage beyond `before`; a model without usage since then is left out.
    pub fn saturating_sub(&self, before: &Self) -> Self {
        let since = |(model, used): (&String, &ModelUse)| {
            let before = before.0.get(model).copied().unwrap_or_default();
            (model.clone(), used.saturating_sub(before))
        };
        self.0.iter().map(since).collect()
    }
}

impl ModelUse {
    /// Returns the sum, at most what the types hold.
    pub fn saturating_add(self, other: Self) -> Self {
        self.with(other, u64::saturating_add, Usd::saturating_add)
    }

    /// Returns the difference, or zero where `other` is more.
    pub fn saturating_sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub, Usd::saturating_sub)
    }

    fn with(self, other: Self, tokens: fn(u64, u64) -> u64, cost: fn(Usd, Usd) -> Usd) -> Self {
        Self {
            input_tokens: tokens(self.input_tokens, other.input_tokens),
            output_tokens: tokens(self.output_tokens, other.output_tokens),
            cache_read_tokens: tokens(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: tokens(self.cache_write_tokens, other.cache_write_tokens),
            cost_usd: cost(self.cost_usd, other.cost_usd),
        }
    }
}

impl ProcessSpending {
    /// Returns the spending beyond `before`. If `before` has a cost but no usage by model, the result has none
    /// either, because the earlier usage would be counted twice.
    pub fn since(&self, before: &Self) -> Self {
        let not_kept = before.cost > Usd::ZERO && before.usage.is_empty();
        let usage = if not_kept {
            UsageByModel::default()
        } else {
            self.usage.saturating_sub(&before.usage)
        };
        Self { cost: self.cost.saturating_sub(before.cost), usage }
    }
}

impl FromIterator<(String, ModelUse)> for UsageByModel {
    /// Adds up a model that comes twice; leaves out a model without usage.
    fn from_iter<I: IntoIterator<Item = (String, ModelUse)>>(each: I) -> Self {
        let mut usage = Self::default();
        each.into_iter().for_each(|(model, used)| usage.add(model, used));
        usage
    }
}

impl AddAssign<&Self> for UsageByModel {
    fn add_assign(&mut self, other: &Self) {
        other.0.iter().for_each(|(model, &used)| self.add(model.clone(), used));
    }
}

impl AddAssign<&Self> for ProcessSpending {
    fn add_assign(&mut self, other: &Self) {
        self.cost = self.cost.saturating_add(other.cost);
        self.usage += &other.usage;
    }
}

impl UsageByModel {
    fn add(&mut self, model: String, used: ModelUse) {
        if used != ModelUse::default() {
            let sum = self.0.entry(model).or_default();
            *sum = sum.saturating_add(used);
        }
    }
}

// The cost of one turn, from the totals that its process reports.
//
// Claude Code reports totals: of the process in older versions, of the whole session, with all that earlier processes
// spent in it, in newer ones. It does not say which. So the first reading is taken before the turn begins, and the turn
// costs what each later reading adds to the one before it. A total that falls has started again from zero, as it does
// after `/clear`.
//
// Totals of two processes are never subtracted from each other: a process that was killed may not have saved its own,
// and the next one then starts from an older total.

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
    use proptest::prelude::*;

    fn used() -> impl Strategy<Value = ModelUse> {
        let tokens = 0u64..1_000_000;
        (tokens.clone(), tokens.clone(), tokens.clone(), tokens, 0u32..100).prop_map(
            |(input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cents)| {
                let cost_usd = Usd::from_dollars(f64::from(cents) / 100.0);
                ModelUse {
                    input_tokens,
                    output_tokens,
                    cache_read_tokens,
                    cache_write_tokens,
                    cost_usd,
                }
            },
        )
    }

    fn usage() -> impl Strategy<Value = UsageByModel> {
        prop::collection::vec(("[a-d]", used()), 0..4).prop_map(UsageByModel::from_iter)
    }

    proptest! {
        #[test]
        fn usage_subtraction_reverses_addition(before in usage(), since in usage()) {
            let mut whole = before.clone();
            whole += &since;
            prop_assert_eq!(whole.saturating_sub(&before), since.clone());
            prop_assert_eq!(whole.total(), before.total().saturating_add(since.total()));
            prop_assert!(before.saturating_sub(&whole).is_empty());
        }

        #[test]
        fn usage_round_trips_through_json(usage in usage()) {
            let text = serde_json::to_string(&usage).expect("it is JSON");
            prop_assert_eq!(serde_json::from_str::<UsageByModel>(&text).expect("it reads back"), usage);
        }
    }

    #[test]
    fn spending_since_base_excludes_earlier_spending() {
        let opus = |dollars: f64| {
            let cost_usd = Usd::from_dollars(dollars);
            let used = ModelUse { cost_usd, ..ModelUse::default() };
            ProcessSpending {
                cost: cost_usd,
                usage: UsageByModel::from_iter([("opus".to_owned(), used)]),
            }
        };
        assert_eq!(opus(0.5).since(&ProcessSpending::default()), opus(0.5));
        assert_eq!(opus(0.5).since(&opus(0.125)), opus(0.375));
        let old: ProcessSpending =
            serde_json::from_str(r#"{"spent_usd":0.125}"#).expect("as it was kept once");
        let since = opus(0.5).since(&old);
        assert_eq!((since.cost, since.usage), (Usd::from_dollars(0.375), UsageByModel::default()));
    }

    #[test]
    fn usage_json_omits_unused_models_and_defaults_missing_fields() {
        let used =
            ModelUse { output_tokens: 7, cost_usd: Usd::from_dollars(0.5), ..ModelUse::default() };
        let usage = UsageByModel::from_iter([
            ("opus".to_owned(), used),
            ("none".to_owned(), ModelUse::default()),
        ]);
        let json = r#"{"opus":{"input_tokens":0,"output_tokens":7,"cache_read_tokens":0,"cache_write_tokens":0,"cost_usd":0.5}}"#;
        assert_eq!(serde_json::to_string(&usage).expect("it is JSON"), json);
        assert_eq!(usage.iter().collect::<Vec<_>>(), [("opus", &used)]);
        let short = serde_json::from_str::<UsageByModel>(r#"{"opus":{"cost_usd":0.5,"new":1}}"#);
        assert_eq!(short.expect("a part is enough").total().cost_usd, used.cost_usd);
    }
}

#[cfg(test)]
mod spending_tests {
    use super::*;
    use crate::money::Usd;
    use crate::usage::{ModelUse, UsageByModel};

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
