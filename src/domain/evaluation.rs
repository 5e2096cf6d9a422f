//! A second look at a transition before it is taken: by a pattern, or by a turn of its own.
//!
//! A state may name an evaluator. A pattern judges at once. A prompt is a turn of its own in the same
//! step, in a fresh session: what the agent asked for is recorded first, as a [`TransitionProposal`], so the
//! evaluator's turn is as durable as any other: it is run again when it is lost, never when it was
//! paid for. Whatever it answers, the step ends with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::StateName;
use super::session::Session;
use super::transition::Transition;

/// What an agent asked for, while its evaluator looks at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitionProposal {
    /// The transition.
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
    /// What the agent asked for; absent, if it was not asked at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Transition>,
    /// Who overruled it: `the evaluator CHECK.md`, `the plug-in budget`.
    pub by: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// How much of a reply an evaluator is shown at the most, in bytes.
pub const LONGEST_OUTPUT: usize = 64 * 1024;

/// The end of a reply, which an evaluator is shown: the tag stands near it as a rule.
#[must_use]
pub fn shown_output(reply: &str) -> &str {
    let start = reply.ceil_char_boundary(reply.len().saturating_sub(LONGEST_OUTPUT));
    &reply[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reply_is_shown_from_its_end() {
        let long = "é".repeat(LONGEST_OUTPUT);
        let shown = shown_output(&long);
        assert!(shown.len() <= LONGEST_OUTPUT && long.ends_with(shown));
        assert_eq!(shown_output("short"), "short");
    }
}
