//! The prices of models, for an estimate before a run starts. What a turn has cost is what Claude Code reports.
//!
//! The table is changed by hand, together with its date. A model that it does not know has no estimate.

use super::money::Usd;

/// The date of the table.
pub const PRICES_OF: &str = "2025-12-01";

/// The number of bytes of a prompt that are taken for a token.
const BYTES_PER_TOKEN: usize = 4;

/// The names of models, the beginnings of their versions, and the prices of a million input tokens in cents. The first
/// name that a model's contains counts.
const INPUT_CENTS_PER_MILLION: [(&str, u64); 12] = [
    ("haiku-4", 100),
    ("3-5-haiku", 80),
    ("3-haiku", 25),
    ("sonnet-4", 300),
    ("3-7-sonnet", 300),
    ("3-5-sonnet", 300),
    ("opus-4-5", 500),
    ("opus-4-1", 1500),
    ("opus-4-2", 1500),
    ("opus-4-0", 1500),
    ("3-opus", 1500),
    ("opus-4@", 1500),
];

/// The aliases that stand for a model of the table.
const ALIASES: [(&str, &str); 4] =
    [("haiku", "haiku-4"), ("sonnet", "sonnet-4"), ("opus", "opus-4-5"), ("opusplan", "sonnet-4")];

/// Returns about how many tokens a text has.
#[must_use]
pub fn estimated_tokens(text: &str) -> u64 {
    text.len().div_ceil(BYTES_PER_TOKEN) as u64
}

/// Returns the cost of input tokens; `None` for a model that the table does not know.
#[must_use]
pub fn input_cost(model: &str, tokens: u64) -> Option<Usd> {
    let name = model.to_ascii_lowercase();
    let name = name.split('[').next().unwrap_or_default();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    let known = INPUT_CENTS_PER_MILLION.iter().find(|(part, _)| name.contains(part));
    #[expect(clippy::cast_precision_loss, reason = "an estimate of a few cents")]
    known.map(|(_, cents)| Usd::from_dollars(*cents as f64 / 100.0 * tokens as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_models_have_a_price_and_others_none() {
        let price = |model: &str| input_cost(model, 1_000_000).map(Usd::dollars);
        let known = [
            ("haiku", 1.0),
            ("claude-haiku-4-5-20251001", 1.0),
            ("sonnet", 3.0),
            ("Sonnet[1m]", 3.0),
            ("claude-sonnet-4-5", 3.0),
            ("opus", 5.0),
            ("claude-opus-4-5", 5.0),
            ("claude-opus-4-1-20250805", 15.0),
            ("claude-opus-4-20250514", 15.0),
        ];
        for (model, dollars) in known {
            assert_eq!(price(model), Some(dollars), "{model}");
        }
        for model in ["gpt", "", "default", "claude-opus-9", "haiku-9"] {
            assert_eq!(price(model), None, "{model}");
        }
    }

    #[test]
    fn tokens_are_a_quarter_of_the_bytes() {
        assert_eq!([estimated_tokens(""), estimated_tokens("abcde")], [0, 2]);
    }
}
