//! The seven tags by name.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The ending of a tag's name that leads to a folder: `call-workflow` is `call`.
const WORKFLOW: &str = "-workflow";

/// The names of the seven tags.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "each is explained at `Transition`")]
pub enum TagName {
    Goto,
    Reset,
    Call,
    Function,
    Fork,
    Ask,
    Result,
}

impl TagName {
    /// All tags, in the order in which they are shown.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The names of the tags that lead to a folder, as other spellings.
    pub const OF_WORKFLOWS: [&str; 4] =
        ["call-workflow", "function-workflow", "fork-workflow", "reset-workflow"];

    /// Returns the name as it is written between the angle brackets.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the tag of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.strip_suffix(WORKFLOW) {
            None => name.parse().ok(),
            Some(short) => short.parse().ok().filter(|tag| {
                matches!(tag, Self::Call | Self::Function | Self::Fork | Self::Reset)
            }),
        }
    }

    /// Returns the text between the tags of this name: `call-workflow` names a folder also without a `/`.
    #[must_use]
    pub fn body_of<'text>(name: &str, body: &'text str) -> Cow<'text, str> {
        let path = body.trim();
        if name.ends_with(WORKFLOW) && !path.is_empty() && !path.contains(['/', '\\']) {
            return Cow::Owned(format!("{path}/"));
        }
        Cow::Borrowed(body)
    }

    /// Returns the attribute that this tag requires.
    #[must_use]
    pub fn required_attribute(self) -> Option<&'static str> {
        match self {
            Self::Call | Self::Function => Some("return"),
            Self::Fork | Self::Ask => Some("next"),
            Self::Goto | Self::Reset | Self::Result => None,
        }
    }
}
