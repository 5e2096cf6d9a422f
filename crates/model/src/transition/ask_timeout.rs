//! The timeout of a question: `timeout` and `timeout_next` of an `<ask>`, both or neither.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidTransition, TagName, Variables};
use crate::id::StateName;
use crate::time::millis;

/// The timeout of a question, and the state that follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AskTimeout {
    /// The longest wait, in milliseconds.
    pub timeout_ms: u64,
    /// The state that is entered if no answer came.
    pub timeout_next: StateName,
}

/// Takes the timeout of an `<ask>` out of its attributes.
pub(super) fn take(variables: &mut Variables) -> Result<Option<AskTimeout>, InvalidTransition> {
    let half = |missing, given| {
        InvalidTransition::AskTimeout(format!(
            "{given} needs {missing} beside it, and the other way round"
        ))
    };
    match (variables.remove("timeout"), variables.remove("timeout_next")) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(half("timeout_next=\"FILE.md\"", "timeout")),
        (None, Some(_)) => Err(half("timeout=\"24h\"", "timeout_next")),
        (Some(timeout), Some(next)) => {
            let timeout_ms = millis(&timeout)
                .map_err(|why| InvalidTransition::AskTimeout(format!("timeout: {why}")))?;
            let timeout_next = StateName::parse(&next)
                .map_err(|error| InvalidTransition::Target { tag: TagName::Ask, error })?;
            Ok(Some(AskTimeout { timeout_ms, timeout_next }))
        }
    }
}
