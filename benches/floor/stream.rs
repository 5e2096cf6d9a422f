//! Reading Claude Code's stream, in the pieces in which raymond reads a transcript.

use std::time::Instant;

use raymond::process::stream::Stream;
use serde_json::{Value, json};

use crate::Fallible;
use crate::place::Place;
use crate::scale::Scale;
use crate::summary::Summary;
use crate::table::{Table, whole};

/// What raymond reads at a time.
const PIECE: usize = 256 * 1024;
/// The longest line; a tool's result stands in its line twice.
const LONG_LINE: usize = 1_000_000;

pub(crate) fn figure(_: &Place, scale: &Scale) -> Fallible<Vec<Table>> {
    let mut table = Table::new(
        "Reading a stream, MB/s, median (least–greatest)",
        ["", "MB/s", "lines", "longest line"],
    );
    let lines: Vec<u8> = (0..100).flat_map(talk).collect();
    let long = line(&tool_result(&"x".repeat(LONG_LINE / 2)));
    let blocks = scale.stream.div_ceil(lines.len());
    let mut speeds = Vec::new();
    let mut read = Read::default();
    for _ in 0..scale.repeats.min(5) {
        read = Read::default();
        let started = Instant::now();
        for block in 0..blocks {
            read.feed(&lines)?;
            if block == blocks / 2 {
                read.feed(&long)?;
            }
        }
        read.stream.end()?;
        speeds.push(read.bytes / 1e6 / started.elapsed().as_secs_f64());
    }
    let events = u32::try_from(read.stream.events).map_or(f64::NAN, f64::from);
    table.row([
        format!("{} MB of messages and tool results", whole(read.bytes / 1e6)),
        Summary::of(speeds).shown(),
        whole(events),
        format!("{:.1} MB", as_float(long.len()) / 1e6),
    ]);
    Ok(vec![table])
}

#[derive(Default)]
struct Read {
    stream: Stream,
    bytes: f64,
}

impl Read {
    fn feed(&mut self, bytes: &[u8]) -> Fallible<()> {
        for piece in bytes.chunks(PIECE) {
            self.stream.feed(piece)?;
            self.bytes += as_float(piece.len());
        }
        Ok(())
    }
}

/// A message of the model, a tool it uses, and what that gives: a few hundred bytes to 8 kB.
fn talk(number: usize) -> Vec<u8> {
    let words = "I read the file and see that \"parse\" returns\nbefore the last token. ";
    let code = "fn next(&mut self) -> Option<Token> {\n\tself.tokens.pop() // \\u00e4\n}\n";
    let said = json!({"type": "text", "text": words.repeat(1 + number % 7)});
    let used = json!({"type": "tool_use", "id": "toolu_1", "name": "Read",
        "input": {"file_path": "/home/user/project/src/lexer.rs"}});
    let mut lines = line(&assistant(&said));
    lines.extend(line(&assistant(&used)));
    lines.extend(line(&tool_result(&code.repeat(5 + number))));
    lines
}

fn assistant(content: &Value) -> Value {
    json!({"type": "assistant", "uuid": "11111111-1111-4111-8111-111111111111",
        "session_id": "22222222-2222-4222-8222-222222222222", "parent_tool_use_id": null,
        "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
            "content": [content], "stop_reason": null,
            "usage": {"input_tokens": 10, "output_tokens": 10}}})
}

fn tool_result(text: &str) -> Value {
    json!({"type": "user", "uuid": "33333333-3333-4333-8333-333333333333",
        "session_id": "22222222-2222-4222-8222-222222222222", "parent_tool_use_id": null,
        "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": text}]},
        "tool_use_result": {"type": "text", "file": {"content": text}}})
}

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

#[expect(clippy::cast_precision_loss, reason = "sizes here are far below 2^52")]
fn as_float(number: usize) -> f64 {
    number as f64
}
