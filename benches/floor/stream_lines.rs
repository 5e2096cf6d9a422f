//! The lines of a Claude Code at work, for the stream that is read: messages, tools, their results.

use serde_json::{Value, json};

/// The target of the transition at the end.
pub(crate) const NEXT: &str = "NEXT.md";
/// The length of the longest line, in bytes; the result of the tool stands in it twice.
const LONG_LINE: usize = 4_000_000;

/// Returns a hundred messages of the model, with the tools it uses and their results, of a few hundred bytes
/// to 8 kB.
pub(crate) fn lines() -> Vec<u8> {
    (0..100).flat_map(talk).collect()
}

/// Returns the line for the result of a tool that has read a large file.
pub(crate) fn long_line() -> Vec<u8> {
    line(&tool_result(&"x".repeat(LONG_LINE / 2)))
}

/// Returns the last line of the turn.
pub(crate) fn result() -> Vec<u8> {
    line(&json!({"type": "result", "subtype": "success", "is_error": false,
        "result": format!("<goto>{NEXT}</goto>"), "total_cost_usd": 0.0, "duration_ms": 1,
        "session_id": "22222222-2222-4222-8222-222222222222"}))
}

fn talk(number: usize) -> Vec<u8> {
    let words = "I read the file and see that \"parse\" returns\nbefore the last token. ";
    let code = "fn next(&mut self) -> Option<Token> {\n\tself.tokens.pop() // \\u00e4\n}\n";
    let text = json!({"type": "text", "text": words.repeat(1 + number % 7)});
    let used = json!({"type": "tool_use", "id": "toolu_1", "name": "Read",
        "input": {"file_path": "/home/user/project/src/lexer.rs"}});
    let mut lines = line(&assistant(&text));
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
