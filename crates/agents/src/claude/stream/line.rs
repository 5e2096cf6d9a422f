//! The lines of the stream: their types, parsed only as far as needed, and how they are assembled from pieces.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use raymond_model::id::MessageId;
use raymond_model::time::Timestamp;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::turn_progress::MAX_LINE_BYTES;

/// One event. Only its kind has to be as expected. A field of an unexpected type counts as absent, so that no change
/// of the program costs a turn.
#[derive(Deserialize)]
pub(crate) struct StreamLine<'line> {
    #[serde(rename = "type")]
    pub(crate) kind: LineKind,
    #[serde(borrow)]
    pub(crate) subtype: RawField<'line>,
    pub(crate) uuid: RawField<'line>,
    pub(crate) session_id: RawField<'line>,
    pub(crate) timestamp: RawField<'line>,
    pub(crate) credential_expires_at: RawField<'line>,
    pub(crate) message: RawField<'line>,
    pub(crate) error: RawField<'line>,
    pub(crate) parent_tool_use_id: RawField<'line>,
    pub(crate) is_error: RawField<'line>,
    pub(crate) result: RawField<'line>,
    pub(crate) structured_output: RawField<'line>,
    pub(crate) total_cost_usd: RawField<'line>,
    #[serde(rename = "modelUsage")]
    pub(crate) model_usage: RawField<'line>,
    pub(crate) duration_ms: RawField<'line>,
    pub(crate) api_error_status: RawField<'line>,
    pub(crate) api_error: RawField<'line>,
    pub(crate) errors: RawField<'line>,
    pub(crate) attempt: RawField<'line>,
    pub(crate) retry_delay_ms: RawField<'line>,
    pub(crate) error_status: RawField<'line>,
    pub(crate) rate_limit_info: RawField<'line>,
    pub(crate) task_id: RawField<'line>,
    pub(crate) task_type: RawField<'line>,
    pub(crate) description: RawField<'line>,
    pub(crate) is_backgrounded: RawField<'line>,
    pub(crate) tasks: RawField<'line>,
    pub(crate) state: RawField<'line>,
    pub(crate) queued_turn_count: RawField<'line>,
    pub(crate) terminal_reason: RawField<'line>,
    pub(crate) num_turns: RawField<'line>,
    pub(crate) content: RawField<'line>,
    pub(crate) prevent_continuation: RawField<'line>,
    pub(crate) original_model: RawField<'line>,
    pub(crate) fallback_model: RawField<'line>,
    pub(crate) model_usage_since_last_result: RawField<'line>,
    pub(crate) user_message_uuids: RawField<'line>,
    #[serde(rename = "isReplay")]
    pub(crate) is_replay: RawField<'line>,
    pub(crate) response: RawField<'line>,
    pub(crate) request_id: RawField<'line>,
    pub(crate) request: RawField<'line>,
    pub(crate) origin: RawField<'line>,
    pub(crate) claude_code_version: RawField<'line>,
    pub(crate) permission_denials: RawField<'line>,
    pub(crate) tool_name: RawField<'line>,
    pub(crate) tool_use_id: RawField<'line>,
    pub(crate) tool_use_result: RawField<'line>,
    pub(crate) event: RawField<'line>,
}

impl<'line> StreamLine<'line> {
    /// Reads a line; `None` if it is not an event.
    pub(crate) fn parse(line: &'line str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// Returns whether it is of the agent itself, not of a sub-agent.
    pub(crate) fn is_of_main_agent(&self) -> bool {
        self.parent_tool_use_id.is_none()
    }

    /// Returns whether it repeats a message that was sent to the program.
    pub(crate) fn is_repetition(&self) -> bool {
        get(self.is_replay).unwrap_or(false)
    }

    /// Returns the time at which it was written, if it says so.
    pub(crate) fn written_at(&self) -> Option<Timestamp> {
        instant(self.timestamp)
    }

    /// Returns the id of its message, if it has one.
    pub(crate) fn message_id(&self) -> Option<MessageId> {
        text(self.uuid).map(|id| MessageId::new(&id))
    }

    /// Returns whether the content of its message is a list of blocks, not a text.
    pub(crate) fn has_blocks(&self) -> bool {
        get::<Vec<&RawValue>>(self.message_content()).is_some()
    }

    /// Returns the text of its message, without its other content; `None` if it has no text.
    pub(crate) fn message_text(&self) -> Option<String> {
        let content = self.message_content();
        let whole = text(content).or_else(|| {
            let blocks: Vec<&RawValue> = get(content)?;
            let texts = blocks
                .into_iter()
                .filter_map(|block| text(get::<TextBlock<'_>>(Some(block))?.text));
            Some(texts.collect::<Vec<_>>().join("\n"))
        });
        whole.filter(|text| !text.is_empty())
    }

    fn message_content(&self) -> RawField<'line> {
        get::<MessageContent<'_>>(self.message)?.content
    }
}

/// The content of a message, in any form.
#[derive(Deserialize)]
struct MessageContent<'line> {
    #[serde(borrow)]
    content: RawField<'line>,
}

/// The text of a block of a message, if it has any.
#[derive(Deserialize)]
struct TextBlock<'line> {
    #[serde(borrow)]
    text: RawField<'line>,
}

/// A part of a message, as the API streams it.
#[derive(Deserialize)]
pub(crate) struct PartialEvent<'line> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(crate) content_block: Option<ContentBlock<'line>>,
    #[serde(borrow, default)]
    pub(crate) delta: Option<ContentDelta<'line>>,
}

/// The next piece of a message.
#[derive(Deserialize)]
pub(crate) struct ContentDelta<'line> {
    #[serde(rename = "type", borrow, default)]
    pub(crate) kind: Cow<'line, str>,
    #[serde(borrow)]
    pub(crate) text: RawField<'line>,
}

/// The answer to a control request.
#[derive(Deserialize)]
pub(crate) struct ControlResponse<'line> {
    #[serde(borrow)]
    pub(crate) subtype: RawField<'line>,
    pub(crate) error: RawField<'line>,
    pub(crate) request_id: RawField<'line>,
    pub(crate) response: RawField<'line>,
}

/// The answer to `get_usage`.
#[derive(Deserialize)]
pub(crate) struct UsageResponse<'line> {
    #[serde(borrow)]
    pub(crate) session: SessionUsage<'line>,
}

/// The totals of a session, as `get_usage` gives them.
#[derive(Deserialize)]
pub(crate) struct SessionUsage<'line> {
    #[serde(borrow)]
    pub(crate) total_cost_usd: RawField<'line>,
    pub(crate) model_usage: RawField<'line>,
}

/// The occasion of a turn that no message asked for.
#[derive(Deserialize)]
pub(crate) struct StreamTurnOrigin<'line> {
    #[serde(borrow)]
    pub(crate) kind: Cow<'line, str>,
}

/// A value that is not yet understood; `None` if it is absent. One `borrow` makes all such fields of a struct borrow.
pub(crate) type RawField<'line> = Option<&'line RawValue>;

/// Returns the value, if it is there and of that type.
pub(crate) fn get<'line, T: Deserialize<'line>>(field: RawField<'line>) -> Option<T> {
    serde_json::from_str(field?.get()).ok()
}

/// Returns a time as RFC 3339 writes it.
pub(crate) fn instant(field: RawField<'_>) -> Option<Timestamp> {
    let read: jiff::Timestamp = text(field)?.parse().ok()?;
    read.as_millisecond().try_into().ok().map(Timestamp)
}

/// Returns a text in which half a character, as JavaScript can cut one, is replaced.
pub(crate) fn text(field: RawField<'_>) -> Option<String> {
    get::<LossyString>(field).map(|LossyString(text)| text)
}

struct LossyString(String);

impl<'de> Deserialize<'de> for LossyString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(LossyVisitor)
    }
}

struct LossyVisitor;

impl Visitor<'_> for LossyVisitor {
    type Value = LossyString;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<LossyString, E> {
        Ok(LossyString(String::from_utf8_lossy(bytes).into_owned()))
    }
}

#[derive(Deserialize)]
pub(crate) struct StreamMessage<'line> {
    #[serde(borrow)]
    pub(crate) id: RawField<'line>,
    pub(crate) model: RawField<'line>,
    pub(crate) usage: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) content: Vec<ContentBlock<'line>>,
}

#[derive(Deserialize)]
pub(crate) struct ContentBlock<'line> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'line, str>,
    #[serde(borrow)]
    pub(crate) name: RawField<'line>,
    pub(crate) id: RawField<'line>,
    pub(crate) tool_use_id: RawField<'line>,
    pub(crate) text: RawField<'line>,
    pub(crate) thinking: RawField<'line>,
    pub(crate) input: RawField<'line>,
    #[serde(rename = "content")]
    pub(crate) answer: RawField<'line>,
    pub(crate) is_error: RawField<'line>,
}

impl ContentBlock<'_> {
    /// Returns the answer of a tool: a text, or a list of them.
    pub(crate) fn answer_text(&self) -> Option<String> {
        if let Some(whole) = text(self.answer) {
            return Some(whole);
        }
        let parts: Vec<ContentBlock<'_>> = get(self.answer)?;
        let texts: Vec<String> = parts.iter().filter_map(|part| text(part.text)).collect();
        Some(texts.join("\n")).filter(|text| !text.is_empty())
    }
}

/// The tokens and the cost of one model; the tokens of both caches are counted apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelUsage<'line> {
    #[serde(borrow)]
    pub(crate) input_tokens: RawField<'line>,
    pub(crate) output_tokens: RawField<'line>,
    pub(crate) cache_read_input_tokens: RawField<'line>,
    pub(crate) cache_creation_input_tokens: RawField<'line>,
    #[serde(rename = "costUSD")]
    pub(crate) cost_usd: RawField<'line>,
}

#[derive(Deserialize)]
pub(crate) struct RateLimit<'line> {
    #[serde(borrow)]
    pub(crate) status: RawField<'line>,
    #[serde(rename = "resetsAt")]
    pub(crate) resets_at: RawField<'line>,
    #[serde(rename = "isUsingOverage")]
    pub(crate) on_extra_usage: RawField<'line>,
    #[serde(rename = "rateLimitType")]
    pub(crate) kind: RawField<'line>,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LineKind {
    /// A message of the model, or a complete part of a message.
    Assistant,
    /// A message to the model, such as the prompt or a tool's answer.
    User,
    /// A report of the program on itself.
    System,
    /// The end of a turn.
    Result,
    /// The state of the account's limits.
    #[serde(rename = "rate_limit_event")]
    RateLimit,
    /// The answer to a request of the runtime, not of the workflow.
    ControlResponse,
    /// A request of the program to the runtime.
    ControlRequest,
    /// The program gives a request up.
    #[serde(rename = "control_cancel_request")]
    ControlCancel,
    /// A piece of a message that the model still writes.
    #[serde(rename = "stream_event")]
    Partial,
    /// A kind that nothing here reads.
    #[serde(other)]
    Other,
}

/// The name of the kind of partial messages.
const PARTIAL: &str = "stream_event";

// A line that is too long to be held, without the values that make it long. Pure.
//
// The line that ends a turn contains its cost, even if the answer in it makes the line too long. So such a line is
// parsed while it is read, and only the short members of its object are kept.

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

// The lines that show a message while the model still writes it. Pure.
//
// They are a sign of life and a preview. The whole message follows in a separate line, so nothing is lost when they are
// dropped.

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

// Assembles the lines of a stream from pieces, in memory that does not grow with it. Pure.
//
// A line is held up to a maximum length. For a longer line, only the short members of its object are kept.

/// The capacity that is kept for the next line, in bytes.
const KEPT_CAPACITY: usize = 1024 * 1024;

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
    open: Vec<u8>,
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
        if self.long.is_some() || !self.open.is_empty() {
            self.end_open_line(take);
        }
    }

    /// Takes the last bytes of a line.
    fn end_line(&mut self, bytes: &[u8], take: impl FnOnce(AssembledLine<'_>)) {
        if self.open.is_empty() && self.long.is_none() && bytes.len() <= MAX_LINE_BYTES {
            self.lines += 1;
            return take(AssembledLine::Whole(bytes));
        }
        self.continue_line(bytes);
        self.end_open_line(take);
    }

    /// Takes bytes of a line that is not at its end.
    fn continue_line(&mut self, bytes: &[u8]) {
        if let Some(long) = &mut self.long {
            long.feed(bytes);
        } else if self.open.len() + bytes.len() > MAX_LINE_BYTES {
            let long = self.long.insert(LongLine::default());
            long.feed(&std::mem::take(&mut self.open));
            long.feed(bytes);
        } else {
            self.open.extend_from_slice(bytes);
        }
    }

    fn end_open_line(&mut self, take: impl FnOnce(AssembledLine<'_>)) {
        self.lines += 1;
        if let Some(long) = self.long.take() {
            return take(AssembledLine::TooLong { members: long.finish(), line: self.lines });
        }
        take(AssembledLine::Whole(&self.open));
        self.open.clear();
        self.open.shrink_to(KEPT_CAPACITY);
    }
}

#[cfg(test)]
mod long_line_tests {
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
