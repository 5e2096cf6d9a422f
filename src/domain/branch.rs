//! Branches: a run that shares the records of another up to one of them, and continues differently.
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
    /// The changes of facts after that record and before the branch, which the run does not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenChange>,
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
