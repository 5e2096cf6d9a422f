//! Proofs that raymond began a turn. Whoever can write into the directory of all turns can put a stream there
//! in which a turn has answered, before that turn begins.
//!
//! A process has its proof in a file beside its stream, which is there first; a further turn has it in the
//! file that says where it stands.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::domain::passage::Passage;
use crate::plain_file;
use crate::proof::ProofKey;

/// The longest file of a proof, in bytes.
const MAX_PROOF: u64 = 1024;

/// The kind of the proof that a process was started by raymond.
const PROCESS: &str = "process";

/// The kind of the proof that a turn was asked of a process.
const PASSAGE: &str = "passage";

/// What the beginnings of a run's turns are proven with; without a key, all are believed.
#[derive(Debug, Clone, Default)]
pub struct TurnProofs {
    /// A key for this run alone.
    pub key: Option<ProofKey>,
    /// The belief in turns without a proof: where the person who goes on with the run vouches for all of it.
    pub believes_unproven: bool,
}

/// A passage and its proof, side by side.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenPassage {
    #[serde(flatten)]
    passage: Passage,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proof: String,
}

impl TurnProofs {
    /// Writes the proof that a process is about to be started; without a key, nothing.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn prove_start(&self, process: &str, file: &Path) -> std::io::Result<()> {
        let Some(key) = &self.key else { return Ok(()) };
        let proof = key.proof(PROCESS, process.as_bytes());
        plain_file::create(file)?.write_all(proof.as_bytes())
    }

    /// Returns a passage with its proof, as it is stored.
    ///
    /// # Errors
    /// That it cannot be written as JSON.
    pub(super) fn stored_passage(
        &self,
        stem: &str,
        passage: &Passage,
    ) -> serde_json::Result<Vec<u8>> {
        let content = serde_json::to_vec(&(stem, passage))?;
        let proof = self.key.as_ref().map(|key| key.proof(PASSAGE, &content));
        let passage = passage.clone();
        serde_json::to_vec(&ProvenPassage { passage, proof: proof.unwrap_or_default() })
    }

    /// Returns whether a stored passage is that of the turn, as raymond wrote it; `None` if it is no passage.
    pub(super) fn hold_passage(&self, stem: &str, stored: &[u8]) -> Option<bool> {
        let ProvenPassage { passage, proof } = serde_json::from_slice(stored).ok()?;
        let Some(key) = self.needed_key() else { return Some(true) };
        let content = serde_json::to_vec(&(stem, &passage)).unwrap_or_default();
        Some(key.holds(PASSAGE, &content, &proof))
    }

    /// Returns whether a file proves that raymond started the process.
    pub(super) fn hold_start(&self, process: &str, file: &Path) -> bool {
        let Some(key) = self.needed_key() else { return true };
        let proof = plain_file::read(file, MAX_PROOF).unwrap_or_default();
        key.holds(PROCESS, process.as_bytes(), &String::from_utf8_lossy(&proof))
    }

    fn needed_key(&self) -> Option<&ProofKey> {
        self.key.as_ref().filter(|_| !self.believes_unproven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::MessageId;
    use crate::domain::usage::Spent;

    fn proofs(key: &str) -> TurnProofs {
        TurnProofs { key: Some(ProofKey::new(key)), believes_unproven: false }
    }

    #[test]
    fn start_is_proven_by_who_has_the_key_for_one_process() {
        let steps = tempfile::tempdir().expect("a directory");
        let file = steps.path().join("main-1-0.begun");
        assert!(!proofs("k").hold_start("main-1-0", &file), "nothing is there");
        assert!(TurnProofs::default().hold_start("main-1-0", &file));
        assert!(TurnProofs { believes_unproven: true, ..proofs("k") }.hold_start("x", &file));
        proofs("k").prove_start("main-1-0", &file).expect("written");
        assert!(proofs("k").hold_start("main-1-0", &file));
        assert!(!proofs("l").hold_start("main-1-0", &file), "another key");
        assert!(!proofs("k").hold_start("main-2-0", &file), "another process");
    }

    #[test]
    fn passage_is_proven_for_one_turn_and_its_content() {
        let (process, message) = ("main-1-0".to_owned(), MessageId::new("m"));
        let passage = Passage { process, from: 7, spent: Spent::default(), message };
        let stored = proofs("k").stored_passage("main-2-0", &passage).expect("JSON");
        let hold = |key: &str, stem: &str, stored: &[u8]| proofs(key).hold_passage(stem, stored);
        assert_eq!(hold("k", "main-2-0", &stored), Some(true));
        assert_eq!(hold("l", "main-2-0", &stored), Some(false));
        assert_eq!(hold("k", "main-3-0", &stored), Some(false));
        let changed = String::from_utf8(stored).expect("text").replace(":7", ":8");
        assert_eq!(hold("k", "main-2-0", changed.as_bytes()), Some(false));
        let plain = serde_json::to_vec(&passage).expect("JSON");
        assert_eq!(hold("k", "main-2-0", &plain), Some(false));
        assert_eq!(TurnProofs::default().hold_passage("main-2-0", &plain), Some(true));
        assert_eq!(hold("k", "main-2-0", b"{"), None);
    }
}
