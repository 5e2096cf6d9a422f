//! The evaluation of a transition before it is taken: by a pattern, or by a separate turn.
//!
//! A state may name an evaluator. A pattern judges at once. A prompt is a separate turn in the same step, in a fresh
//! session. The requested transition is recorded first, as a [`TransitionProposal`], so the evaluator's turn is as
//! durable as any other: a lost turn is run again, a paid turn never is. The step ends with that turn, regardless of
//! the answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::StateName;
use super::session::Session;
use super::transition::Transition;

/// The transition an agent asked for, while its evaluator checks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitionProposal {
    pub transition: Transition,
    /// The reply had no tag and the policy left only one way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// The reply that asked for it, or the end of a long one.
    pub output: String,
    /// The evaluator's prompt.
    pub evaluator: StateName,
    /// The session the evaluator's turn runs in.
    pub session: Session,
}

/// A transition that was taken instead of the one an agent asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OverruledTransition {
    /// The transition the agent asked for; `None` if it was not asked at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Transition>,
    /// The evaluator or plug-in that overruled it: `the evaluator CHECK.md`, `the plug-in budget`.
    pub by: String,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The maximum part of a reply that an evaluator is shown, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// Returns the end of a reply, which an evaluator is shown: the tag is usually near it.
pub fn shown_output(reply: &str) -> &str {
    let start = reply.ceil_char_boundary(reply.len().saturating_sub(MAX_OUTPUT_BYTES));
    &reply[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reply_is_truncated_to_its_tail() {
        let long = "é".repeat(MAX_OUTPUT_BYTES);
        let shown = shown_output(&long);
        assert!(shown.len() <= MAX_OUTPUT_BYTES && long.ends_with(shown));
        assert_eq!(shown_output("short"), "short");
    }
}
