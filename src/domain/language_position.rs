//! The position of an agent in a state whose language alone reads it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A position in a state, as the interpreter of its language wrote it. Graphs and programs have positions of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LanguagePosition {
    /// The language: the name of its kind of states.
    pub language: String,
    /// The position.
    pub position: Value,
}
