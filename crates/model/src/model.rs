//! Names of models, as Claude Code takes them, and the prices of their input.
//!
//! The set of models changes with every version of Claude Code, and an account may have its own models. Any name is
//! accepted that can stand on a command line; the known names serve only for hints.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::money::Usd;

/// The name or alias of a model: one word without control characters that does not begin with a dash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ModelName(Cow<'static, str>);

impl ModelName {
    /// The cheapest of the models with an alias.
    pub const HAIKU: Self = Self(Cow::Borrowed("haiku"));

    /// Reads the name of a model.
    ///
    /// # Errors
    /// [`InvalidModelName`] if the text cannot be one.
    pub fn parse(name: &str) -> Result<Self, InvalidModelName> {
        let is_word = !name.chars().any(|c| c.is_whitespace() || c.is_control());
        if name.is_empty() || name.starts_with('-') || !is_word {
            return Err(InvalidModelName(name.to_owned()));
        }
        Ok(Self(Cow::Owned(name.to_owned())))
    }

    /// Returns the name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.0.into_owned()
    }
}

impl TryFrom<String> for ModelName {
    type Error = InvalidModelName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::parse(&name)
    }
}

/// A text that cannot be the name of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be the name of a model; write one word, such as opus, sonnet, haiku or a full name"
)]
pub struct InvalidModelName(String);

// The prices of models, for an estimate before a run starts. What a turn has cost is what Claude Code reports.
//
// The table is changed by hand, together with its date. A model that it does not know has no estimate.

/// The date of the table: its prices are those of Claude Code 2.1.330.
pub const PRICES_OF: &str = "2026-11-25";

/// The number of bytes of a prompt that are taken for a token.
const BYTES_PER_TOKEN: usize = 4;

/// The price of a model's input.
struct InputPrice {
    /// The model, without the maker's name and without a date.
    model: &'static str,
    /// The price of a million tokens, in cents.
    cents: u64,
    /// The number of tokens above which a prompt has another price, and that price.
    long: Option<(u64, u64)>,
}

const fn price(model: &'static str, cents: u64) -> InputPrice {
    InputPrice { model, cents, long: None }
}

/// The prices of the models.
const INPUT_PRICES: [InputPrice; 25] = [
    price("3-haiku", 25),
    price("3-5-haiku", 80),
    price("haiku-4-5", 100),
    InputPrice { model: "haiku-5-5", cents: 10, long: Some((100_000, 50)) },
    price("3-5-sonnet", 300),
    price("3-7-sonnet", 300),
    price("sonnet-4", 300),
    price("sonnet-4-0", 300),
    price("sonnet-4-5", 300),
    price("sonnet-4-6", 300),
    price("sonnet-5", 200),
    price("sonnet-5-5", 200),
    price("3-opus", 1500),
    price("opus-4", 1500),
    price("opus-4-0", 1500),
    price("opus-4-1", 1500),
    price("opus-4-5", 500),
    price("opus-4-6", 500),
    price("opus-4-7", 500),
    price("opus-4-8", 500),
    price("opus-5", 500),
    price("opus-5-5", 400),
    price("fable-5", 1000),
    price("fable-5-1", 1000),
    price("fable-5-2", 800),
];

/// The aliases that stand for a model of the table, at Anthropic's own service.
const ALIASES: [(&str, &str); 6] = [
    ("best", "opus-5-5"),
    ("haiku", "haiku-5-5"),
    ("sonnet", "sonnet-5-5"),
    ("opus", "opus-5-5"),
    ("opusplan", "sonnet-5-5"),
    ("fable", "fable-5-2"),
];

/// Returns about how many tokens a text has.
pub fn estimated_tokens(text: &str) -> u64 {
    text.len().div_ceil(BYTES_PER_TOKEN) as u64
}

/// Returns the cost of input tokens; `None` for a model that the table does not know.
pub fn input_cost(model: &str, tokens: u64) -> Option<Usd> {
    let name = model.to_ascii_lowercase();
    let name = name.split('[').next().unwrap_or_default();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    let known = INPUT_PRICES.iter().find(|price| is_named(name, price.model))?;
    let long = known.long.filter(|(above, _)| tokens > *above);
    let cents = long.map_or(known.cents, |(_, cents)| cents);
    #[expect(clippy::cast_precision_loss, reason = "an estimate of a few cents")]
    Some(Usd::from_dollars(cents as f64 / 100.0 * tokens as f64 / 1e6))
}

/// Returns whether a full name is that of a model: the maker's name may stand before it and a date behind it, but no
/// further number of a version.
fn is_named(name: &str, model: &str) -> bool {
    let Some((_, rest)) = name.split_once(model) else { return false };
    let Some(rest) = rest.strip_prefix('-') else {
        return !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    digits == 0 || digits >= 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_name_is_stored_as_its_text() {
        let name = ModelName::parse("opus").expect("a name");
        assert_eq!(serde_json::to_string(&name).expect("written"), "\"opus\"");
        let read: ModelName = serde_json::from_str("\"claude-x-1[1m]\"").expect("read");
        assert_eq!(read.as_str(), "claude-x-1[1m]");
        assert_eq!(ModelName::HAIKU, ModelName::parse("haiku").expect("a name"));
    }

    #[test]
    fn model_name_with_space_or_leading_dash_is_rejected() {
        for text in ["", "two words", "--model", "a\nb", "a\u{7}"] {
            assert!(ModelName::parse(text).is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<ModelName>("\"-x\"").is_err());
    }
}

#[cfg(test)]
mod price_table_tests {
    use super::*;

    #[test]
    fn known_models_have_a_price_and_others_none() {
        let price = |model: &str| input_cost(model, 1_000_000).map(Usd::dollars);
        let known = [
            ("claude-3-5-haiku-20241022", 0.8),
            ("claude-haiku-4-5-20251001", 1.0),
            ("haiku", 0.5),
            ("sonnet", 2.0),
            ("Sonnet[1m]", 2.0),
            ("claude-sonnet-4-5", 3.0),
            ("claude-sonnet-4-20250514", 3.0),
            ("claude-sonnet-5", 2.0),
            ("opus", 4.0),
            ("claude-opus-5", 5.0),
            ("us.anthropic.claude-opus-4-5-20251101-v1:0", 5.0),
            ("claude-opus-4-8", 5.0),
            ("claude-opus-4-1-20250805", 15.0),
            ("claude-opus-4-20250514", 15.0),
            ("claude-opus-4@20250514", 15.0),
            ("claude-fable-5-2", 8.0),
        ];
        for (model, dollars) in known {
            assert_eq!(price(model), Some(dollars), "{model}");
        }
        for model in
            ["gpt", "", "default", "claude-opus-9", "haiku-9", "claude-opus-5-6", "claude-opus-50"]
        {
            assert_eq!(price(model), None, "{model}");
        }
        let short = input_cost("haiku", 100_000).map(Usd::dollars);
        assert_eq!(short, Some(0.01), "a long prompt has another price");
    }

    #[test]
    fn tokens_are_a_quarter_of_the_bytes() {
        assert_eq!([estimated_tokens(""), estimated_tokens("abcde")], [0, 2]);
    }
}
