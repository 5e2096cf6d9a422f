//! A turn's part of a stream, line by line: its messages, the files that it changed, and an observer of it.
//!
//! A process that stays writes all its turns into one stream. The start of each further turn is in a separate file. A
//! turn ends when nothing more can follow its result. A process that got its prompt as a file had only one turn, and
//! all its output belongs to that turn.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use raymond_model::cassette::{FilePatch, TextEdit};
use raymond_model::id::{AgentId, MessageId, SessionId};
use raymond_model::time::Timestamp;
use raymond_model::tool_call::{ToolCall, ToolKind, ToolOutcome};
use raymond_model::turn::TurnId;
use raymond_store::plain_file;
use serde_json::Value;

use crate::background::TurnRemainder;
use crate::claude::events::of_line;
use crate::claude::message;
use crate::claude::stream::StreamParser;
use crate::claude::stream::activity::TurnActivity;
use crate::claude::stream::line::{
    AssembledLine, LineKind, RawField, StreamLine, StreamLineAssembler, get, text,
};
use crate::host::timestamp;
use crate::tool_calls::ToolCalls;
use crate::transcript::{ProcessFiles, TurnFiles};
use crate::turn_event::TurnEvent;
use crate::turn_progress::{LineTooLong, TurnResult};

/// The maximum size of a prompt, in bytes.
const MAX_PROMPT_BYTES: u64 = 256 * 1024 * 1024;

/// The number of bytes that are read at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// A turn's part of a stream.
#[derive(Debug)]
pub struct TurnTranscript {
    stream: File,
    /// The parser of the lines so far, which knows the turn's end; absent if the turn ends with the stream.
    read: Option<StreamParser>,
    is_over: bool,
    /// The id of the turn's message, if it is known.
    message: Option<MessageId>,
    /// The path of the prompt, if it was given as a file.
    prompt: Option<PathBuf>,
}

/// The prompt and the reply of a turn, as far as they have left a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptAndReply {
    pub prompt: Option<String>,
    /// Its final message; of a turn that has not ended, the last that it wrote.
    pub answer: Option<String>,
    /// The object that was given by the tool for that, as JSON.
    pub structured: Option<String>,
    /// Its tool calls, in order.
    pub calls: Vec<ToolCall>,
    /// The session of its process.
    pub session: Option<SessionId>,
    /// True if it ended without an error.
    pub has_succeeded: bool,
}

impl TurnTranscript {
    /// Returns the transcript of the turn of that name; `None` if it has left no stream, like a script's.
    pub fn find(steps: &Path, name: &str) -> Option<Self> {
        let files = TurnFiles::named(steps, name);
        let transcript =
            |stream, read, message, prompt| Self { stream, read, is_over: false, message, prompt };
        if let Ok(stream) = plain_file::open(&files.stream) {
            let prompt = Some(ProcessFiles::named(steps, name).prompt).filter(|path| path.exists());
            let read = prompt.is_none().then(StreamParser::default);
            return Some(transcript(stream, read, None, prompt));
        }
        let turn_offset = files.turn_offset()?;
        let mut stream =
            plain_file::open(&TurnFiles::named(steps, &turn_offset.process).stream).ok()?;
        stream.seek(SeekFrom::Start(turn_offset.from)).ok()?;
        let read = StreamParser::answer_to(turn_offset.message.clone(), turn_offset.spent);
        Some(transcript(stream, Some(read), Some(turn_offset.message), None))
    }

    /// Returns the prompt and the reply in it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn prompt_and_reply(self) -> io::Result<PromptAndReply> {
        self.recorded(&mut FileChanges::default())
    }

    /// Returns the prompt and the reply in it, and adds the changes of files that it tells.
    ///
    /// # Errors
    /// The error of the system.
    pub fn recorded(mut self, changes: &mut FileChanges) -> io::Result<PromptAndReply> {
        let mut found = PromptAndReply::default();
        if let Some(prompt) = self.prompt.take() {
            let file = plain_file::read(&prompt, MAX_PROMPT_BYTES)?;
            found.prompt = Some(prompt_in_file(&String::from_utf8_lossy(&file)));
        }
        let message = self.message.take();
        let (mut written, mut calls) = (None, ToolCalls::default());
        self.each(|_, event| {
            let Some(event) = event else { return Ok(()) };
            for happened in of_line(event) {
                if let Some(ended) = calls.take(happened) {
                    changes.take(ended, event.tool_use_result);
                }
            }
            if found.session.is_none() {
                found.session = text(event.session_id).map(|id| SessionId::new(&id));
            }
            match event.kind {
                LineKind::User if found.prompt.is_none() && asks(event, message.as_ref()) => {
                    found.prompt =
                        event.message_text().map(|text| message::as_asked(&text).to_owned());
                }
                LineKind::Assistant if event.is_of_main_agent() => {
                    written = event.message_text().or(written.take());
                }
                LineKind::Result => {
                    let result = TurnResult::read(event);
                    found.has_succeeded = !result.is_error;
                    (found.answer, found.structured) = (result.text, result.structured);
                }
                _ => {}
            }
            Ok(())
        })?;
        let approvals = self.read.as_ref().map(|read| &read.progress.approvals);
        found.calls = calls.finish(|id| approvals.is_some_and(|calls| calls.is_unanswered(id)));
        // Of several results, the judged result is the answer.
        let judged = self.read.and_then(|read| read.progress.result);
        let (judged, structured) =
            judged.map_or((None, None), |result| (result.text, result.structured));
        found.answer = judged.or(found.answer).or(written);
        found.structured = structured.or(found.structured);
        Ok(found)
    }

    /// Passes each line to `visit`. For a line that is too long to be held, only its short members are passed.
    ///
    /// # Errors
    /// The error of the system, or of `visit`.
    pub fn for_each_line(
        mut self,
        mut visit: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        self.each(|line, _| visit(line))
    }

    /// Passes each event of the turn to `visit`.
    ///
    /// # Errors
    /// The error of the system.
    pub fn for_each_event(mut self, mut visit: impl FnMut(TurnEvent)) -> io::Result<()> {
        self.each(|_, event| {
            event.map(of_line).into_iter().flatten().for_each(&mut visit);
            Ok(())
        })
    }

    /// Passes each line to `visit`, with the event that it is; partial messages and answers to the runtime's own
    /// requests are left out.
    fn each(
        &mut self,
        mut visit: impl FnMut(&str, Option<&StreamLine<'_>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut lines, mut chunk) = (StreamLineAssembler::default(), vec![0; CHUNK_BYTES]);
        while !self.is_over {
            let count = match self.stream.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                count => count?,
            };
            let mut visited = Ok(());
            let take = |line: AssembledLine<'_>| {
                if visited.is_ok() && !self.is_over {
                    visited = self.line(&line, &mut visit);
                }
            };
            if count > 0 {
                lines.feed(&chunk[..count], take);
            } else {
                lines.end(take);
            }
            visited?;
            self.is_over |= count == 0;
        }
        Ok(())
    }

    fn line(
        &mut self,
        line: &AssembledLine<'_>,
        visit: &mut impl FnMut(&str, Option<&StreamLine<'_>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let (bytes, is_whole) = match line {
            AssembledLine::Whole(line) => (*line, true),
            AssembledLine::TooLong { members, .. } => (members.trim_ascii(), false),
        };
        let text = String::from_utf8_lossy(bytes);
        let event = StreamLine::parse(&text);
        let kind = event.as_ref().map(|event| event.kind);
        if kind == Some(LineKind::Partial) {
            return Ok(());
        }
        if event.as_ref().is_some_and(|event| self.begins_another(event)) {
            self.is_over = true;
            return Ok(());
        }
        if let Some(read) = &mut self.read {
            match &event {
                Some(event) if is_whole => read.take(event),
                Some(event) => read.take_reduced(event, LineTooLong { line: 0 }),
                None => {}
            }
            // The runtime gives up a turn whose answer is too long.
            self.is_over = read.check_answer().is_err()
                || read.progress.remainder() == Some(TurnRemainder::Nothing);
        }
        if text.is_empty() || kind == Some(LineKind::ControlResponse) {
            return Ok(());
        }
        visit(&text, event.as_ref())
    }

    /// Returns whether a line repeats another message than the turn's, after a result. Tasks that the turn does not
    /// wait for may still run then.
    fn begins_another(&mut self, event: &StreamLine<'_>) -> bool {
        if event.kind != LineKind::User || !event.is_repetition() || !event.has_blocks() {
            return false;
        }
        let id = event.message_id();
        if self.message.is_none() {
            self.message.clone_from(&id);
        }
        // Without such tasks a session that is not idle yet answers a message of a person, within the turn.
        let has_result_and_tasks = |read: &StreamParser| {
            read.progress.result.is_some()
                && (read.progress.background.has_running()
                    || !read.progress.background.session_runs())
        };
        self.read.as_ref().is_some_and(has_result_and_tasks) && id != self.message
    }
}

/// Returns the prompt that a file holds as a message; an older one holds the prompt itself.
fn prompt_in_file(file: &str) -> String {
    let messages = file.lines().filter_map(StreamLine::parse);
    let mut prompts = messages
        .filter(|event| event.kind == LineKind::User && event.message_id().is_some())
        .filter_map(|event| event.message_text());
    prompts.next().map_or_else(|| file.to_owned(), |text| message::as_asked(&text).to_owned())
}

/// Returns whether a line repeats the turn's message: the message with this id, or without an id the first repeated
/// one.
fn asks(event: &StreamLine<'_>, message: Option<&MessageId>) -> bool {
    match message {
        Some(message) => event.message_id().as_ref() == Some(message),
        None => event.is_repetition(),
    }
}

// The files that a turn changed with Claude Code's own tools for files, read from its stream.
//
// A call counts when its answer reports that it was done. The changes of other tools, such as commands, are not in the
// stream, but commands are counted.

/// The changes of a turn.
#[derive(Debug, Default)]
pub struct FileChanges {
    /// The changes, in order.
    pub changes: Vec<ToolChange>,
    /// The number of changes that are not reported in full.
    pub unknown: u64,
    /// The number of commands that were run.
    pub commands: u64,
}

/// A change by a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChange {
    /// The path, as the tool was given it.
    pub path: String,
    pub tool: String,
    /// The change.
    pub patch: FilePatch,
}

impl FileChanges {
    /// Takes a call that has its output, and the program's report about it.
    pub(crate) fn take(&mut self, call: &ToolCall, result: RawField<'_>) {
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

/// Returns the change of a call; `None` if it is not reported in full.
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

// Observes turns from outside, by the files they leave, without asking their runtime.
// Permits are not in the journal. But a turn that is begun has a file from then on, so one listing
// of the directory of all turns tells which of the due turns have been begun.

/// The number of bytes that are read of a stream at once, so that many long ones do not block others.
const TAIL_CHUNK_BYTES: u64 = 1024 * 1024;

/// Passes each turn that has been begun to `visit`, by its [stem](TurnId::stem); some of them twice.
///
/// # Errors
/// The system's error; a directory that does not exist counts as empty.
pub fn for_each_started(steps: &Path, mut visit: impl FnMut(&str)) -> io::Result<()> {
    let entries = match std::fs::read_dir(steps) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        let name = name.to_str().and_then(|name| name.rsplit_once('.'));
        if let Some((stem, "jsonl" | "turn")) = name {
            visit(stem);
        }
    }
    Ok(())
}

/// Returns the turns of an agent that have been begun, in their order.
///
/// # Errors
/// The system's error.
pub(crate) fn turns_of(steps: &Path, agent: &AgentId) -> io::Result<BTreeSet<TurnId>> {
    let name = agent.file_name();
    let mut turns = BTreeSet::new();
    for_each_started(steps, |stem| {
        turns.extend(stem.strip_prefix(&*name).and_then(|rest| {
            let (step, turn) = rest.strip_prefix('-')?.split_once('-')?;
            Some(TurnId {
                agent: agent.clone(),
                step: step.parse().ok()?,
                turn: turn.parse().ok()?,
            })
        }));
    })?;
    Ok(turns)
}

/// Returns the last turn of an agent that was begun, if any was.
///
/// # Errors
/// The system's error.
pub fn last(steps: &Path, agent: &AgentId) -> io::Result<Option<TurnId>> {
    Ok(turns_of(steps, agent)?.pop_last())
}

/// An observer of a turn.
#[derive(Debug)]
pub struct TurnTail {
    path: PathBuf,
    stream: Option<File>,
    from: u64,
    position: u64,
    /// The observed activity.
    pub activity: TurnActivity,
    /// The time of its last output, or of its beginning.
    pub progressed: Timestamp,
}

impl TurnTail {
    /// Observes a turn that was begun; `keep` is the number of the last items of its conversation that are kept.
    pub fn of(steps: &Path, turn: &TurnId, keep: usize) -> Self {
        let files = TurnFiles::of(steps, turn);
        let (process, from) = files.place();
        Self {
            path: TurnFiles::named(steps, &process).stream,
            stream: None,
            from,
            position: from,
            activity: TurnActivity::keeping(keep),
            progressed: changed(&files.turn_offset).unwrap_or_default(),
        }
    }

    /// Reads the new output; returns whether there was any.
    ///
    /// # Errors
    /// The system's error.
    pub fn read_new(&mut self) -> io::Result<bool> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => match plain_file::open(&self.path) {
                Ok(mut file) => {
                    file.seek(SeekFrom::Start(self.position))?;
                    self.stream.insert(file)
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            },
        };
        let file = stream.metadata()?;
        self.progressed = self.progressed.max(file.modified().map(timestamp).unwrap_or_default());
        if file.len() < self.position && !self.activity.ended {
            // The turn has ended and its stream has been compacted: its lines have moved.
            self.position = stream.seek(SeekFrom::Start(self.from))?;
            self.activity = self.activity.restarted();
        }
        if self.activity.ended || file.len() <= self.position {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        let count = stream.take(TAIL_CHUNK_BYTES).read_to_end(&mut bytes)?;
        self.position += count as u64;
        self.activity.feed(&bytes);
        Ok(count > 0)
    }
}

/// Returns the time at which a file was last written, if it exists.
pub fn changed(path: &Path) -> Option<Timestamp> {
    std::fs::metadata(path).and_then(|file| file.modified()).map(timestamp).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::claude::events::tests::called;
    use crate::turn_progress::MAX_LINE_BYTES;
    use raymond_model::turn::TurnOffset;
    use raymond_model::usage::ProcessSpending;

    fn read(steps: &Path, name: &str) -> PromptAndReply {
        let transcript = TurnTranscript::find(steps, name).expect("it has left a stream");
        transcript.prompt_and_reply().expect("it can be read")
    }

    fn asked(id: &str, text: &str) -> String {
        let content = json!([{ "type": "text", "text": text }]);
        let line = json!({ "type": "user", "uuid": id, "isReplay": true, "message": { "content": content } });
        format!("{line}\n")
    }

    fn wrote(text: &str) -> String {
        let message = json!({ "content": [{ "type": "text", "text": text }] });
        format!("{}\n", json!({ "type": "assistant", "message": message }))
    }

    #[test]
    fn empty_task_result_does_not_replace_answer() {
        let steps = tempfile::tempdir().expect("a directory");
        let result = |more: &str| format!("{{\"type\":\"result\",{more}}}\n");
        let of_task = "\"origin\":{\"kind\":\"task-notification\"},\"result\":\"\"";
        let lines = [
            asked("a", "begin"),
            "{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[{\"task_id\":\"t\",\"task_type\":\"local_bash\"}]}\n".to_owned(),
            result("\"result\":\"<result>one</result>\""),
            "{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[]}\n".to_owned(),
            "{\"type\":\"system\",\"subtype\":\"init\"}\n".to_owned(),
            result(of_task),
        ];
        std::fs::write(steps.path().join("main-1-0.jsonl"), lines.concat()).expect("written");
        let answer = read(steps.path(), "main-1-0").answer;
        assert_eq!(answer.as_deref(), Some("<result>one</result>"), "an empty one changes nothing");
    }

    #[test]
    fn each_turn_of_shared_process_has_own_prompt_and_answer() {
        let steps = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            std::fs::write(steps.path().join(name), text).expect("written");
        };
        let tool = "{\"type\":\"user\",\"uuid\":\"t\",\"message\":{\"content\":[{\"type\":\"tool_result\"}]}}\n";
        let result = "{\"type\":\"result\",\"result\":\"one\"}\n";
        let call = |id: &str| format!("{}\n", called(id, "Read", &json!({})));
        let first =
            [&asked("a", "first"), &call("t"), tool, &wrote("thinking aloud"), result].concat();
        let second =
            [&asked("m", "second"), &call("u"), &wrote("two"), "{\"type\":\"assi"].concat();
        write("main-1-0.jsonl", &format!("{first}{second}"));
        let turn_offset = TurnOffset {
            process: "main-1-0".to_owned(),
            from: first.len() as u64,
            spent: ProcessSpending::default(),
            message: MessageId::new("m"),
        };
        write("main-2-0.turn", &serde_json::to_string(&turn_offset).expect("written"));
        let calls = |name| read(steps.path(), name).calls.into_iter().map(|call| call.id);
        assert_eq!(calls("main-1-0").collect::<Vec<_>>(), ["t"]);
        assert_eq!(calls("main-2-0").collect::<Vec<_>>(), ["u"]);
        let pair = |found: PromptAndReply| {
            (found.prompt.unwrap_or_default(), found.answer.unwrap_or_default())
        };
        assert_eq!(pair(read(steps.path(), "main-1-0")), ("first".into(), "one".into()));
        assert_eq!(pair(read(steps.path(), "main-2-0")), ("second".into(), "two".into()));
        assert!(TurnTranscript::find(steps.path(), "main-9-0").is_none());
    }

    #[test]
    fn long_prompt_is_read_from_its_own_file() {
        let steps = tempfile::tempdir().expect("a directory");
        std::fs::write(steps.path().join("main-1-0.jsonl"), wrote("half a")).expect("written");
        std::fs::write(steps.path().join("main-1-0.prompt"), "long").expect("written");
        let found = read(steps.path(), "main-1-0");
        assert_eq!(
            (found.prompt.as_deref(), found.answer.as_deref()),
            (Some("long"), Some("half a"))
        );
    }

    #[test]
    fn overlong_line_is_reduced_to_short_members() {
        let steps = tempfile::tempdir().expect("a directory");
        let long = "x".repeat(MAX_LINE_BYTES);
        let result =
            format!("{{\"type\":\"result\",\"result\":\"{long}\",\"total_cost_usd\":1}}\n");
        let lines = [asked("a", "begin"), wrote("a beginning"), result, wrote("later")];
        std::fs::write(steps.path().join("main-1-0.jsonl"), lines.concat()).expect("written");
        let found = read(steps.path(), "main-1-0");
        let pair = (found.prompt.as_deref(), found.answer.as_deref());
        assert_eq!(pair, (Some("begin"), Some("a beginning")));
        let mut last = String::new();
        let transcript = TurnTranscript::find(steps.path(), "main-1-0").expect("a stream");
        let visit = |line: &str| {
            line.clone_into(&mut last);
            Ok(())
        };
        transcript.for_each_line(visit).expect("read");
        assert_eq!(last, "{\"type\":\"result\",\"total_cost_usd\":1}");
    }
}

#[cfg(test)]
mod file_changes_tests {
    use serde_json::json;

    use super::*;
    use crate::claude::events::tests::{answered, called as call};
    use crate::claude::stream::line::StreamLine;
    use crate::tool_calls::ToolCalls;

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
            for happened in of_line(&event) {
                if let Some(ended) = calls.take(happened) {
                    changes.take(ended, event.tool_use_result);
                }
            }
        }
        changes
    }

    #[test]
    fn answered_calls_are_changes_and_failed_calls_are_not() {
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

#[cfg(test)]
mod turn_tail_tests {
    use std::io::Write;

    use super::*;
    use raymond_model::id::MessageId;
    use raymond_model::turn::TurnOffset;
    use raymond_model::usage::ProcessSpending;
    use raymond_store::proof::StepProofs;

    fn turn(agent: &AgentId, step: u64, turn: u32) -> TurnId {
        TurnId { agent: agent.clone(), step, turn }
    }

    fn tool(name: &str) -> String {
        let block = format!(r#"{{"type":"tool_use","id":"{name}","name":"{name}","input":{{}}}}"#);
        format!("{{\"type\":\"assistant\",\"message\":{{\"content\":[{block}]}}}}\n")
    }

    #[test]
    fn started_turns_are_listed_from_directory() {
        let steps = tempfile::tempdir().expect("a directory");
        let agent = AgentId::main().child(1);
        for name in
            ["main.1-2-0.jsonl", "main.1-10-1.turn", "main.1-11-0.prompt", "main-30-0.jsonl", "x"]
        {
            File::create(steps.path().join(name)).expect("made");
        }
        let mut found = Vec::new();
        for_each_started(steps.path(), |stem| found.push(stem.to_owned())).expect("read");
        found.sort();
        assert_eq!(found, ["main-30-0", "main.1-10-1", "main.1-2-0"]);
        assert_eq!(last(steps.path(), &agent).expect("read"), Some(turn(&agent, 10, 1)));
        assert_eq!(last(steps.path(), &agent.child(1)).expect("read"), None);
        assert_eq!(last(&steps.path().join("none"), &agent).expect("read"), None);
    }

    #[test]
    fn later_turn_of_process_is_read_from_its_offset() {
        let steps = tempfile::tempdir().expect("a directory");
        let (first, second) = (turn(&AgentId::main(), 1, 0), turn(&AgentId::main(), 2, 0));
        let path = steps.path().join("main-1-0.jsonl");
        let options = &mut File::options();
        let mut stream = options.append(true).create(true).open(&path).expect("made");
        let earlier = format!("{}{{\"type\":\"result\"}}\n", tool("Read"));
        stream.write_all(earlier.as_bytes()).expect("written");
        let turn_offset = TurnOffset {
            process: "main-1-0".into(),
            from: earlier.len() as u64,
            spent: ProcessSpending::default(),
            message: MessageId::new("m"),
        };
        TurnFiles::of(steps.path(), &second)
            .note(&turn_offset, &StepProofs::default())
            .expect("noted");
        let mut tail = TurnTail::of(steps.path(), &second, 0);
        assert!(!tail.read_new().expect("read"));
        stream.write_all(tool("Bash").as_bytes()).expect("written");
        assert!(tail.read_new().expect("read") && !tail.read_new().expect("read"));
        assert_eq!(tail.activity.doing.as_deref(), Some("Bash"));
        assert!(tail.progressed > Timestamp::default());

        stream.set_len(earlier.len() as u64).expect("cut");
        stream.write_all(b"{\"type\":\"result\"}\n").expect("written");
        while tail.read_new().expect("read") {}
        assert!(tail.activity.ended, "a stream that has become shorter is read again");

        let mut tail = TurnTail::of(steps.path(), &first, 0);
        while tail.read_new().expect("read") {}
        assert!(tail.activity.ended);
    }
}
