//! A line that is too long to be held, without the values that make it long. Pure.
//!
//! The line that ends a turn has its cost, even if it is too long because of the answer in it. So such a line is
//! parsed while it is read, and only the short members of its object are kept.
//!
//! Assembles the lines of a stream from pieces, in memory that does not grow with it. Pure.
//!
//! A line is held up to a maximum length. For a longer line, only the short members of its object are kept.
//!
//! The lines that show a message while the model still writes it. Pure.
//!
//! They are a sign of life and a preview. The whole message follows in a line of its own, so nothing
//! is lost when they are dropped.

use memchr::{memchr, memmem};
use serde::Deserialize;

use crate::stream::line::{LineKind, PARTIAL};

/// The longest member that is kept, its name included, in bytes.
const MAX_MEMBER: usize = 64 * 1024;

/// The most that is kept of a line, in bytes.
const MAX_KEPT: usize = 1024 * 1024;

/// The short members of an object, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct LongLine {
    kept: Vec<u8>,
    member: Vec<u8>,
    is_member_too_long: bool,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
}

impl LongLine {
    /// Takes the next bytes of the line.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.take(byte);
        }
    }

    /// Returns an object with the members that were kept.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.kept.push(if self.kept.is_empty() { b' ' } else { b'}' });
        self.kept
    }

    fn take(&mut self, byte: u8) {
        if self.is_in_text {
            self.is_in_text = byte != b'"' || self.is_escaped;
            self.is_escaped = byte == b'\\' && !self.is_escaped;
            return self.keep(byte);
        }
        match byte {
            b'"' => self.is_in_text = true,
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    return;
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return self.end_member();
                }
            }
            b',' if self.depth == 1 => return self.end_member(),
            _ => {}
        }
        self.keep(byte);
    }

    fn keep(&mut self, byte: u8) {
        self.is_member_too_long |= self.member.len() == MAX_MEMBER;
        if !self.is_member_too_long {
            self.member.push(byte);
        }
    }

    fn end_member(&mut self) {
        let fits = self.kept.len() + self.member.len() < MAX_KEPT;
        if !self.is_member_too_long && !self.member.is_empty() && fits {
            self.kept.push(if self.kept.is_empty() { b'{' } else { b',' });
            self.kept.append(&mut self.member);
        }
        self.member.clear();
        self.is_member_too_long = false;
    }
}

/// Beginning of nearly all of these lines; the order of the keys is not fixed.
const PREFIX: &[u8] = b"{\"type\":\"stream_event\",";

#[derive(Deserialize)]
struct StreamLineKind {
    #[serde(rename = "type")]
    kind: LineKind,
}

/// Returns whether a line is certainly a part of a message, by its beginning alone.
pub(super) fn begins_as_partial(line: &[u8]) -> bool {
    line.starts_with(PREFIX)
}

/// Returns whether a line is a part of a message.
pub fn is_partial(line: &[u8]) -> bool {
    begins_as_partial(line)
        || (memmem::find(line, PARTIAL.as_bytes()).is_some()
            && serde_json::from_slice::<StreamLineKind>(line)
                .is_ok_and(|line| line.kind == LineKind::Partial))
}

/// The lengths of a region of a stream without the parts of messages, in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CompactedLengths {
    /// The lines that are kept.
    pub kept: u64,
    /// The lines that are dropped.
    pub dropped: u64,
    /// The kept lines, up to the byte to which the region had been read.
    pub read: u64,
}

impl CompactedLengths {
    /// Counts the next line, with its line feed, and returns whether it is kept; `read` is the number of its
    /// bytes that had been read.
    pub fn push(&mut self, line: &[u8], read: u64) -> bool {
        let is_kept = !(is_partial(line) && line.ends_with(b"\n"));
        if is_kept {
            self.read += read;
            self.kept += line.len() as u64;
        } else {
            self.dropped += line.len() as u64;
        }
        is_kept
    }
}

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
pub(crate) enum AssembledLine<'line> {
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
pub(crate) struct StreamLineAssembler {
    begun: Vec<u8>,
    /// The line, if it is too long to be held.
    long: Option<LongLine>,
    /// The number of lines before it.
    lines: u64,
}

impl StreamLineAssembler {
    /// Takes the next bytes, and passes each line that ends in them to `take`.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut take: impl FnMut(AssembledLine<'_>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.end_line(&bytes[..end], &mut take);
            bytes = &bytes[end + 1..];
        }
        self.continue_line(bytes);
    }

    /// Passes the line that has no line feed to `take`, at the end of the stream.
    pub(crate) fn end(&mut self, take: impl FnOnce(AssembledLine<'_>)) {
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
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn reduced(text: &str, chunk: usize) -> Vec<u8> {
        let mut line = LongLine::default();
        text.as_bytes().chunks(chunk).for_each(|chunk| line.feed(chunk));
        line.finish()
    }

    #[test]
    fn short_members_survive_removal_of_long_members() {
        let answer = r#"a \" quote, {"total_cost_usd": 9}, ]} "#.repeat(4096);
        let denials = json!([{ "tool_input": { "total_cost_usd": 7, "text": answer } }]);
        let line = json!({
            "type": "result", "result": answer, "permission_denials": denials,
            "total_cost_usd": 0.25, "modelUsage": { "opus": { "costUSD": 0.25 } },
        });
        let kept: Value = serde_json::from_slice(&reduced(&line.to_string(), 7)).expect("JSON");
        let costs = json!({
            "type": "result", "total_cost_usd": 0.25, "modelUsage": { "opus": { "costUSD": 0.25 } },
        });
        assert_eq!(kept, costs);
    }

    #[test]
    fn invalid_or_empty_object_reduces_to_nothing() {
        for text in ["", "xxxx", "]}]}", "{", "{}", "\"text\"", "{\"a\":1"] {
            let kept = reduced(text, 1);
            assert!(kept.len() <= 2, "{text}: {kept:?}");
        }
    }

    proptest! {
        #[test]
        fn object_without_long_members_is_unchanged(
            members in proptest::collection::btree_map(".{0,6}", ".{0,12}", 1..6), chunk in 1usize..9,
        ) {
            let members = members.into_iter().map(|(name, text)| (name, json!([{ "t": text }, 1.5])));
            let object = Value::Object(members.collect::<Map<_, _>>());
            let kept: Value = serde_json::from_slice(&reduced(&object.to_string(), chunk))
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(kept, object);
        }

        #[test]
        fn arbitrary_bytes_are_reduced_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut line = LongLine::default();
            line.feed(&bytes);
            prop_assert!(line.finish().len() <= bytes.len() + 2);
        }
    }
}

#[cfg(test)]
mod partial_tests {
    use super::*;

    const DELTA: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta"}}"#;

    #[test]
    fn partial_messages_are_detected_by_event_type() {
        assert!(is_partial(DELTA.as_bytes()));
        assert!(is_partial(br#"{"uuid":"u","type":"stream_event"}"#));
        assert!(!is_partial(br#"{"type":"assistant","text":"stream_event"}"#));
        assert!(!is_partial(br#"{"type":"assistant","text":"{\"type\":\"stream_event\"}"}"#));
        assert!(!is_partial(b"stream_event"));
        assert!(!is_partial(b""));
    }

    #[test]
    fn read_position_follows_removed_lines() {
        let lines = ["{\"a\":1}\n", &format!("{DELTA}\n"), "{\"b\":2}\n", DELTA];
        let whole = lines.concat();
        for read in 0..=whole.len() {
            let (mut compacted, mut at, mut kept) = (CompactedLengths::default(), 0, String::new());
            for line in lines {
                let read = read.saturating_sub(at).min(line.len()) as u64;
                if compacted.push(line.as_bytes(), read) {
                    kept.push_str(line);
                }
                at += line.len();
            }
            assert_eq!(kept, format!("{{\"a\":1}}\n{{\"b\":2}}\n{DELTA}"));
            assert_eq!(compacted.kept, kept.len() as u64);
            let left: usize = read.saturating_sub(8).min(DELTA.len() + 1);
            assert_eq!(compacted.read, (read - left) as u64, "{read}");
        }
    }
}

#[cfg(test)]
mod line_assembler_tests {
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
