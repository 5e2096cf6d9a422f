//! The checksum by which the content of a workflow's file is known.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Returns the checksum of a content: `sha256:` and hexadecimal digits.
pub(crate) fn checksum(content: impl AsRef<[u8]>) -> String {
    let mut hash = "sha256:".to_owned();
    for byte in Sha256::digest(content.as_ref()) {
        // Writing to a text cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}
