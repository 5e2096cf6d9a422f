//! The files that a turn changed with Claude Code's own tools for files, read from its stream.
//!
//! A call counts when its answer says that it was done. The changes of other tools, such as commands, are not in the
//! stream; commands are counted.

use serde_json::Value;

use super::stream::line::{RawField, get};
use crate::domain::cassette::{FilePatch, TextEdit};
use crate::domain::tool_call::{ToolCall, ToolKind, ToolOutcome};

/// The changes of a turn.
#[derive(Debug, Default)]
pub struct FileChanges {
    /// The changes, in order.
    pub changes: Vec<ToolChange>,
    /// The number of changes that are not told in full.
    pub unknown: u64,
    /// The number of commands that were run.
    pub commands: u64,
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

impl FileChanges {
    /// Takes in a call that has its output, and what the program tells of it.
    pub(super) fn take(&mut self, call: &ToolCall, result: RawField<'_>) {
        match (call.kind, call.outcome) {
            // A command that failed may have changed files, too.
            (ToolKind::Shell, _) => self.commands += 1,
            (ToolKind::Edit, ToolOutcome::Ok) => match change(call, get(result)) {
                Some(change) => self.changes.push(change),
                None => self.unknown += 1,
            },
            _ => {}
        }
    }
}

/// Returns the change of a call; `None` if it is not told in full.
fn change(call: &ToolCall, result: Option<Value>) -> Option<ToolChange> {
    let ToolCall { tool, input, .. } = call;
    let text = |value: &Value, key: &str| value[key].as_str().map(str::to_owned);
    let file = text(input, "file_path").or_else(|| text(input, "notebook_path"))?;
    let edit = |value: &Value| {
        let all = value["replace_all"].as_bool().unwrap_or_default();
        Some(TextEdit { old: text(value, "old_string")?, new: text(value, "new_string")?, all })
    };
    let patch = match &**tool {
        "Write" => FilePatch::Content(text(input, "content")?),
        "Edit" => FilePatch::of_edits(vec![edit(input)?]),
        "MultiEdit" => {
            let edits = input["edits"].as_array()?;
            FilePatch::of_edits(edits.iter().map(edit).collect::<Option<_>>()?)
        }
        // The number of a cell alone does not tell its place in the file.
        _ => FilePatch::Content(text(&result?, "updated_file")?),
    };
    Some(ToolChange { path: file, tool: tool.clone(), patch })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::process::stream::line::StreamLine;
    use crate::process::tool_calls::ToolCalls;
    use crate::process::tool_calls::tests::{answered, called as call};

    fn answer(id: &str, is_error: bool, result: &Value) -> Value {
        let mut line = answered(id, is_error, "");
        line["tool_use_result"] = result.clone();
        line
    }

    fn changes(lines: &[Value]) -> FileChanges {
        let (mut calls, mut changes) = (ToolCalls::default(), FileChanges::default());
        for line in lines {
            let line = line.to_string();
            let event = StreamLine::parse(&line).expect("an event");
            calls.take(&event, |call, result| changes.take(call, result));
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
