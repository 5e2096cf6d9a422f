//! The text of a program after its lexical mistakes are fixed, and the places of its parts in the original.

use std::collections::BTreeSet;

/// A text that the parser can read.
pub(super) struct RecoveredText {
    pub(super) fixed: String,
    /// The byte offsets of the added brackets.
    pub(super) added: Vec<usize>,
    /// The byte offsets of invalid words in the text.
    pub(super) wrong: BTreeSet<usize>,
}

impl RecoveredText {
    /// Converts a byte offset in the fixed text to one in the original text.
    pub(super) fn original(&self, at: usize) -> usize {
        at - self.added.partition_point(|added| *added < at)
    }
}
