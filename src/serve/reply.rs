//! The body of a reply: a text, or a stream of events whose frames all readers share; and documents of bounded texts.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::domain::tool_call::beginning;

/// The body of a reply.
#[derive(Debug)]
pub enum ReplyBody {
    /// A whole text.
    Whole(Option<Bytes>),
    /// A stream of events.
    Stream(EventStream),
}

/// A stream of events: what has happened, then what happens.
#[derive(Debug)]
pub struct EventStream {
    /// The frames that the reader lacks.
    pub(super) behind: VecDeque<Bytes>,
    /// The frames that come. It is closed if the reader is too slow, or when the server ends.
    pub(super) coming: mpsc::Receiver<Bytes>,
}

impl ReplyBody {
    /// Returns a whole body.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => match stream.behind.pop_front() {
                Some(frame) => Poll::Ready(Some(Ok(Frame::data(frame)))),
                None => stream.coming.poll_recv(context).map(|frame| Some(Ok(Frame::data(frame?)))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// Returns a value with each of its texts cut to that many bytes. Pure.
pub fn bounded(value: Value, longest: usize) -> Value {
    match value {
        Value::String(text) => Value::String(beginning(text, longest)),
        Value::Array(all) => all.into_iter().map(|value| bounded(value, longest)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, bounded(value, longest))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod bounded_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_is_cut() {
        let cut = bounded(json!({ "a": "xyz", "b": ["xyz", 1, null] }), 2);
        assert_eq!(cut, json!({ "a": "xy…", "b": ["xy…", 1, null] }));
    }
}
