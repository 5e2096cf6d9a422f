//! The types of a line of the stream, for all that read it: parsed only as far as needed.
//!
//! The kinds of lines of the stream.

use std::borrow::Cow;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use raymond_model::id::MessageId;
use raymond_model::time::Timestamp;

/// One event. Only its kind has to be as expected. A field of an unexpected type counts as absent, so that no change
/// of the program costs a turn.
#[derive(Deserialize)]
pub(crate) struct StreamLine<'line> {
    #[serde(rename = "type")]
    pub(crate) kind: LineKind,
    #[serde(borrow, default)]
    pub(crate) subtype: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) uuid: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) session_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) timestamp: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) credential_expires_at: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) message: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) error: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) parent_tool_use_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) is_error: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) result: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) structured_output: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) total_cost_usd: RawField<'line>,
    #[serde(borrow, default, rename = "modelUsage")]
    pub(crate) model_usage: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) duration_ms: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) api_error_status: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) api_error: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) errors: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) attempt: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) retry_delay_ms: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) error_status: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) rate_limit_info: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) task_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) task_type: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) description: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) is_backgrounded: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) tasks: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) state: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) queued_turn_count: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) terminal_reason: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) num_turns: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) content: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) prevent_continuation: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) original_model: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) fallback_model: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) model_usage_since_last_result: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) user_message_uuids: RawField<'line>,
    #[serde(borrow, default, rename = "isReplay")]
    pub(crate) is_replay: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) response: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) request_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) request: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) origin: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) claude_code_version: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) permission_denials: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) tool_name: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) tool_use_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) tool_use_result: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) event: RawField<'line>,
}

impl<'line> StreamLine<'line> {
    /// Reads a line; `None` if it is no event.
    pub(crate) fn parse(line: &'line str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// Returns whether it is of the agent itself, not of a sub-agent.
    pub(crate) fn is_of_main_agent(&self) -> bool {
        self.parent_tool_use_id.is_none_or(|parent| parent.get() == "null")
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

/// The content of a message, whatever its form is.
#[derive(Deserialize)]
struct MessageContent<'line> {
    #[serde(borrow, default)]
    content: RawField<'line>,
}

/// The text of a block of a message, if it has any.
#[derive(Deserialize)]
struct TextBlock<'line> {
    #[serde(borrow, default)]
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
    #[serde(borrow, default)]
    pub(crate) text: RawField<'line>,
}

/// The answer to a control request.
#[derive(Deserialize)]
pub(crate) struct ControlResponse<'line> {
    #[serde(borrow, default)]
    pub(crate) subtype: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) error: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) request_id: RawField<'line>,
    #[serde(borrow, default)]
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
    #[serde(borrow, default)]
    pub(crate) total_cost_usd: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) model_usage: RawField<'line>,
}

/// The occasion of a turn that no message asked for.
#[derive(Deserialize)]
pub(crate) struct StreamTurnOrigin<'line> {
    #[serde(borrow)]
    pub(crate) kind: Cow<'line, str>,
}

/// A value that is not yet understood.
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
    #[serde(borrow, default)]
    pub(crate) id: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) model: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) usage: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) content: Vec<ContentBlock<'line>>,
}

#[derive(Deserialize)]
pub(crate) struct ContentBlock<'line> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(crate) name: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) id: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) tool_use_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) text: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) input: RawField<'line>,
    #[serde(borrow, default, rename = "content")]
    pub(crate) answer: RawField<'line>,
    #[serde(borrow, default)]
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
    #[serde(borrow, default)]
    pub(crate) input_tokens: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) output_tokens: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) cache_read_input_tokens: RawField<'line>,
    #[serde(borrow, default)]
    pub(crate) cache_creation_input_tokens: RawField<'line>,
    #[serde(borrow, default, rename = "costUSD")]
    pub(crate) cost_usd: RawField<'line>,
}

#[derive(Deserialize)]
pub(crate) struct RateLimit<'line> {
    #[serde(borrow, default)]
    pub(crate) status: RawField<'line>,
    #[serde(borrow, default, rename = "resetsAt")]
    pub(crate) resets_at: RawField<'line>,
    #[serde(borrow, default, rename = "isUsingOverage")]
    pub(crate) on_extra_usage: RawField<'line>,
    #[serde(borrow, default, rename = "rateLimitType")]
    pub(crate) kind: RawField<'line>,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// A message of the model, or a part of one that is whole.
    Assistant,
    /// A message to the model, such as the prompt or a tool's answer.
    User,
    /// A report of the program on itself.
    System,
    /// The end of a turn.
    Result,
    /// The state of the account's limits.
    RateLimit,
    /// The answer to a request of the runtime, not of the workflow.
    ControlResponse,
    /// A request of the program to the runtime.
    ControlRequest,
    /// The program gives a request up.
    ControlCancel,
    /// A piece of a message that the model still writes.
    Partial,
    /// A kind that nothing here reads.
    Other,
}

impl<'de> Deserialize<'de> for LineKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(LineKindVisitor)
    }
}

struct LineKindVisitor;

impl Visitor<'_> for LineKindVisitor {
    type Value = LineKind;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the kind of an event")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<LineKind, E> {
        Ok(match name {
            "assistant" => LineKind::Assistant,
            "user" => LineKind::User,
            "system" => LineKind::System,
            "result" => LineKind::Result,
            "rate_limit_event" => LineKind::RateLimit,
            "control_response" => LineKind::ControlResponse,
            "control_request" => LineKind::ControlRequest,
            "control_cancel_request" => LineKind::ControlCancel,
            PARTIAL => LineKind::Partial,
            _ => LineKind::Other,
        })
    }
}

/// The name of the kind of partial messages.
pub(crate) const PARTIAL: &str = "stream_event";
