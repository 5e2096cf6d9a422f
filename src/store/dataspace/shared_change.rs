//! A change of a fact as machines share it: without a proof, since each machine has a key of its own. Pure.

use serde::{Deserialize, Serialize};

use super::FACT;
use super::entry::{ChangeLogEntry, LoggedChange, ProvenFact};
use crate::domain::json_mistake::placed_mistake;
use crate::proof::ProofKey;

/// The version of [`SharedFactChange`].
const VERSION: u32 = 1;

/// A change that machines share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedFactChange {
    version: u32,
    /// A word that no other change has.
    id: String,
    label: String,
    key: String,
    change: LoggedChange,
}

/// The part that each version has.
#[derive(Deserialize)]
struct ChangeVersion {
    version: u32,
}

impl SharedFactChange {
    /// Returns the text of a change.
    pub(super) fn text(id: &str, entry: &ChangeLogEntry) -> serde_json::Result<String> {
        let ChangeLogEntry(_, label, key, change) = entry;
        let change = change.clone().unwrap_or(LoggedChange::Reread {});
        serde_json::to_string(&Self {
            version: VERSION,
            id: id.to_owned(),
            label: label.clone(),
            key: key.clone(),
            change: with_proofs(change, None)?,
        })
    }

    /// Returns the entry of a change with the proofs of this machine.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn entry(
        number: u64,
        text: &str,
        own: Option<&ProofKey>,
    ) -> Result<ChangeLogEntry, String> {
        let mistake = |error| placed_mistake(&error);
        let ChangeVersion { version } = serde_json::from_str(text).map_err(mistake)?;
        if version > VERSION {
            return Err(format!(
                "it has version {version}, and this raymond reads versions up to {VERSION}: use the raymond that the other machines use"
            ));
        }
        let Self { label, key, change, .. } = serde_json::from_str(text).map_err(mistake)?;
        let change = with_proofs(change, own).map_err(mistake)?;
        let entry = ChangeLogEntry(number, label, key, Some(change));
        if entry.is_believed(own) {
            Ok(entry)
        } else {
            Err("it is not a change of a fact".to_owned())
        }
    }
}

/// Returns a change whose facts bear proofs by this key, or none.
fn with_proofs(change: LoggedChange, key: Option<&ProofKey>) -> serde_json::Result<LoggedChange> {
    let proven = |fact: ProvenFact| ProvenFact::new(fact.value, key, FACT);
    Ok(match change {
        LoggedChange::Asserted { fact, step } => {
            LoggedChange::Asserted { fact: proven(fact)?, step }
        }
        LoggedChange::Claimed { fact, step, next } => {
            let next = next.map(proven).transpose()?;
            LoggedChange::Claimed { fact: proven(fact)?, step, next }
        }
        LoggedChange::Retracted { .. }
        | LoggedChange::RunEnded { .. }
        | LoggedChange::Reread {} => change,
    })
}
