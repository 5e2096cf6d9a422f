//! A turn's part of a stream, line by line, and the messages in it.
//!
//! A process that stays writes all its turns into one stream. The start of each further turn stands in a file of
//! its own; a turn ends when nothing more will come of it after its result. A process that was given its prompt as
//! a file had one turn only, and all its output belongs to that turn.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::domain::id::MessageId;
use crate::domain::turn_offset::TurnOffset;
use crate::plain_file;
use crate::process::stream::background::TurnRemainder;
use crate::process::stream::{LONGEST_LINE, StreamParser};

/// The maximum size of the file with a turn's position, and of a prompt, in bytes.
const MAX_PASSAGE: u64 = 1024 * 1024;
const MAX_PROMPT: u64 = 256 * 1024 * 1024;

/// The kind of the lines that show a message while it is written; they are no part of the record.
const PARTIAL_MESSAGE: &str = "stream_event";

/// The kind of the lines that answer requests of the runtime, not of the workflow.
const CONTROL_RESPONSE: &str = "control_response";

/// A turn's part of a stream: its lines, in order. One that is no JSON is a text.
pub struct TurnTranscript {
    stream: BufReader<File>,
    /// The parser of the lines so far, which knows the turn's end; absent if the turn ends with the stream.
    read: Option<StreamParser>,
    over: bool,
    /// The message that asked, if that is known.
    message: Option<MessageId>,
    /// The path of the prompt, if it was given as a file.
    prompt: Option<PathBuf>,
}

/// The prompt and the reply of a turn, as far as they have left a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptAndReply {
    /// The prompt.
    pub prompt: Option<String>,
    /// Its final message; of a turn that has not ended, the last that it wrote.
    pub answer: Option<String>,
}

impl TurnTranscript {
    /// Returns the transcript of the turn of that name; `None` if it has left no stream, like a script's.
    #[must_use]
    pub fn find(steps: &Path, name: &str) -> Option<Self> {
        let file = |name: &str, ending: &str| steps.join(format!("{name}.{ending}"));
        let part = |stream, read, message, prompt| Self {
            stream: BufReader::new(stream),
            read,
            over: false,
            message,
            prompt,
        };
        if let Ok(stream) = plain_file::open(&file(name, "jsonl")) {
            let prompt = Some(file(name, "prompt")).filter(|prompt| prompt.exists());
            let read = prompt.is_none().then(StreamParser::default);
            return Some(part(stream, read, None, prompt));
        }
        let passage = plain_file::read(&file(name, "turn"), MAX_PASSAGE).ok()?;
        let passage: TurnOffset = serde_json::from_slice(&passage).ok()?;
        let mut stream = plain_file::open(&file(&passage.process, "jsonl")).ok()?;
        stream.seek(SeekFrom::Start(passage.from)).ok()?;
        let read = StreamParser::answer_to(passage.message.clone(), passage.spent);
        Some(part(stream, Some(read), Some(passage.message), None))
    }

    /// Returns the prompt and the reply in it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn said(mut self) -> io::Result<PromptAndReply> {
        let mut said = PromptAndReply::default();
        if let Some(prompt) = self.prompt.take() {
            said.prompt =
                Some(asked(&String::from_utf8_lossy(&plain_file::read(&prompt, MAX_PROMPT)?)));
        }
        let message = self.message.take();
        let mut wrote = None;
        for line in self.by_ref() {
            let line = line?;
            match line["type"].as_str() {
                Some("user") if said.prompt.is_none() && asks(&line, message.as_ref()) => {
                    said.prompt = text(&line["message"]["content"]);
                }
                Some("assistant") if line["parent_tool_use_id"].is_null() => {
                    wrote = text(&line["message"]["content"]).or(wrote);
                }
                Some("result") => said.answer = line["result"].as_str().map(str::to_owned),
                _ => {}
            }
        }
        // Of several results, the one that was judged is the answer.
        let judged = self.read.and_then(|read| read.result).and_then(|result| result.text);
        said.answer = judged.or(said.answer).or(wrote);
        Ok(said)
    }

    /// Returns whether a line repeats another message than the one that asked, after a result: tasks
    /// that are not waited for may still run then.
    fn begins_another(&mut self, line: &Value) -> bool {
        if line["type"] != "user"
            || line["isReplay"] != true
            || !line["message"]["content"].is_array()
        {
            return false;
        }
        let id = line["uuid"].as_str().map(MessageId::new);
        if self.message.is_none() {
            self.message.clone_from(&id);
        }
        let has_result = self.read.as_ref().is_some_and(|read| read.result.is_some());
        has_result && id != self.message
    }

    /// Reads a line, up to the maximum length of a turn's line.
    fn read_line(&mut self, line: &mut Vec<u8>) -> io::Result<usize> {
        self.stream.by_ref().take(LONGEST_LINE as u64).read_until(b'\n', line)
    }

    fn next_line(&mut self) -> io::Result<Option<Value>> {
        let mut line = Vec::new();
        while !self.over && self.read_line(&mut line)? > 0 {
            let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line));
            if !text.is_empty() {
                let value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
                if value["type"] == PARTIAL_MESSAGE {
                    line.clear();
                    continue;
                }
                if self.begins_another(&value) {
                    self.over = true;
                    return Ok(None);
                }
                self.over = self.read.as_mut().is_some_and(|read| ends(read, &line));
                if value["type"] != CONTROL_RESPONSE {
                    return Ok(Some(value));
                }
            }
            line.clear();
        }
        Ok(None)
    }
}

impl Iterator for TurnTranscript {
    type Item = io::Result<Value>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.next_line();
        self.over |= line.is_err();
        line.transpose()
    }
}

/// Returns whether a line, with its newline, is the last of the turn.
fn ends(read: &mut StreamParser, line: &[u8]) -> bool {
    read.feed(line).is_err() || read.remainder() == Some(TurnRemainder::Nothing)
}

/// Returns the prompt that a file holds as a message; an older one holds the prompt itself.
fn asked(file: &str) -> String {
    let messages = file.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut prompts = messages
        .filter(|message| message["type"] == "user" && message["uuid"].is_string())
        .filter_map(|message| text(&message["message"]["content"]));
    prompts.next().unwrap_or_else(|| file.to_owned())
}

/// Returns whether a line repeats the message that asked: the one of this id, else the first that is repeated.
fn asks(line: &Value, message: Option<&MessageId>) -> bool {
    match message {
        Some(message) => line["uuid"] == message.as_str(),
        None => line["isReplay"] == true,
    }
}

/// Returns the text of a message, without its other content; `None` if it has no text.
fn text(content: &Value) -> Option<String> {
    let text = match content {
        Value::String(text) => text.clone(),
        content => {
            let blocks = content.as_array()?.iter();
            blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
    };
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::usage::ProcessSpending;

    fn said(steps: &Path, name: &str) -> PromptAndReply {
        TurnTranscript::find(steps, name)
            .expect("it has left a stream")
            .said()
            .expect("it can be read")
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
    fn answer_is_the_result_that_was_judged() {
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
        let answer = said(steps.path(), "main-1-0").answer;
        assert_eq!(answer.as_deref(), Some("<result>one</result>"), "an empty one changes nothing");
    }

    #[test]
    fn each_turn_of_a_process_has_its_own_words() {
        let steps = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            std::fs::write(steps.path().join(name), text).expect("written");
        };
        let tool = "{\"type\":\"user\",\"uuid\":\"t\",\"message\":{\"content\":[{\"type\":\"tool_result\"}]}}\n";
        let result = "{\"type\":\"result\",\"result\":\"one\"}\n";
        let first = [&asked("a", "first"), tool, &wrote("thinking aloud"), result].concat();
        let second = [&asked("m", "second"), &wrote("two"), "{\"type\":\"assi"].concat();
        write("main-1-0.jsonl", &format!("{first}{second}"));
        let passage = TurnOffset {
            process: "main-1-0".to_owned(),
            from: first.len() as u64,
            spent: ProcessSpending::default(),
            message: MessageId::new("m"),
        };
        write("main-2-0.turn", &serde_json::to_string(&passage).expect("written"));
        let pair = |said: PromptAndReply| {
            (said.prompt.unwrap_or_default(), said.answer.unwrap_or_default())
        };
        assert_eq!(pair(said(steps.path(), "main-1-0")), ("first".into(), "one".into()));
        assert_eq!(pair(said(steps.path(), "main-2-0")), ("second".into(), "two".into()));
        assert!(TurnTranscript::find(steps.path(), "main-9-0").is_none());
    }

    #[test]
    fn a_long_prompt_is_in_a_file_of_its_own() {
        let steps = tempfile::tempdir().expect("a directory");
        std::fs::write(steps.path().join("main-1-0.jsonl"), wrote("half a")).expect("written");
        std::fs::write(steps.path().join("main-1-0.prompt"), "long").expect("written");
        let said = said(steps.path(), "main-1-0");
        assert_eq!(
            (said.prompt.as_deref(), said.answer.as_deref()),
            (Some("long"), Some("half a"))
        );
    }
}
