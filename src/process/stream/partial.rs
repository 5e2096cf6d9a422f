//! The lines that show a message while the model still writes it. Pure.
//!
//! They are a sign of life and a preview. The whole message follows in a line of its own, so nothing
//! is lost when they are dropped.

use memchr::memmem;
use serde::Deserialize;

use super::line_kind::{LineKind, PARTIAL};

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

#[cfg(test)]
mod tests {
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
