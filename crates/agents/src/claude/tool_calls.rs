//! The tool calls of a turn, and the time that the model took of each turn, read from streams.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use memchr::{memmem, memrchr};
use raymond_model::tool_call::{ToolCall, ToolKind, ToolOutcome, beginning};
use raymond_model::turn::TurnId;
use raymond_store::plain_file;
use serde_json::Value;

use crate::claude::stream::approvals::{PermissionDenial, reads_like_a_refusal};
use crate::claude::stream::line::{
    ContentBlock, LineKind, RawField, StreamLine, StreamMessage, get, text,
};
use crate::transcript::TurnFiles;

// The tool calls of a turn, read from its stream. Pure.

/// The number of bytes that are kept of an output.
const MAX_OUTPUT_BYTES: usize = 4096;

/// The calls so far, in order.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls(pub(super) Vec<ToolCall>);

impl ToolCalls {
    /// Takes in an event of the stream; each call that it ends goes to `ended`, with what the program tells of it.
    pub(crate) fn take(
        &mut self,
        event: &StreamLine<'_>,
        mut ended: impl FnMut(&ToolCall, RawField<'_>),
    ) {
        match event.kind {
            LineKind::Assistant | LineKind::User => {
                let Some(message) = get::<StreamMessage<'_>>(event.message) else { return };
                for content in &message.content {
                    match (event.kind, &*content.kind) {
                        (LineKind::Assistant, "tool_use") => self.called(content, event),
                        (LineKind::User, "tool_result") => {
                            if let Some(call) = self.answered(content, event) {
                                ended(call, event.tool_use_result);
                            }
                        }
                        _ => {}
                    }
                }
            }
            LineKind::System if text(event.subtype).as_deref() == Some("permission_denied") => {
                self.refused(event.tool_use_id);
            }
            LineKind::Result => {
                let denials: Option<Vec<PermissionDenial<'_>>> = get(event.permission_denials);
                denials.into_iter().flatten().for_each(|denial| self.refused(denial.id));
            }
            _ => {}
        }
    }

    fn find(&mut self, id: RawField<'_>) -> Option<&mut ToolCall> {
        let id = text(id)?;
        self.0.iter_mut().rev().find(|call| call.id == id)
    }

    fn called(&mut self, content: &ContentBlock<'_>, event: &StreamLine<'_>) {
        let (Some(id), Some(tool)) = (text(content.id), text(content.name)) else { return };
        // A message that is written in parts may repeat a call.
        if self.find(content.id).is_some() {
            return;
        }
        let input = get(content.input).unwrap_or_default();
        self.0.push(ToolCall {
            id,
            parent: text(event.parent_tool_use_id),
            kind: kind(&tool),
            tool,
            title: ToolCall::title(&input),
            input,
            outcome: ToolOutcome::Unfinished,
            output: None,
            started_at: event.written_at(),
            ended_at: None,
            duration_ms: None,
        });
    }

    /// Takes in an output; returns the call, if it had none before.
    fn answered(
        &mut self,
        content: &ContentBlock<'_>,
        event: &StreamLine<'_>,
    ) -> Option<&ToolCall> {
        let call = self.find(content.tool_use_id).filter(|call| call.output.is_none())?;
        let output = content.answer_text().unwrap_or_default();
        let has_failed = get(content.is_error) == Some(true);
        call.outcome = match call.outcome {
            ToolOutcome::Refused => ToolOutcome::Refused,
            _ if has_failed && reads_like_a_refusal(&output) => ToolOutcome::Refused,
            _ if has_failed => ToolOutcome::Failed,
            _ => ToolOutcome::Ok,
        };
        call.output = Some(beginning(output, MAX_OUTPUT_BYTES));
        call.ended_at = event.written_at();
        call.duration_ms = call.started_at.and_then(|start| Some(call.ended_at?.since(start)));
        Some(call)
    }

    fn refused(&mut self, id: RawField<'_>) {
        if let Some(call) = self.find(id) {
            call.outcome = ToolOutcome::Refused;
        }
    }

    /// Returns the calls. Those whose refusal only means that nobody answered in time `are_unanswered`.
    pub(crate) fn finish(mut self, are_unanswered: impl Fn(&str) -> bool) -> Vec<ToolCall> {
        for call in self.0.iter_mut().filter(|call| are_unanswered(&call.id)) {
            call.outcome = ToolOutcome::Unfinished;
        }
        self.0
    }
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "Bash" => ToolKind::Shell,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        "WebFetch" | "WebSearch" => ToolKind::Web,
        "Agent" | "Task" => ToolKind::Agent,
        _ if tool.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

// The time that the model took of each turn, as the results in the streams tell it.
//
// A result tells the time of all requests to the model that its process has made so far; what has come to it since the
// result before is that of the turn.

/// The bytes before the end of a turn's output in which its result is looked for.
const TAIL_BYTES: u64 = 64 * 1024;

/// The most bytes that are read for a run, so that the result for a long run comes soon, too.
const MAX_BYTES: u64 = 128 * 1024 * 1024;

/// The turns that one process served: the places in its stream where they begin, and their indices.
type ServedTurns = Vec<(u64, usize)>;

/// Returns the time that the model took in each turn, in milliseconds; `None` if it is not known.
pub fn read(steps: &Path, turns: &[TurnId]) -> Vec<Option<u64>> {
    let mut processes: HashMap<String, ServedTurns> = HashMap::new();
    for (index, turn) in turns.iter().enumerate() {
        let (process, from) = TurnFiles::of(steps, turn).place();
        processes.entry(process).or_default().push((from, index));
    }
    let mut times = vec![None; turns.len()];
    let mut left = MAX_BYTES;
    for (process, mut served) in processes {
        served.sort_unstable();
        if let Ok(stream) = plain_file::open(&TurnFiles::named(steps, &process).stream) {
            // Turns that cannot be read are left out, and the rest is reported.
            let _ = read_process(stream, &served, &mut left, &mut times);
        }
    }
    times
}

fn read_process(
    mut stream: File,
    served: &[(u64, usize)],
    left: &mut u64,
    times: &mut [Option<u64>],
) -> std::io::Result<()> {
    let length = stream.metadata()?.len();
    let mut before = match served.first() {
        Some((0, _)) | None => Some(0),
        Some((first, _)) => reported_before(&mut stream, 0, *first, left)?,
    };
    for (place, (from, index)) in served.iter().enumerate() {
        let end = served.get(place + 1).map_or(length, |(next, _)| *next);
        let reported = reported_before(&mut stream, *from, end, left)?;
        if let Some(slot) = times.get_mut(*index) {
            *slot = before.zip(reported).map(|(before, total)| total.saturating_sub(before));
        }
        before = reported;
    }
    Ok(())
}

/// Returns the time that the last result between two places reports, if there is one shortly before the second.
fn reported_before(
    stream: &mut File,
    from: u64,
    end: u64,
    left: &mut u64,
) -> std::io::Result<Option<u64>> {
    let begin = from.max(end.saturating_sub(TAIL_BYTES));
    let length = end.saturating_sub(begin);
    if length > *left {
        return Ok(None);
    }
    *left -= length;
    stream.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    stream.take(length).read_to_end(&mut tail)?;
    Ok(last_reported(&tail))
}

/// Returns the time in the last result of some lines, of which the first may be cut.
fn last_reported(lines: &[u8]) -> Option<u64> {
    let mut rest = lines;
    loop {
        let end = rest.trim_ascii_end().len();
        if end == 0 {
            return None;
        }
        let begin = memrchr(b'\n', &rest[..end]).map_or(0, |at| at + 1);
        let line = &rest[begin..end];
        if memmem::find(line, br#""duration_api_ms""#).is_some()
            && let Ok(event) = serde_json::from_slice::<Value>(line)
            && event["type"] == "result"
        {
            return event["duration_api_ms"].as_u64();
        }
        rest = &rest[..begin];
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::turn_progress::MAX_LINE_BYTES;

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
            calls.take(&StreamLine::parse(&line).expect("an event"), |_, _| {});
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

#[cfg(test)]
mod model_times_tests {
    use serde_json::json;

    use super::*;
    use raymond_model::id::AgentId;

    fn turn(step: u64) -> TurnId {
        TurnId { agent: AgentId::parse("main").expect("an agent"), step, turn: 0 }
    }

    fn result(so_far: u64) -> String {
        format!("{}\n", json!({ "type": "result", "duration_ms": 9, "duration_api_ms": so_far }))
    }

    #[test]
    fn time_of_a_turn_is_what_came_to_that_of_its_process() {
        let steps = tempfile::tempdir().expect("a directory");
        let first = format!("{{\"type\":\"user\"}}\n{}", result(40));
        let second = format!("{}{{\"type\":\"system\"}}\n", result(100));
        let stream = steps.path().join(format!("{}.jsonl", turn(1).stem()));
        std::fs::write(&stream, format!("{first}{second}{{\"type\":\"assi")).expect("written");
        let served = [(0, 0), (first.len() as u64, 1)];
        let mut times = vec![None; 2];
        let open = || plain_file::open(&stream).expect("a stream");
        read_process(open(), &served, &mut { MAX_BYTES }, &mut times).expect("read");
        assert_eq!(times, [Some(40), Some(60)]);
        assert_eq!(read(steps.path(), &[turn(1), turn(2)]), [Some(100), None]);

        let mut later = vec![None];
        let alone = [(first.len() as u64, 0)];
        read_process(open(), &alone, &mut { MAX_BYTES }, &mut later).expect("read");
        assert_eq!(later, [Some(60)], "the turn before is not asked for");
        let mut none = vec![None; 2];
        read_process(open(), &served, &mut 1, &mut none).expect("read");
        assert_eq!(none, [None, None], "no more is read than may be");
    }

    #[test]
    fn only_a_whole_result_tells_a_time() {
        assert_eq!(last_reported(b""), None);
        assert_eq!(last_reported(result(7).as_bytes()), Some(7));
        assert_eq!(last_reported(b"{\"type\":\"result\",\"duration_api_ms\":"), None);
        let answer = json!({ "type": "assistant", "text": "\"duration_api_ms\":3" });
        assert_eq!(last_reported(format!("{}{answer}\n", result(7)).as_bytes()), Some(7));
    }
}
