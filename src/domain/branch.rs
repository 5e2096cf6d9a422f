//! Branches: a run that shares the records of another up to one of them, and continues differently.
//!
//! It may be cut as a whole, or before steps of some agents: then the later records that do not follow from these steps
//! are in it, too, in the same order.
//!
//! The agents that lived at that record live in the new run, each in sessions of its own that begin at the last message
//! before it. The other run is not changed. A turn that was running then is asked again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fact::FactChange;
use super::id::{AgentId, RunId, SessionId};

/// The place where a run branched off another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchOrigin {
    /// The other run.
    pub run: RunId,
    /// The number of the last record that both share.
    pub seq: u64,
    /// The number of later records of the other run that do not follow from the cut, and are in this run, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept: u64,
    /// The reply that a person has given in the place of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<GivenReply>,
    /// The changes of facts after that record and before the branch, which the run does not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenChange>,
}

/// A reply that a person has given in the place of a turn: it is judged as one, and costs nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenReply {
    /// The agent.
    pub agent: AgentId,
    /// The number of its step.
    pub step: u64,
    /// The text of the reply.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A change of a fact that a branch does not see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HiddenChange {
    /// The label of the fact.
    pub label: String,
    /// The key of the fact.
    pub key: String,
    /// The number of the fact that was asserted; `None` if it was retracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// An agent of a branch, and the ids of its sessions from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchedAgent {
    /// The agent.
    pub agent: AgentId,
    /// The session of its next turn, and those of its pending returns, the outermost first.
    pub sessions: Vec<SessionId>,
}

impl HiddenChange {
    /// Returns the name of a change.
    #[must_use]
    pub fn of(change: &FactChange) -> Self {
        match change {
            FactChange::Asserted(fact) => {
                Self { label: fact.label.clone(), key: fact.key.clone(), seq: Some(fact.seq) }
            }
            FactChange::Retracted { label, key } => {
                Self { label: label.clone(), key: key.clone(), seq: None }
            }
        }
    }
}

impl BranchOrigin {
    /// Returns whether the run does not see a change.
    #[must_use]
    pub fn hides(&self, change: &FactChange) -> bool {
        !self.hidden.is_empty() && self.hidden.contains(&HiddenChange::of(change))
    }
}
