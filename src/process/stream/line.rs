//! One line of the stream, parsed only as far as needed.

use std::borrow::Cow;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// One event. Only its kind has to be as expected: a field of another type than it used to have
/// counts as absent, so that no change of the program costs a turn.
#[derive(Deserialize)]
pub(super) struct StreamLine<'line> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(super) subtype: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) uuid: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) message: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) error: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) parent_tool_use_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) is_error: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) result: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) structured_output: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) total_cost_usd: RawField<'line>,
    #[serde(borrow, default, rename = "modelUsage")]
    pub(super) model_usage: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) duration_ms: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) api_error_status: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) errors: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) attempt: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) retry_delay_ms: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) error_status: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) rate_limit_info: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) task_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) task_type: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) description: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) is_backgrounded: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) tasks: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) state: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) queued_turn_count: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) terminal_reason: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) model_usage_since_last_result: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) user_message_uuids: RawField<'line>,
    #[serde(borrow, default, rename = "isReplay")]
    pub(super) is_replay: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) response: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) origin: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) claude_code_version: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) permission_denials: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) tool_name: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) event: RawField<'line>,
}

/// A part of a message, as the API streams it.
#[derive(Deserialize)]
pub(super) struct PartialEvent<'line> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<ContentBlock<'line>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<ContentDelta<'line>>,
}

/// The next piece of a message.
#[derive(Deserialize)]
pub(super) struct ContentDelta<'line> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(super) text: RawField<'line>,
}

/// The answer to a control request.
#[derive(Deserialize)]
pub(super) struct ControlResponse<'line> {
    #[serde(borrow, default)]
    pub(super) request_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) response: RawField<'line>,
}

/// The answer to `get_usage`.
#[derive(Deserialize)]
pub(super) struct UsageResponse<'line> {
    #[serde(borrow)]
    pub(super) session: SessionUsage<'line>,
}

/// The totals of a session, as `get_usage` gives them.
#[derive(Deserialize)]
pub(super) struct SessionUsage<'line> {
    #[serde(borrow, default)]
    pub(super) total_cost_usd: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) model_usage: RawField<'line>,
}

/// The occasion of a turn that no message asked for.
#[derive(Deserialize)]
pub(super) struct StreamTurnOrigin<'line> {
    #[serde(borrow)]
    pub(super) kind: Cow<'line, str>,
}

/// A value that is not yet understood.
pub(super) type RawField<'line> = Option<&'line RawValue>;

/// Returns the value, if it is there and of that type.
pub(super) fn get<'line, T: Deserialize<'line>>(field: RawField<'line>) -> Option<T> {
    serde_json::from_str(field?.get()).ok()
}

/// Returns a text in which half a character, as JavaScript can cut one, is replaced.
pub(super) fn text(field: RawField<'_>) -> Option<String> {
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
pub(super) struct StreamMessage<'line> {
    #[serde(borrow, default)]
    pub(super) id: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) model: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) usage: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) content: Vec<ContentBlock<'line>>,
}

#[derive(Deserialize)]
pub(super) struct ContentBlock<'line> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(super) name: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) id: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) text: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) input: RawField<'line>,
    #[serde(borrow, default, rename = "content")]
    pub(super) answer: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) is_error: RawField<'line>,
}

/// The tokens and the cost of one model; the tokens of both caches are counted apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelUsage<'line> {
    #[serde(borrow, default)]
    pub(super) input_tokens: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) output_tokens: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) cache_read_input_tokens: RawField<'line>,
    #[serde(borrow, default)]
    pub(super) cache_creation_input_tokens: RawField<'line>,
    #[serde(borrow, default, rename = "costUSD")]
    pub(super) cost_usd: RawField<'line>,
}

#[derive(Deserialize)]
pub(super) struct RateLimit<'line> {
    #[serde(borrow, default)]
    pub(super) status: RawField<'line>,
    #[serde(borrow, default, rename = "resetsAt")]
    pub(super) resets_at: RawField<'line>,
    #[serde(borrow, default, rename = "isUsingOverage")]
    pub(super) on_extra_usage: RawField<'line>,
    #[serde(borrow, default, rename = "rateLimitType")]
    pub(super) kind: RawField<'line>,
}
