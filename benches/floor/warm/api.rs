//! A Messages API on 127.0.0.1 that answers at once with the newest words of the conversation.
//!
//! A connection serves one request, on a thread of its own. That is fast enough not to matter, and its time
//! is counted.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Fallible;

/// A running stand-in; it ends with the benchmark.
#[derive(Debug)]
pub(crate) struct MessagesApi {
    url: String,
    micros: Arc<AtomicU64>,
}

impl MessagesApi {
    pub(crate) fn start() -> Fallible<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let micros = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&micros);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let micros = Arc::clone(&shared);
                std::thread::spawn(move || serve(&stream, &micros));
            }
        });
        Ok(Self { url, micros })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the time it has taken for its answers so far.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

/// Serves one request; `None` if the client is gone.
fn serve(stream: &TcpStream, micros: &AtomicU64) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (path, body) = request(&mut reader)?;
    let asked = Instant::now();
    let (kind, answer) = match path.split('?').next() {
        Some("/v1/messages") => message(&serde_json::from_slice(&body).ok()?),
        Some("/v1/messages/count_tokens") => {
            ("application/json", r#"{"input_tokens":10}"#.to_owned())
        }
        _ => ("application/json", "{}".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    let mut stream = stream;
    stream.write_all(format!("{head}{answer}").as_bytes()).ok()?;
    let took = u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX);
    micros.fetch_add(took, Ordering::Relaxed);
    Some(())
}

/// Returns the path and the body of a request.
fn request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, body))
}

fn message(asked: &Value) -> (&'static str, String) {
    let answer = newest(asked).unwrap_or_default();
    let message = json!({
        "id": format!("msg_{}", uuid::Uuid::new_v4().simple()), "type": "message",
        "role": "assistant", "model": asked["model"], "stop_sequence": null,
        "content": [{"type": "text", "text": answer}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 10},
    });
    if asked["stream"] != true {
        return ("application/json", message.to_string());
    }
    let mut opening = message.clone();
    (opening["content"], opening["stop_reason"]) = (json!([]), Value::Null);
    let events = [
        json!({"type": "message_start", "message": opening}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "text_delta", "text": answer}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "usage": message["usage"],
            "delta": {"stop_reason": "end_turn", "stop_sequence": null}}),
        json!({"type": "message_stop"}),
    ];
    let event = |data: &Value| {
        format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
    };
    ("text/event-stream", events.iter().map(event).collect())
}

/// Returns the newest text of the user, without the reminders that Claude Code adds.
fn newest(asked: &Value) -> Option<&str> {
    let messages = asked["messages"].as_array()?;
    let content = &messages.iter().rfind(|message| message["role"] == "user")?["content"];
    let is_of_person = |text: &&str| !text.trim_start().starts_with("<system-reminder>");
    match content {
        Value::Array(blocks) => {
            blocks.iter().rev().filter_map(|block| block["text"].as_str()).find(is_of_person)
        }
        text => text.as_str(),
    }
}
