//! A reply: its body, which is a text or a stream of events whose frames all readers share, and its headers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};

use super::access::AccessRefusal;
use super::backend::{CommandRefusal, RefusalKind};
use super::feed::EventStream;
use super::routes::{BodyMisfit, PageAsset, ParameterMisfit, RouteError};
use crate::domain::tool_call::beginning;
use crate::store;

/// The body of a reply.
#[derive(Debug)]
pub enum ReplyBody {
    /// A whole text.
    Whole(Option<Bytes>),
    /// A stream of events.
    Stream(EventStream),
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

/// The policy for the page: its own files, and nothing else. No text can become a script or a part of the page.
pub const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers of every reply.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", CONTENT_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// A reply.
pub type PageReply = Response<ReplyBody>;

/// Returns a reply with the headers that each has.
fn reply(status: StatusCode, kind: &'static str, body: ReplyBody) -> PageReply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// Returns a file of the page.
pub fn asset(asset: &'static PageAsset) -> PageReply {
    reply(StatusCode::OK, asset.kind, ReplyBody::whole(asset.text))
}

/// Returns a value as JSON.
pub fn json_of(value: &impl Serialize) -> PageReply {
    json_with(StatusCode::OK, value)
}

/// Returns a document that is JSON already.
pub fn json_text(text: &'static str) -> PageReply {
    reply(StatusCode::OK, "application/json", ReplyBody::whole(text))
}

fn json_with(status: StatusCode, value: &impl Serialize) -> PageReply {
    match serde_json::to_string(value) {
        Ok(text) => reply(status, "application/json", ReplyBody::whole(text)),
        Err(why) => error(StatusCode::INTERNAL_SERVER_ERROR, &why.to_string()),
    }
}

/// Returns a stream of events.
pub fn stream(stream: EventStream) -> PageReply {
    reply(StatusCode::OK, "text/event-stream", ReplyBody::Stream(stream))
}

/// Sends a browser from the first address, which has the token, to the page, and gives it its cookie.
pub fn entry(cookie: &str) -> PageReply {
    let mut reply = reply(StatusCode::SEE_OTHER, "text/plain", ReplyBody::whole(""));
    reply.headers_mut().insert(header::LOCATION, HeaderValue::from_static("/"));
    if let Ok(mut cookie) = HeaderValue::from_str(cookie) {
        cookie.set_sensitive(true);
        reply.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    reply
}

/// Returns an error as JSON.
pub fn error(status: StatusCode, message: &str) -> PageReply {
    json_with(status, &json!({ "error": message }))
}

/// Returns the reply to a request that is refused.
pub fn refused(refusal: AccessRefusal) -> PageReply {
    let status = match refusal {
        AccessRefusal::NoKey => StatusCode::UNAUTHORIZED,
        AccessRefusal::Host => StatusCode::MISDIRECTED_REQUEST,
        AccessRefusal::Origin => StatusCode::FORBIDDEN,
        AccessRefusal::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
    };
    error(status, &refusal.to_string())
}

/// Returns the reply to a request for nothing.
pub fn no_route(failure: RouteError) -> PageReply {
    let status = match failure {
        RouteError::Unknown => StatusCode::NOT_FOUND,
        RouteError::Method => StatusCode::METHOD_NOT_ALLOWED,
    };
    error(status, &failure.to_string())
}

/// Returns the reply for what a command answers.
pub fn command(answer: Result<Value, CommandRefusal>) -> PageReply {
    match answer {
        Ok(value) => json_of(&value),
        Err(refusal) => {
            let status = match refusal.kind {
                RefusalKind::Absent => StatusCode::NOT_FOUND,
                RefusalKind::Refused => StatusCode::CONFLICT,
                RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            };
            let mut reply = json!({ "error": refusal.message });
            if let Some(field) = refusal.field {
                reply["field"] = json!(field);
            }
            json_with(status, &reply)
        }
    }
}

/// Returns the reply to an action whose body does not fit.
pub fn misfit(misfit: &BodyMisfit) -> PageReply {
    let reply = json!({ "error": misfit.to_string(), "field": misfit.field() });
    json_with(StatusCode::BAD_REQUEST, &reply)
}

/// Returns the reply to a request with a parameter that cannot be read.
pub fn wrong_parameter(misfit: &ParameterMisfit) -> PageReply {
    error(StatusCode::BAD_REQUEST, &misfit.to_string())
}

/// Returns the reply for what was read of a run.
pub fn read(answer: Result<impl Serialize, store::Error>) -> PageReply {
    answer.map_or_else(|failure| unread(&failure), |value| json_of(&value))
}

/// Returns the reply for a run that cannot be read.
pub fn unread(failure: &store::Error) -> PageReply {
    let status = match failure {
        store::Error::NoSuchRun { .. } => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    error(status, &failure.to_string())
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

#[cfg(test)]
mod reply_tests {
    use super::*;
    use crate::serve::routes::PAGE;

    #[test]
    fn every_reply_has_the_policy_and_is_not_kept() {
        let replies = [
            asset(&PAGE),
            json_of(&json!([])),
            entry("a=b"),
            refused(AccessRefusal::NoKey),
            no_route(RouteError::Unknown),
        ];
        for reply in replies {
            let policy = reply.headers()["content-security-policy"].to_str().expect("text");
            assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
            assert!(!policy.contains("unsafe"));
            assert_eq!(reply.headers()["cache-control"], "no-store");
            assert_eq!(reply.headers()["x-content-type-options"], "nosniff");
        }
    }

    #[test]
    fn browser_is_sent_away_from_the_token() {
        let reply = entry("raymond-1=x; HttpOnly");
        assert_eq!(reply.headers()["location"], "/");
        assert_eq!(reply.headers()["set-cookie"], "raymond-1=x; HttpOnly");
    }
}
