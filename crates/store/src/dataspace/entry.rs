//! The entries of the change log: each one carries a whole change, so that it can be applied again.
//!
//! An entry is believed only as far as its proof goes: agents can write into the log.

use serde::{Deserialize, Serialize};

use super::FACT;
use super::fact_file::FactFile;
use super::step::{DataspaceStep, FactOperation, IdempotencyKey};
use crate::dataspace::fact_file;
use crate::dataspace::fact_file::ProvenValue;
use crate::proof::ProofKey;
use raymond_model::id::RunId;

/// A fact as its file has it.
pub(super) type ProvenFact = ProvenValue<FactFile>;

/// An entry: its number, the label and the key of the fact, and the change. An entry of a raymond that wrote no
/// changes says only which fact to read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangeLogEntry(
    pub(super) u64,
    pub(super) String,
    pub(super) String,
    #[serde(default)] pub(super) Option<LoggedChange>,
);

/// A change of the dataspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LoggedChange {
    /// The fact is asserted, by a step or by somebody else.
    Asserted {
        fact: ProvenFact,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<DataspaceStep>,
    },
    /// The fact with this number is retracted.
    Retracted {
        seq: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<DataspaceStep>,
    },
    /// The fact is taken by a step. The next value holds then, if there is one.
    Claimed {
        fact: ProvenFact,
        step: DataspaceStep,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<ProvenFact>,
    },
    /// The run has ended: its marks and claims are removed. The entry has no label and no key.
    RunEnded { run: RunId },
    /// Nothing; but readers have to read the fact again.
    Reread {},
}

impl ChangeLogEntry {
    /// Returns the step that makes the change.
    pub(super) fn step(&self) -> Option<&DataspaceStep> {
        match self.3.as_ref()? {
            LoggedChange::Asserted { step, .. } | LoggedChange::Retracted { step, .. } => {
                step.as_ref()
            }
            LoggedChange::Claimed { step, .. } => Some(step),
            LoggedChange::RunEnded { .. } | LoggedChange::Reread {} => None,
        }
    }

    /// Returns the mark that the change leaves, and the step it is of.
    pub(super) fn mark(&self) -> Option<(&DataspaceStep, IdempotencyKey)> {
        let Self(_, label, key, change) = self;
        let (operation, seq) = match change.as_ref()? {
            LoggedChange::Asserted { fact, .. } => (FactOperation::Assert, fact.value.seq),
            LoggedChange::Retracted { seq, .. } => (FactOperation::Retract, *seq),
            LoggedChange::Claimed { .. }
            | LoggedChange::RunEnded { .. }
            | LoggedChange::Reread {} => return None,
        };
        let step = self.step()?;
        let (label, key) = (label.clone(), key.clone());
        Some((step, IdempotencyKey { step: step.step, operation, label, key, seq }))
    }

    /// Returns whether the change may be applied: its names lead to places of facts, and its fact is the one of the
    /// entry, of a valid size, and proven if there is a key.
    pub(super) fn is_believed(&self, proof_key: Option<&ProofKey>) -> bool {
        let Self(seq, label, key, change) = self;
        let is_named = || fact_file::of_label(label).is_ok() && fact_file::of_key(key).is_ok();
        let is_sound = |fact: &ProvenFact| {
            (&fact.value.label, &fact.value.key) == (label, key)
                && fact_file::check_value(label, key, &fact.value.value).is_ok()
                && fact.believed(proof_key, FACT).is_ok()
        };
        match change {
            None | Some(LoggedChange::RunEnded { .. } | LoggedChange::Reread {}) => true,
            Some(LoggedChange::Asserted { fact, .. }) => {
                is_named() && fact.value.last_seq() == *seq && is_sound(fact)
            }
            Some(LoggedChange::Retracted { .. }) => is_named(),
            Some(LoggedChange::Claimed { fact, next, .. }) => {
                is_named() && is_sound(fact) && next.as_ref().is_none_or(is_sound)
            }
        }
    }
}
