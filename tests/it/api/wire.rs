//! Answers in the forms of the Messages API: server-sent events, JSON, or an error.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use super::rule::ApiAnswer;

/// Returns the response to one request for a message.
pub(super) fn answer(answer: &ApiAnswer, model: &str, streamed: bool) -> Response {
    if let Some((status, message)) = &answer.error {
        return error(*status, message);
    }
    let message = message(answer, model);
    if streamed {
        respond(StatusCode::OK, "text/event-stream", events(&message))
    } else {
        json(&message.to_string())
    }
}

/// Returns the response as a stream in which the text comes word by word, each when `pieces` allows one more.
pub(super) fn words(answer: &ApiAnswer, model: &str, pieces: watch::Receiver<usize>) -> Response {
    let message = message(&ApiAnswer { text: String::new(), ..answer.clone() }, model);
    let events = events(&message);
    // The empty text of the message is the place at which the words come.
    let stop = events.find("event: content_block_stop").expect("the message has a block");
    let (begin, end) = events.split_at(stop);
    let words = answer.text.split_inclusive(' ').map(|word| {
        let delta = json!({"type": "text_delta", "text": word});
        event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    });
    let parts: Vec<String> =
        std::iter::once(begin.to_owned()).chain(words).chain([end.to_owned()]).collect();
    let last = parts.len() - 1;
    let parts = stream::unfold((parts.into_iter().enumerate(), pieces), move |state| async move {
        let (mut parts, mut pieces) = state;
        let (number, part) = parts.next()?;
        if number > 0 && number < last {
            pieces.wait_for(|&count| count >= number).await.ok()?;
        }
        Some((Ok::<_, Infallible>(Bytes::from(part)), (parts, pieces)))
    });
    Response::builder()
        .status(StatusCode::OK)
        .header(CONTENT_TYPE, "text/event-stream")
        .body(Body::from_stream(parts))
        .expect("status and header are valid")
}

/// Returns an error in the API's own shape.
pub(super) fn error(status: u16, message: &str) -> Response {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    let status = StatusCode::from_u16(status).expect("the test names a status that exists");
    respond(status, "application/json", body.to_string())
}

/// Returns a JSON document.
pub(super) fn json(body: &str) -> Response {
    respond(StatusCode::OK, "application/json", body.to_owned())
}

fn respond(status: StatusCode, kind: &str, body: String) -> Response {
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .body(Body::from(body))
        .expect("status and header are valid")
}

/// Returns the whole message. Its id is new each time, because Claude Code takes messages with one id for one
/// message.
fn message(answer: &ApiAnswer, model: &str) -> Value {
    let mut content = vec![json!({"type": "text", "text": answer.text})];
    if let Some((name, input)) = &answer.tool {
        let id = format!("toolu_{}", Uuid::new_v4().simple());
        content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
    }
    json!({
        "id": format!("msg_{}", Uuid::new_v4().simple()),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": if answer.tool.is_some() { "tool_use" } else { "end_turn" },
        "stop_sequence": null,
        "usage": {
            "input_tokens": answer.input_tokens,
            "output_tokens": answer.output_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    })
}

/// Returns the message as a stream: it begins empty, is filled block by block, and ends with its reason and
/// usage.
fn events(message: &Value) -> String {
    let mut opening = message.clone();
    opening["content"] = json!([]);
    opening["stop_reason"] = Value::Null;
    let mut stream = event(&json!({"type": "message_start", "message": opening}));
    let blocks = message["content"].as_array().into_iter().flatten();
    for (index, block) in blocks.enumerate() {
        let (empty, delta) = opened(block);
        let start = json!({"type": "content_block_start", "index": index, "content_block": empty});
        let fill = json!({"type": "content_block_delta", "index": index, "delta": delta});
        let stop = json!({"type": "content_block_stop", "index": index});
        stream.extend([start, fill, stop].iter().map(event));
    }
    let reason = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
    let end = json!({"type": "message_delta", "delta": reason, "usage": message["usage"]});
    stream.extend([end, json!({"type": "message_stop"})].iter().map(event));
    stream
}

/// Returns the block as it starts, and the delta that fills it.
fn opened(block: &Value) -> (Value, Value) {
    let mut empty = block.clone();
    if block["type"] == "text" {
        empty["text"] = json!("");
        (empty, json!({"type": "text_delta", "text": block["text"]}))
    } else {
        empty["input"] = json!({});
        (empty, json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
    }
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}
