//! Proofs that raymond began a turn. Whoever can write into the directory of all turns can put a stream there
//! in which a turn has answered, before that turn begins.
//!
//! A process has its proof in a file beside its stream, which is there first; a further turn has it in the
//! file that says where it stands.

use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::transcript::{ProcessFiles, TurnFiles};
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
    /// Proves that a process is about to be started.
    ///
    /// # Errors
    /// The file, and what the system said.
    pub(super) fn prove(&self, files: &ProcessFiles) -> Result<(), (PathBuf, std::io::Error)> {
        let Some(key) = &self.key else { return Ok(()) };
        let proof = key.proof(PROCESS, files.name.as_bytes());
        let written =
            plain_file::create(&files.begun).and_then(|mut file| file.write_all(proof.as_bytes()));
        written.map_err(|error| (files.begun.clone(), error))
    }

    /// Returns what is kept of where a turn stands.
    ///
    /// # Errors
    /// That it cannot be written as JSON.
    pub(super) fn close(&self, stem: &str, passage: &Passage) -> serde_json::Result<Vec<u8>> {
        let content = serde_json::to_vec(&(stem, passage))?;
        let proof = self.key.as_ref().map(|key| key.proof(PASSAGE, &content));
        let passage = passage.clone();
        serde_json::to_vec(&ProvenPassage { passage, proof: proof.unwrap_or_default() })
    }

    /// Returns whether raymond began a turn whose files are there.
    pub(super) fn hold(&self, stem: &str, files: &TurnFiles) -> bool {
        let Some(key) = self.key.as_ref().filter(|_| !self.believes_unproven) else { return true };
        let passage = files.read_passage();
        let passage = passage.and_then(|text| serde_json::from_slice::<ProvenPassage>(&text).ok());
        if let Some(ProvenPassage { passage, proof }) = passage {
            let content = serde_json::to_vec(&(stem, &passage)).unwrap_or_default();
            return key.holds(PASSAGE, &content, &proof);
        }
        let proof = plain_file::read(&files.begun, MAX_PROOF).unwrap_or_default();
        key.holds(PROCESS, stem.as_bytes(), &String::from_utf8_lossy(&proof))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{AgentId, MessageId};
    use crate::domain::turn::TurnId;
    use crate::domain::usage::Spent;

    fn proofs(key: &str) -> TurnProofs {
        TurnProofs { key: Some(ProofKey::new(key)), believes_unproven: false }
    }

    #[test]
    fn turn_is_believed_that_who_has_the_key_began() {
        let steps = tempfile::tempdir().expect("a directory");
        let turn = |step| TurnId { agent: AgentId::main(), step, turn: 0 };
        let (first, second) = (turn(1), turn(2));
        let files = [&first, &second].map(|turn| TurnFiles::of(steps.path(), turn));
        let process = ProcessFiles::named(steps.path(), &first.stem());
        let stream = process.create(None).expect("made").stdout;
        drop(stream);
        assert!(!proofs("k").hold(&first.stem(), &files[0]), "planted");
        assert!(TurnProofs::default().hold(&first.stem(), &files[0]));
        assert!(TurnProofs { believes_unproven: true, ..proofs("k") }.hold("x", &files[0]));
        proofs("k").prove(&process).expect("written");
        assert!(proofs("k").hold(&first.stem(), &files[0]));
        assert!(!proofs("l").hold(&first.stem(), &files[0]));
        let copied = steps.path().join(format!("{}.begun", second.stem()));
        std::fs::copy(&process.begun, copied).expect("copied");
        assert!(!proofs("k").hold(&second.stem(), &files[1]), "of another turn");
        let message = MessageId::new("m");
        let passage = Passage { process: first.stem(), from: 7, spent: Spent::default(), message };
        files[1].note(&passage, &proofs("k")).expect("noted");
        assert!(proofs("k").hold(&second.stem(), &files[1]));
        assert_eq!(files[1].passage(), Some(passage.clone()));
        files[1].note(&Passage { from: 8, ..passage }, &proofs("l")).expect("noted");
        assert!(!proofs("k").hold(&second.stem(), &files[1]));
    }
}
