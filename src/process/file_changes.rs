//! The files that a turn changed with Claude Code's own tools for files, read from its stream.
//!
//! A call counts when its answer says that it was done. The changes of other tools, such as commands, are not in the
//! stream; commands are counted.

use std::collections::VecDeque;

use serde_json::Value;

use super::stream::line::{ContentBlock, LineKind, StreamLine, StreamMessage, get, text};
use crate::domain::cassette::{FilePatch, TextEdit};

/// The number of calls that are remembered until they are answered.
const MAX_OPEN_CALLS: usize = 256;

/// The tools that change files, and the one that runs commands.
const FILE_TOOLS: [&str; 4] = ["Write", "Edit", "MultiEdit", "NotebookEdit"];
const COMMAND_TOOL: &str = "Bash";

/// The changes of a turn.
#[derive(Debug, Default)]
pub struct FileChanges {
    /// The changes, in order.
    pub changes: Vec<ToolChange>,
    /// The number of changes that are not told in full.
    pub unknown: u64,
    /// The number of commands that were run.
    pub commands: u64,
    open: VecDeque<OpenToolCall>,
}

/// A change by a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChange {
    /// The path, as the tool was given it.
    pub path: String,
    /// The tool.
    pub tool: String,
    /// The change.
    pub patch: FilePatch,
}

/// A call that has not been answered.
#[derive(Debug)]
struct OpenToolCall {
    id: String,
    tool: String,
    input: Value,
}

impl FileChanges {
    /// Takes in an event of the stream.
    pub(in crate::process) fn take(&mut self, event: &StreamLine<'_>) {
        if !matches!(event.kind, LineKind::Assistant | LineKind::User) {
            return;
        }
        let Some(message) = get::<StreamMessage<'_>>(event.message) else { return };
        for content in &message.content {
            match (event.kind, &*content.kind) {
                (LineKind::Assistant, "tool_use") => self.called(content),
                (LineKind::User, "tool_result") => self.answered(content, event),
                _ => {}
            }
        }
    }

    fn called(&mut self, content: &ContentBlock<'_>) {
        let (Some(id), Some(tool)) = (text(content.id), text(content.name)) else { return };
        let is_known = tool == COMMAND_TOOL || FILE_TOOLS.contains(&&*tool);
        // A message that is written in parts may repeat a call.
        if !is_known || self.open.iter().any(|call| call.id == id) {
            return;
        }
        if self.open.len() == MAX_OPEN_CALLS {
            self.open.pop_front();
        }
        let input = if tool == COMMAND_TOOL { None } else { get(content.input) };
        self.open.push_back(OpenToolCall { id, tool, input: input.unwrap_or_default() });
    }

    fn answered(&mut self, content: &ContentBlock<'_>, event: &StreamLine<'_>) {
        let Some(id) = text(content.tool_use_id) else { return };
        let Some(place) = self.open.iter().position(|call| call.id == id) else { return };
        let Some(call) = self.open.remove(place) else { return };
        let failed = get::<bool>(content.is_error) == Some(true);
        if call.tool == COMMAND_TOOL {
            // A command that failed may have changed files, too.
            self.commands += 1;
        } else if !failed {
            match call.change(get(event.tool_use_result)) {
                Some(change) => self.changes.push(change),
                None => self.unknown += 1,
            }
        }
    }
}

impl OpenToolCall {
    /// Returns the change; `None` if it is not told in full.
    fn change(self, result: Option<Value>) -> Option<ToolChange> {
        let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
        let file = text(&self.input, "file_path").or_else(|| text(&self.input, "notebook_path"))?;
        let edit = |value: &Value| {
            let all = value["replace_all"].as_bool().unwrap_or_default();
            Some(TextEdit { old: text(value, "old_string")?, new: text(value, "new_string")?, all })
        };
        let patch = match &*self.tool {
            "Write" => FilePatch::Content(text(&self.input, "content")?),
            "Edit" => FilePatch::of_edits(vec![edit(&self.input)?]),
            "MultiEdit" => {
                let edits = self.input["edits"].as_array()?;
                FilePatch::of_edits(edits.iter().map(edit).collect::<Option<_>>()?)
            }
            // The number of a cell alone does not tell its place in the file.
            _ => FilePatch::Content(text(&result?, "updated_file")?),
        };
        Some(ToolChange { path: file, tool: self.tool, patch })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, tool: &str, input: &Value) -> Value {
        let block = json!({ "type": "tool_use", "id": id, "name": tool, "input": input });
        json!({ "type": "assistant", "message": { "content": [block] } })
    }

    fn answer(id: &str, is_error: bool, result: &Value) -> Value {
        let block = json!({ "type": "tool_result", "tool_use_id": id, "is_error": is_error, "content": "" });
        json!({ "type": "user", "message": { "content": [block] }, "tool_use_result": result })
    }

    fn changes(lines: &[Value]) -> FileChanges {
        let mut changes = FileChanges::default();
        for line in lines {
            let line = line.to_string();
            changes.take(&StreamLine::parse(&line).expect("an event"));
        }
        changes
    }

    #[test]
    fn answered_calls_are_changes_and_failed_ones_are_none() {
        let found = changes(&[
            call("1", "Write", &json!({ "file_path": "/w/a", "content": "x" })),
            call(
                "2",
                "Edit",
                &json!({ "file_path": "/w/b", "old_string": "o", "new_string": "n", "replace_all": true }),
            ),
            call("3", "Write", &json!({ "file_path": "/w/c", "content": "refused" })),
            call(
                "4",
                "Edit",
                &json!({ "file_path": "/w/d", "old_string": "", "new_string": "made" }),
            ),
            call("5", "Write", &json!({ "file_path": "/w/e", "content": "never answered" })),
            answer("2", false, &Value::Null),
            answer("1", false, &Value::Null),
            answer("3", true, &Value::Null),
            answer("4", false, &Value::Null),
        ]);
        let paths: Vec<&str> = found.changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["/w/b", "/w/a", "/w/d"]);
        let edit = TextEdit { old: "o".to_owned(), new: "n".to_owned(), all: true };
        assert_eq!(found.changes[0].patch, FilePatch::Edits(vec![edit]));
        assert_eq!(found.changes[2].patch, FilePatch::Content("made".to_owned()));
        assert_eq!((found.unknown, found.commands), (0, 0));
    }

    #[test]
    fn notebooks_need_their_new_text_and_commands_are_only_counted() {
        let notebook = json!({ "notebook_path": "/w/n.ipynb", "new_source": "1" });
        let edits = json!([{ "old_string": "a", "new_string": "b" }, { "old_string": "c", "new_string": "d" }]);
        let found = changes(&[
            call("1", "NotebookEdit", &notebook),
            answer("1", false, &json!({ "updated_file": "{}" })),
            call("2", "NotebookEdit", &notebook),
            answer("2", false, &json!("done")),
            call("3", "Bash", &json!({ "command": "touch x" })),
            answer("3", true, &Value::Null),
            call("4", "MultiEdit", &json!({ "file_path": "m", "edits": edits })),
            answer("4", false, &Value::Null),
            call("5", "Read", &json!({ "file_path": "r" })),
            answer("5", false, &Value::Null),
        ]);
        assert_eq!(found.changes[0].patch, FilePatch::Content("{}".to_owned()));
        assert!(matches!(&found.changes[1].patch, FilePatch::Edits(edits) if edits.len() == 2));
        assert_eq!((found.changes.len(), found.unknown, found.commands), (2, 1, 1));
    }
}
