//! Finds the places of a text's bytes quickly, even in long lines.

use std::collections::BTreeSet;

use crate::language::position::SourcePlace;

/// The bytes between two points with precomputed character counts.
const STRIDE_BYTES: usize = 256;

/// An index of the lines of a text.
pub(super) struct LineIndex<'text> {
    text: &'text str,
    /// The byte each line begins at.
    starts: Vec<usize>,
    /// The number of characters that begin before each multiple of [`STRIDE_BYTES`].
    counts: Vec<usize>,
}

impl<'text> LineIndex<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        let mut counts = vec![0];
        for piece in text.as_bytes().chunks(STRIDE_BYTES) {
            let before = counts.last().copied().unwrap_or_default();
            counts.push(before + beginnings(piece));
        }
        Self { text, starts, counts }
    }

    /// Returns the place of a byte; one after the end is placed at the end.
    pub(super) fn place(&self, at: usize) -> SourcePlace {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        SourcePlace { line: line as u64, column: (self.before(at) - self.before(start)) as u64 + 1 }
    }

    /// Returns the number of characters that begin before a byte.
    fn before(&self, at: usize) -> usize {
        let counted = at / STRIDE_BYTES;
        self.counts[counted] + beginnings(&self.text.as_bytes()[counted * STRIDE_BYTES..at])
    }
}

/// Returns the number of characters that begin in these bytes.
fn beginnings(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn line_index_agrees_with_linear_scan(text in "([a-zé€😀]{0,300}\n?){0,4}", at in 0..1500usize) {
            let at = at.min(text.len());
            prop_assert_eq!(LineIndex::new(&text).place(at), SourcePlace::in_text(&text, at, 1));
        }
    }
}
