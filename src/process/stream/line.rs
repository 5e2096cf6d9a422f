//! One line of the stream, taken apart only as far as someone asks.

use std::borrow::Cow;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// One event. Only its kind has to be as expected: a field of another type than it used to have
/// counts as absent, so that no change of the program costs a turn.
#[derive(Deserialize)]
pub(super) struct Line<'line> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(super) subtype: Field<'line>,
    #[serde(borrow, default)]
    pub(super) uuid: Field<'line>,
    #[serde(borrow, default)]
    pub(super) message: Field<'line>,
    #[serde(borrow, default)]
    pub(super) error: Field<'line>,
    #[serde(borrow, default)]
    pub(super) parent_tool_use_id: Field<'line>,
    #[serde(borrow, default)]
    pub(super) is_error: Field<'line>,
    #[serde(borrow, default)]
    pub(super) result: Field<'line>,
    #[serde(borrow, default)]
    pub(super) structured_output: Field<'line>,
    #[serde(borrow, default)]
    pub(super) total_cost_usd: Field<'line>,
    #[serde(borrow, default, rename = "modelUsage")]
    pub(super) model_usage: Field<'line>,
    #[serde(borrow, default)]
    pub(super) duration_ms: Field<'line>,
    #[serde(borrow, default)]
    pub(super) api_error_status: Field<'line>,
    #[serde(borrow, default)]
    pub(super) errors: Field<'line>,
    #[serde(borrow, default)]
    pub(super) attempt: Field<'line>,
    #[serde(borrow, default)]
    pub(super) retry_delay_ms: Field<'line>,
    #[serde(borrow, default)]
    pub(super) error_status: Field<'line>,
    #[serde(borrow, default)]
    pub(super) rate_limit_info: Field<'line>,
    #[serde(borrow, default)]
    pub(super) task_id: Field<'line>,
    #[serde(borrow, default)]
    pub(super) task_type: Field<'line>,
    #[serde(borrow, default)]
    pub(super) description: Field<'line>,
    #[serde(borrow, default)]
    pub(super) is_backgrounded: Field<'line>,
    #[serde(borrow, default)]
    pub(super) tasks: Field<'line>,
    #[serde(borrow, default)]
    pub(super) state: Field<'line>,
    #[serde(borrow, default)]
    pub(super) queued_turn_count: Field<'line>,
    #[serde(borrow, default)]
    pub(super) terminal_reason: Field<'line>,
    #[serde(borrow, default)]
    pub(super) model_usage_since_last_result: Field<'line>,
    #[serde(borrow, default)]
    pub(super) user_message_uuids: Field<'line>,
    #[serde(borrow, default, rename = "isReplay")]
    pub(super) is_replay: Field<'line>,
    #[serde(borrow, default)]
    pub(super) response: Field<'line>,
    #[serde(borrow, default)]
    pub(super) origin: Field<'line>,
    #[serde(borrow, default)]
    pub(super) claude_code_version: Field<'line>,
    #[serde(borrow, default)]
    pub(super) permission_denials: Field<'line>,
    #[serde(borrow, default)]
    pub(super) tool_name: Field<'line>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: Field<'line>,
    #[serde(borrow, default)]
    pub(super) event: Field<'line>,
}

/// A part of a message, as the API streams it.
#[derive(Deserialize)]
pub(super) struct PartialEvent<'line> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<Content<'line>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'line>>,
}

/// The next piece of a message.
#[derive(Deserialize)]
pub(super) struct Delta<'line> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(super) text: Field<'line>,
}

/// The answer to a control request.
#[derive(Deserialize)]
pub(super) struct ControlResponse<'line> {
    #[serde(borrow, default)]
    pub(super) request_id: Field<'line>,
    #[serde(borrow, default)]
    pub(super) response: Field<'line>,
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
    pub(super) total_cost_usd: Field<'line>,
    #[serde(borrow, default)]
    pub(super) model_usage: Field<'line>,
}

/// The occasion of a turn that no message asked for.
#[derive(Deserialize)]
pub(super) struct Origin<'line> {
    #[serde(borrow)]
    pub(super) kind: Cow<'line, str>,
}

/// A value that is not yet understood.
pub(super) type Field<'line> = Option<&'line RawValue>;

/// The value, if it is there and of that type.
pub(super) fn get<'line, T: Deserialize<'line>>(field: Field<'line>) -> Option<T> {
    serde_json::from_str(field?.get()).ok()
}

/// A text in which half a character, as JavaScript can cut one, is replaced.
pub(super) fn text(field: Field<'_>) -> Option<String> {
    get::<Lossy>(field).map(|Lossy(text)| text)
}

struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(LossyVisitor)
    }
}

struct LossyVisitor;

impl Visitor<'_> for LossyVisitor {
    type Value = Lossy;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Lossy, E> {
        Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
    }
}

#[derive(Deserialize)]
pub(super) struct Message<'line> {
    #[serde(borrow, default)]
    pub(super) id: Field<'line>,
    #[serde(borrow, default)]
    pub(super) model: Field<'line>,
    #[serde(borrow, default)]
    pub(super) usage: Field<'line>,
    #[serde(borrow, default)]
    pub(super) content: Vec<Content<'line>>,
}

#[derive(Deserialize)]
pub(super) struct Content<'line> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'line, str>,
    #[serde(borrow, default)]
    pub(super) name: Field<'line>,
    #[serde(borrow, default)]
    pub(super) id: Field<'line>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: Field<'line>,
    #[serde(borrow, default)]
    pub(super) text: Field<'line>,
    #[serde(borrow, default)]
    pub(super) input: Field<'line>,
    #[serde(borrow, default, rename = "content")]
    pub(super) answer: Field<'line>,
    #[serde(borrow, default)]
    pub(super) is_error: Field<'line>,
}

/// What the process has taken of one model; the tokens of both caches are counted apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelUsage<'line> {
    #[serde(borrow, default)]
    pub(super) input_tokens: Field<'line>,
    #[serde(borrow, default)]
    pub(super) output_tokens: Field<'line>,
    #[serde(borrow, default)]
    pub(super) cache_read_input_tokens: Field<'line>,
    #[serde(borrow, default)]
    pub(super) cache_creation_input_tokens: Field<'line>,
    #[serde(borrow, default, rename = "costUSD")]
    pub(super) cost_usd: Field<'line>,
}

#[derive(Deserialize)]
pub(super) struct RateLimit<'line> {
    #[serde(borrow, default)]
    pub(super) status: Field<'line>,
    #[serde(borrow, default, rename = "resetsAt")]
    pub(super) resets_at: Field<'line>,
    #[serde(borrow, default, rename = "isUsingOverage")]
    pub(super) on_extra_usage: Field<'line>,
    #[serde(borrow, default, rename = "rateLimitType")]
    pub(super) kind: Field<'line>,
}
