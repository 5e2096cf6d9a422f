//! Names of models, as Claude Code takes them.
//!
//! The set of models changes with every version of Claude Code, and an account may have models of its
//! own. Any name is accepted that can stand on a command line; the known ones serve only for hints.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
