//! Assembles the lines of a stream from pieces, in memory that does not grow with it. Pure.
//!
//! A line is held up to a maximum length. For a longer line, only the short members of its object are kept.

use memchr::memchr;

use super::long_line::LongLine;

/// The longest line that is held, in bytes.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// The capacity that is kept for the next line, in bytes.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// A line that is longer than [`MAX_LINE_BYTES`], and whose answer cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of its output is the result, and longer than {} MiB", MAX_LINE_BYTES >> 20)]
pub struct LineTooLong {
    /// The line, from 1.
    pub line: u64,
}

/// A line without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::process) enum AssembledLine<'line> {
    /// The whole line.
    Whole(&'line [u8]),
    /// A line that is too long.
    TooLong {
        /// An object with its short members.
        members: Vec<u8>,
        /// The line, from 1.
        line: u64,
    },
}

/// The line that is being read.
#[derive(Debug, Default)]
pub(in crate::process) struct StreamLineAssembler {
    begun: Vec<u8>,
    /// The line, if it is too long to be held.
    long: Option<LongLine>,
    /// The number of lines before it.
    lines: u64,
}

impl StreamLineAssembler {
    /// Takes the next bytes, and passes each line that ends in them to `take`.
    pub(in crate::process) fn feed(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(AssembledLine<'_>),
    ) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.end_line(&bytes[..end], &mut take);
            bytes = &bytes[end + 1..];
        }
        self.continue_line(bytes);
    }

    /// Passes the line that has no line feed to `take`, at the end of the stream.
    pub(in crate::process) fn end(&mut self, take: impl FnOnce(AssembledLine<'_>)) {
        if self.long.is_some() || !self.begun.is_empty() {
            self.end_begun_line(take);
        }
    }

    /// Takes the last bytes of a line.
    fn end_line(&mut self, bytes: &[u8], take: impl FnOnce(AssembledLine<'_>)) {
        if self.begun.is_empty() && self.long.is_none() && bytes.len() <= MAX_LINE_BYTES {
            self.lines += 1;
            return take(AssembledLine::Whole(bytes));
        }
        self.continue_line(bytes);
        self.end_begun_line(take);
    }

    /// Takes bytes of a line that is not at its end.
    fn continue_line(&mut self, bytes: &[u8]) {
        if let Some(long) = &mut self.long {
            long.feed(bytes);
        } else if self.begun.len() + bytes.len() > MAX_LINE_BYTES {
            let long = self.long.insert(LongLine::default());
            long.feed(&std::mem::take(&mut self.begun));
            long.feed(bytes);
        } else {
            self.begun.extend_from_slice(bytes);
        }
    }

    fn end_begun_line(&mut self, take: impl FnOnce(AssembledLine<'_>)) {
        self.lines += 1;
        if let Some(long) = self.long.take() {
            return take(AssembledLine::TooLong { members: long.finish(), line: self.lines });
        }
        take(AssembledLine::Whole(&self.begun));
        self.begun.clear();
        self.begun.shrink_to(KEPT_CAPACITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines of a text that comes in pieces.
    fn assembled(text: &[u8], piece: usize) -> Vec<String> {
        let (mut assembler, mut lines) = (StreamLineAssembler::default(), Vec::new());
        let mut keep = |line: AssembledLine<'_>| {
            lines.push(match line {
                AssembledLine::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                AssembledLine::TooLong { members, line } => {
                    format!("{line} is too long: {}", String::from_utf8_lossy(&members))
                }
            });
        };
        for piece in text.chunks(piece) {
            assembler.feed(piece, &mut keep);
        }
        assembler.end(&mut keep);
        lines
    }

    #[test]
    fn lines_are_assembled_from_chunks_of_any_size() {
        for piece in 1..9 {
            assert_eq!(assembled(b"one\n\ntwo\nthree", piece).join("|"), "one||two|three");
        }
    }

    #[test]
    fn overlong_line_is_reduced_instead_of_buffered() {
        let padding = "x".repeat(MAX_LINE_BYTES);
        let text = format!("{{\"type\":\"result\",\"result\":\"{padding}\"}}\nnext\n");
        for piece in [1 << 16, usize::MAX] {
            let lines = assembled(text.as_bytes(), piece.min(text.len()));
            assert_eq!(lines, ["1 is too long: {\"type\":\"result\"}", "next"]);
        }
    }
}
