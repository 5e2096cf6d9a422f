//! The checksum by which the text of a workflow's file is known.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The checksum of a text: `sha256:` and hexadecimal digits.
pub(crate) fn checksum(text: &str) -> String {
    let mut hash = "sha256:".to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a text cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}
