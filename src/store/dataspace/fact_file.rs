//! A fact as its file and the change log have it: with the further values that wait behind the present one.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::domain::fact::Fact;
use crate::domain::json_mistake::placed_mistake;
use crate::domain::time::Timestamp;
use crate::proof::ProofKey;
use crate::store::dataspace::InvalidFact;
use crate::store::dataspace::name::MAX_FACT_BYTES;

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

/// A value and its proof, side by side, so that people read it as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProvenValue<T> {
    #[serde(flatten)]
    pub(super) value: T,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proof: String,
}

impl<T: Serialize> ProvenValue<T> {
    /// Returns a value with its proof; without a key there is no proof.
    pub(super) fn new(value: T, key: Option<&ProofKey>, purpose: &str) -> serde_json::Result<Self> {
        let proof = key.map_or(Ok(String::new()), |key| {
            Ok::<_, serde_json::Error>(key.proof(purpose, &serde_json::to_vec(&value)?))
        });
        Ok(Self { value, proof: proof? })
    }

    /// Refuses a value whose proof does not hold; without a key, no value is refused.
    pub(super) fn believed(&self, key: Option<&ProofKey>, purpose: &str) -> Result<(), String> {
        let Some(key) = key else { return Ok(()) };
        let content = serde_json::to_vec(&self.value).map_err(|error| placed_mistake(&error))?;
        if key.holds(purpose, &content, &self.proof) {
            return Ok(());
        }
        Err("it has no proof that you or your runs wrote it".to_owned())
    }
}

impl<T: Serialize + DeserializeOwned> ProvenValue<T> {
    /// Reads a value whose proof holds, and keeps the proof.
    pub(super) fn read(
        bytes: &[u8],
        key: Option<&ProofKey>,
        purpose: &str,
    ) -> Result<Self, String> {
        let proven =
            serde_json::from_slice::<Self>(bytes).map_err(|error| placed_mistake(&error))?;
        proven.believed(key, purpose)?;
        Ok(proven)
    }
}

/// Writes a value with its proof; without a key there is no proof.
pub(super) fn close<T: Serialize>(
    value: &T,
    key: Option<&ProofKey>,
    purpose: &str,
) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&ProvenValue::new(value, key, purpose)?)
}

/// Reads a value whose proof holds; without a key, reads the value as it is.
pub(super) fn open<T: Serialize + DeserializeOwned>(
    bytes: &[u8],
    key: Option<&ProofKey>,
    purpose: &str,
) -> Result<T, String> {
    ProvenValue::read(bytes, key, purpose).map(|proven| proven.value)
}

#[cfg(test)]
mod proof_tests {
    use super::*;

    #[test]
    fn value_without_valid_proof_is_refused() {
        let (key, other) = (ProofKey::new("k"), ProofKey::new("l"));
        let value = serde_json::json!({"label": "a", "value": "b"});
        let written = close(&value, Some(&key), "fact").expect("written");
        let read = |bytes: &[u8], key| open::<serde_json::Value>(bytes, key, "fact");
        assert_eq!(read(&written, Some(&key)), Ok(value.clone()));
        assert_eq!(read(&written, None), Ok(value.clone()));
        assert!(read(&written, Some(&other)).is_err());
        let plain = serde_json::to_vec(&value).expect("written");
        assert_eq!(read(&plain, None), Ok(value));
        let why = read(&plain, Some(&key)).expect_err("not proven");
        assert_eq!(why, "it has no proof that you or your runs wrote it");
        let forged = String::from_utf8(written).expect("text").replace("\"b\"", "\"c\"");
        assert!(read(forged.as_bytes(), Some(&key)).is_err());
    }
}
