//! The checksum that identifies the content of a workflow's file.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Returns the checksum of a content: `sha256:` and hexadecimal digits.
pub(crate) fn checksum(content: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hexadecimal(&Sha256::digest(content.as_ref())))
}

/// Returns the name of a file that is kept for a text: the first 32 digits of its checksum.
pub(crate) fn short_name(text: &str) -> String {
    hexadecimal(&Sha256::digest(text)[..16])
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        // Writing to a text cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_has_algorithm_prefix_and_all_digits() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(checksum(""), empty);
        assert_eq!(format!("sha256:{}", short_name("")), empty[..39]);
    }
}
