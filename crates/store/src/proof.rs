//! Message authentication codes (HMAC-SHA-256) with the user's key, called proofs.
//!
//! Agents can write where raymond keeps its runs, but they cannot make a proof.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use raymond_model::hexadecimal::hexadecimal;

/// The length of a proof, in hexadecimal digits.
pub const PROOF_LENGTH: usize = 64;

/// The key that proofs are made with.
#[derive(Clone)]
pub struct ProofKey(String);

impl std::fmt::Debug for ProofKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProofKey")
    }
}

/// The proofs of a run's steps: that a turn began, and the outcome of an operation. Without a key, every step
/// is believed.
#[derive(Debug, Clone, Default)]
pub struct StepProofs {
    /// A key for this run alone.
    pub key: Option<ProofKey>,
    /// True if steps without a proof are believed, because the user confirmed the run.
    pub believes_unproven: bool,
}

impl StepProofs {
    /// Returns the proof of a content; empty without a key.
    pub fn proof(&self, purpose: &str, content: &[u8]) -> String {
        self.key.as_ref().map_or_else(String::new, |key| key.proof(purpose, content))
    }

    /// Returns whether a content is believed.
    pub fn believe(&self, purpose: &str, content: &[u8], proof: &str) -> bool {
        let key = self.key.as_ref().filter(|_| !self.believes_unproven);
        key.is_none_or(|key| key.holds(purpose, content, proof))
    }
}

impl ProofKey {
    /// Creates a key from text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the proof of a content, in hexadecimal digits.
    pub fn proof(&self, purpose: &str, content: &[u8]) -> String {
        let tag = self.mac(purpose, content).finalize().into_bytes();
        hexadecimal(tag)
    }

    /// Returns whether a proof is that of a content, in a time that does not depend on where they differ.
    pub fn holds(&self, purpose: &str, content: &[u8], proof: &str) -> bool {
        let Some(tag) = from_hexadecimal(proof) else { return false };
        self.mac(purpose, content).verify_slice(&tag).is_ok()
    }

    /// Returns a key for one purpose only, from which this one cannot be derived.
    pub fn derive(&self, purpose: &str) -> Self {
        Self(self.proof("derive", purpose.as_bytes()))
    }

    fn mac(&self, purpose: &str, content: &[u8]) -> Hmac<Sha256> {
        let mut mac = keyed(self.0.as_bytes());
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(content);
        mac
    }
}

/// Begins a proof. The digest of the key fits into a block, so this cannot fail.
fn keyed(key: &[u8]) -> Hmac<Sha256> {
    let digest = Sha256::digest(key);
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block[..digest.len()].copy_from_slice(&digest);
    Hmac::new(&block)
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    if text.len() != PROOF_LENGTH || !text.is_ascii() {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proof_is_valid_only_for_its_content_purpose_and_key() {
        let key = ProofKey::new("k");
        let proof = key.proof("inbox", b"stop");
        assert_eq!(proof.len(), PROOF_LENGTH);
        assert!(key.holds("inbox", b"stop", &proof));
        assert!(!key.holds("inbox", b"stop ", &proof));
        assert!(!key.holds("seal", b"stop", &proof));
        assert!(!key.derive("x").holds("inbox", b"stop", &proof));
        for none in ["", "zz", &proof[..62], &"é".repeat(32)] {
            assert!(!key.holds("inbox", b"stop", none), "{none}");
        }
    }
}
