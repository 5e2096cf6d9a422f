//! A fact as its file and the change log have it: with the further values that wait behind the present one.

use serde::{Deserialize, Serialize};

use super::InvalidFact;
use super::name::MAX_FACT_BYTES;
use crate::domain::fact::Fact;
use crate::domain::time::Timestamp;

/// The most values that wait behind one.
const MAX_LATER: usize = 1000;

/// A fact, and the values that follow it, each once the one before is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FactFile {
    pub(super) label: String,
    pub(super) key: String,
    pub(super) value: String,
    pub(super) seq: u64,
    pub(super) source: String,
    #[serde(default)]
    pub(super) at: Timestamp,
    /// The values after this one, in the order in which they were appended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) later: Vec<LaterValue>,
}

/// A value that waits behind another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LaterValue {
    pub(super) value: String,
    pub(super) seq: u64,
    pub(super) source: String,
    pub(super) at: Timestamp,
}

impl FactFile {
    /// Returns the fact that holds.
    pub(super) fn fact(&self) -> Fact {
        self.clone().into()
    }

    /// Returns the number of the last change of the fact.
    pub(super) fn last_seq(&self) -> u64 {
        self.later.last().map_or(self.seq, |last| last.seq)
    }

    /// Returns the file with a further value.
    ///
    /// # Errors
    /// [`InvalidFact::Full`] if too many values wait, or too long ones.
    pub(super) fn followed_by(mut self, value: LaterValue) -> Result<Self, InvalidFact> {
        let bytes: usize = self.later.iter().map(|later| later.value.len()).sum();
        if self.later.len() >= MAX_LATER || bytes + value.value.len() > MAX_FACT_BYTES {
            return Err(InvalidFact::Full { label: self.label, key: self.key });
        }
        self.later.push(value);
        Ok(self)
    }

    /// Returns the file once its value is taken; `None` if no value waits.
    pub(super) fn without_first(&self) -> Option<Self> {
        let (first, later) = self.later.split_first()?;
        let LaterValue { value, seq, source, at } = first.clone();
        let (label, key) = (self.label.clone(), self.key.clone());
        Some(Self { label, key, value, seq, source, at, later: later.to_vec() })
    }
}

impl From<Fact> for FactFile {
    fn from(fact: Fact) -> Self {
        let Fact { label, key, value, seq, source, at } = fact;
        Self { label, key, value, seq, source, at, later: Vec::new() }
    }
}

impl From<FactFile> for Fact {
    fn from(file: FactFile) -> Self {
        let FactFile { label, key, value, seq, source, at, later: _ } = file;
        Self { label, key, value, seq, source, at }
    }
}
