//! Branches: a run that shares the records of another up to one of them, and continues differently.
//!
//! It may be cut as a whole, or before steps of some agents: then the later records that do not follow from these steps
//! are in it, too, in the same order.
//!
//! The agents that lived at that record live in the new run, each in sessions of its own that begin at the last message
//! before it. The other run is not changed. A turn that was running then is asked again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fact::{Fact, FactChange, KnownFacts};
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
    /// The number of the fact that held at the cut in its place. It is gone since, and the run can still take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<u64>,
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
    /// Returns the name of a change against the facts that were known at the cut.
    pub fn of(change: &FactChange, known: &KnownFacts) -> Self {
        let (label, key, seq) = match change {
            FactChange::Asserted(fact) => (&fact.label, &fact.key, Some(fact.seq)),
            FactChange::Retracted { label, key } => (label, key, None),
        };
        let gone = known.get(label, Some(key)).map(|fact| fact.seq);
        Self { label: label.clone(), key: key.clone(), seq, gone }
    }

    fn is_of(&self, label: &str, key: &str) -> bool {
        self.label == label && self.key == key
    }
}

impl BranchOrigin {
    /// Returns whether the run does not see a change; `known` are the facts that it sees.
    pub fn hides(&self, change: &FactChange, known: &KnownFacts) -> bool {
        let is_hidden = |own: &HiddenChange| match change {
            FactChange::Asserted(fact) => {
                own.is_of(&fact.label, &fact.key) && own.seq == Some(fact.seq)
            }
            FactChange::Retracted { label, key } => {
                // The fact that held at the cut is gone for others only. One that came later is gone for all.
                let seen = || known.get(label, Some(key)).map(|fact| fact.seq);
                own.is_of(label, key)
                    && match own.gone {
                        Some(gone) => seen() == Some(gone),
                        None => own.seq.is_none(),
                    }
            }
        };
        self.hidden.iter().any(is_hidden)
    }

    /// Returns whether a fact held at the cut and is gone since, so that only this run can take it.
    pub fn keeps(&self, fact: &Fact) -> bool {
        let is_kept =
            |own: &HiddenChange| own.is_of(&fact.label, &fact.key) && own.gone == Some(fact.seq);
        self.hidden.iter().any(is_kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn fact(seq: u64) -> Fact {
        Fact {
            label: "a".to_owned(),
            key: "k".to_owned(),
            value: seq.to_string(),
            seq,
            source: "signal".to_owned(),
            at: Timestamp(seq),
        }
    }

    fn retracted() -> FactChange {
        FactChange::Retracted { label: "a".to_owned(), key: "k".to_owned() }
    }

    fn origin(change: &FactChange, known: &KnownFacts) -> BranchOrigin {
        BranchOrigin {
            run: RunId::parse("r").expect("an id"),
            seq: 1,
            kept: 0,
            reply: None,
            hidden: vec![HiddenChange::of(change, known)],
        }
    }

    #[test]
    fn fact_that_is_gone_since_the_cut_stays_until_another_comes() {
        let mut known = KnownFacts::default();
        known.change(&FactChange::Asserted(fact(3)));
        let taken = origin(&retracted(), &known);
        assert!(taken.hides(&retracted(), &known) && taken.keeps(&fact(3)));
        assert!(!taken.keeps(&fact(9)) && !taken.hides(&FactChange::Asserted(fact(9)), &known));
        known.change(&FactChange::Asserted(fact(9)));
        assert!(!taken.hides(&retracted(), &known), "the later one is gone for all");
    }

    #[test]
    fn fact_that_was_replaced_since_the_cut_stays_though_the_other_goes() {
        let mut known = KnownFacts::default();
        known.change(&FactChange::Asserted(fact(3)));
        let replaced = origin(&FactChange::Asserted(fact(9)), &known);
        assert!(replaced.hides(&FactChange::Asserted(fact(9)), &known));
        assert!(replaced.hides(&retracted(), &known) && replaced.keeps(&fact(3)));
        let unknown = origin(&FactChange::Asserted(fact(9)), &KnownFacts::default());
        assert!(!unknown.hides(&retracted(), &KnownFacts::default()) && !unknown.keeps(&fact(9)));
    }
}
