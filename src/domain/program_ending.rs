//! The end of a program, while it waits until it is published.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramEnding {
    /// The result.
    pub payload: String,
    /// The error, if it ended with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
