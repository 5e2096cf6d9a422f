//! The events of a turn, read from a line of Claude Code's stream. Pure.

use raymond_model::tool_call::ToolKind;

use crate::claude::stream::approvals::{denials, reads_like_a_refusal};
use crate::claude::stream::line::{ContentBlock, LineKind, StreamLine, StreamMessage, get, text};
use crate::turn_event::TurnEvent;
use crate::turn_progress::TurnResult;

/// Returns what a line tells.
pub(crate) fn of_line(event: &StreamLine<'_>) -> Vec<TurnEvent> {
    match event.kind {
        LineKind::Assistant => of_blocks(event, of_model),
        LineKind::User => {
            let is_message = event.is_repetition() && event.is_of_main_agent();
            let read = event.message_text().filter(|_| is_message);
            let read = read.map(|text| TurnEvent::Read { text });
            read.into_iter().chain(of_blocks(event, of_tool)).collect()
        }
        LineKind::System => match text(event.subtype).as_deref() {
            Some("api_retry") => {
                vec![TurnEvent::Waits { attempt: get(event.attempt).unwrap_or(1) }]
            }
            Some("permission_denied") => {
                let id = text(event.tool_use_id);
                id.map(|id| TurnEvent::ToolRefused { id }).into_iter().collect()
            }
            _ => Vec::new(),
        },
        LineKind::Result => {
            let refused = denials(event).into_iter();
            let refused = refused.map(|call| TurnEvent::ToolRefused { id: call.id });
            let TurnResult { text, structured, is_error, .. } = TurnResult::read(event);
            let is_of_task = event.origin.is_some_and(|origin| origin.get().starts_with('{'));
            let result = TurnEvent::Result { text, structured, is_error, is_of_task };
            refused.chain([result]).collect()
        }
        _ => Vec::new(),
    }
}

fn of_blocks(
    event: &StreamLine<'_>,
    read: impl Fn(&StreamLine<'_>, &ContentBlock<'_>) -> Option<TurnEvent>,
) -> Vec<TurnEvent> {
    let message = get::<StreamMessage<'_>>(event.message);
    let blocks = message.map(|message| message.content).unwrap_or_default();
    blocks.iter().filter_map(|block| read(event, block)).collect()
}

fn of_model(event: &StreamLine<'_>, block: &ContentBlock<'_>) -> Option<TurnEvent> {
    let parent = text(event.parent_tool_use_id);
    Some(match &*block.kind {
        "text" => TurnEvent::Wrote { text: text(block.text).unwrap_or_default(), parent },
        "thinking" => TurnEvent::Thought { text: text(block.thinking).unwrap_or_default(), parent },
        "tool_use" => {
            let tool = text(block.name)?;
            TurnEvent::ToolCalled {
                id: text(block.id)?,
                kind: kind(&tool),
                tool,
                input: get(block.input).unwrap_or_default(),
                parent,
                at: event.written_at(),
            }
        }
        _ => return None,
    })
}

fn of_tool(event: &StreamLine<'_>, block: &ContentBlock<'_>) -> Option<TurnEvent> {
    if block.kind != "tool_result" {
        return None;
    }
    let output = block.answer_text().unwrap_or_default();
    let is_error = get(block.is_error) == Some(true);
    let is_refused = is_error && reads_like_a_refusal(&output);
    let (id, at) = (text(block.tool_use_id)?, event.written_at());
    Some(TurnEvent::ToolEnded { id, output, is_error, is_refused, at })
}

/// Returns the kind of a tool of Claude Code.
pub(crate) fn kind(tool: &str) -> ToolKind {
    match tool {
        "Bash" => ToolKind::Shell,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        "WebFetch" | "WebSearch" => ToolKind::Web,
        "Agent" | "Task" => ToolKind::Agent,
        _ if tool.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tool_calls::{MAX_OUTPUT_BYTES, ToolCalls};
    use crate::turn_progress::MAX_LINE_BYTES;
    use raymond_model::tool_call::{ToolCall, ToolOutcome};

    pub(crate) fn called(id: &str, tool: &str, input: &Value) -> Value {
        let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        json!({ "type": "assistant", "message": { "content": [block] } })
    }

    pub(crate) fn answered(id: &str, is_error: bool, content: &str) -> Value {
        let block = json!({ "type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": content });
        json!({ "type": "user", "message": { "content": [block] } })
    }

    fn at(mut line: Value, second: u32) -> Value {
        line["timestamp"] = json!(format!("2026-01-15T14:30:{second:02}.250Z"));
        line
    }

    fn under(mut line: Value, parent: &str) -> Value {
        line["parent_tool_use_id"] = json!(parent);
        line
    }

    fn calls(lines: &[Value]) -> Vec<ToolCall> {
        let mut calls = ToolCalls::default();
        for line in lines {
            let line = line.to_string();
            for event in of_line(&StreamLine::parse(&line).expect("an event")) {
                calls.take(event);
            }
        }
        calls.finish(|id| id == "unanswered")
    }

    fn outcomes(calls: &[ToolCall]) -> Vec<(&str, ToolOutcome)> {
        calls.iter().map(|call| (&*call.id, call.outcome)).collect()
    }

    #[test]
    fn parallel_calls_stay_in_order_with_their_own_outputs_and_times() {
        let bash = |command: &str| json!({ "command": command, "description": "try" });
        let found = calls(&[
            at(called("1", "Bash", &bash("make")), 1),
            at(called("2", "mcp__db__query", &json!({ "query": "q" })), 2),
            called("1", "Bash", &bash("make")),
            at(answered("2", false, "rows"), 3),
            at(answered("1", true, "Exit code 2"), 9),
            answered("1", false, "again"),
            answered("unknown", false, "x"),
        ]);
        assert_eq!(outcomes(&found), [("1", ToolOutcome::Failed), ("2", ToolOutcome::Ok)]);
        assert_eq!((&*found[0].title, found[0].kind), ("make", ToolKind::Shell));
        assert_eq!(
            (&found[0].input, found[0].output.as_deref()),
            (&bash("make"), Some("Exit code 2"))
        );
        assert_eq!((found[0].duration_ms, found[1].duration_ms), (Some(8000), Some(1000)));
        assert_eq!(found[1].kind, ToolKind::Mcp);
    }

    #[test]
    fn duration_is_unknown_without_the_time_of_the_call() {
        let found = calls(&[called("1", "Read", &json!({})), at(answered("1", false, ""), 3)]);
        assert_eq!(found[0].duration_ms, None);
        assert!(found[0].started_at.is_none() && found[0].ended_at.is_some());
        let value = json!(found[0]);
        assert_eq!((&value["duration_ms"], &value["outcome"]), (&Value::Null, &json!("ok")));
    }

    #[test]
    fn refusal_is_known_by_its_event_its_words_or_the_result() {
        let tried = |id: &str| called(id, "Bash", &json!({ "command": "curl" }));
        let denied =
            json!({ "type": "system", "subtype": "permission_denied", "tool_use_id": "event" });
        let denials = ["result", "unanswered"].map(|id| json!({ "tool_use_id": id }));
        let mut lines = ["event", "words", "result", "unanswered", "open"].map(tried).to_vec();
        lines.extend([
            denied,
            answered("event", true, "no"),
            answered("words", true, "This command requires approval"),
            answered("result", true, "A person has refused this call."),
            answered("unanswered", true, "A person has refused this call."),
            json!({ "type": "result", "permission_denials": denials }),
        ]);
        let refused = ["event", "words", "result"].map(|id| (id, ToolOutcome::Refused));
        let unfinished = ["unanswered", "open"].map(|id| (id, ToolOutcome::Unfinished));
        assert_eq!(outcomes(&calls(&lines)), [&refused[..], &unfinished].concat());
    }

    #[test]
    fn call_of_a_sub_agent_names_the_call_that_started_it() {
        let found = calls(&[
            called("1", "Agent", &json!({ "description": "look", "prompt": "x" })),
            under(called("2", "Grep", &json!({ "pattern": "y" })), "1"),
            under(answered("2", false, "found"), "1"),
            answered("1", false, "done"),
        ]);
        let parents: Vec<_> = found.iter().map(|call| call.parent.as_deref()).collect();
        assert_eq!(parents, [None, Some("1")]);
        assert_eq!((found[0].kind, &*found[0].title), (ToolKind::Agent, "look"));
        assert!(found.iter().all(|call| call.outcome == ToolOutcome::Ok));
    }

    #[test]
    fn huge_output_is_cut_and_huge_input_is_kept() {
        let long = "ü".repeat(MAX_LINE_BYTES / 8);
        let input = json!({ "file_path": "a", "content": long });
        let found = calls(&[called("1", "Write", &input), answered("1", false, &long)]);
        assert_eq!((&found[0].input, &*found[0].title), (&input, "a"));
        let output = found[0].output.as_deref().unwrap_or_default();
        assert!(output.len() <= MAX_OUTPUT_BYTES + 3 && output.ends_with("ü…"));
    }
}
