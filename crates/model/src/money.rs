//! Money, counted exactly.
//!
//! Costs are added thousands of times and compared with budgets, and a replay has to give the same sum.
//! An amount is a whole number of billionths of a dollar. Only its text and JSON forms are decimal.

use std::borrow::Cow;
use std::fmt;
use std::ops::AddAssign;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NANOS_PER_DOLLAR: f64 = 1e9;

/// An amount of US dollars, never negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u64);

impl Usd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// Converts dollars, rounded to a billionth; a negative amount or NaN becomes zero.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float-to-integer cast saturates, and negative amounts are cut off first"
    )]
    pub fn from_dollars(dollars: f64) -> Self {
        Self((dollars.max(0.0) * NANOS_PER_DOLLAR).round() as u64)
    }

    /// Returns the amount in dollars.
    #[expect(clippy::cast_precision_loss, reason = "exact below nine million dollars")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / NANOS_PER_DOLLAR
    }

    /// Returns the sum, at most the maximum of the type.
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns the difference, or zero if `other` is more.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns half of the amount, rounded down.
    pub fn half(self) -> Self {
        Self(self.0 / 2)
    }

    /// Returns the amount divided by a number, rounded down; by 0 it is not divided.
    pub fn divided(self, by: u32) -> Self {
        Self(self.0.checked_div(u64::from(by)).unwrap_or(self.0))
    }

    /// Returns whether it is zero.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Returns the amount multiplied by `times`.
    pub fn times(self, times: usize) -> Self {
        Self(self.0.saturating_mul(times as u64))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

impl fmt::Display for Usd {
    /// Writes dollars with cents. Amounts below a dollar with fractions of a cent get more digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.dollars();
        let whole_cents = self.0.is_multiple_of(10_000_000);
        match self.0 {
            _ if whole_cents || dollars >= 1.0 => write!(f, "${dollars:.2}"),
            100_000.. => write!(f, "${dollars:.4}"),
            _ => write!(f, "${dollars:.9}"),
        }
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::from_dollars)
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "US dollars.", "type": "number", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn negative_and_nan_amounts_become_zero() {
        assert_eq!(Usd::from_dollars(-1.0), Usd::ZERO);
        assert_eq!(Usd::from_dollars(f64::NAN), Usd::ZERO);
    }

    #[test]
    fn small_amounts_display_significant_digits() {
        let shown = |dollars: f64| Usd::from_dollars(dollars).to_string();
        assert_eq!(shown(0.0), "$0.00");
        assert_eq!(shown(0.05), "$0.05");
        assert_eq!(shown(0.0123), "$0.0123");
        assert_eq!(shown(0.000_012), "$0.000012000");
        assert_eq!(shown(12.345), "$12.35");
    }

    proptest! {
        #[test]
        fn amount_round_trips_through_json(nanos in 0u64..1_000_000_000_000_000) {
            let amount = Usd(nanos);
            let text = serde_json::to_string(&amount).expect("an amount is JSON");
            prop_assert_eq!(serde_json::from_str::<Usd>(&text).expect("it reads back"), amount);
        }
    }
}
