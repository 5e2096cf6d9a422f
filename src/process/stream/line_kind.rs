//! The kinds of lines of the stream.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::process) enum LineKind {
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
pub(in crate::process) const PARTIAL: &str = "stream_event";
