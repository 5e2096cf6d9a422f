//! The stream of a turn that a script answers.
//!
//! Its lines are those of Claude Code, so that what reads the turns of a run need not know who answers.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::start_failure::unwritable;
use super::transcript::TurnFiles;
use crate::domain::turn::{TurnFailure, TurnId, TurnReply};
use crate::plain_file;

/// The longest first line of a stream, which has the prompt, in bytes.
const MAX_FIRST_LINE: u64 = 512 * 1024 * 1024;

/// The stream of a turn that has begun.
#[derive(Debug)]
pub struct ScriptedStream {
    path: PathBuf,
    /// The open file; `None` during a pause.
    file: Option<File>,
}

impl ScriptedStream {
    /// Begins the stream of a turn with its prompt, in place of that of an earlier try.
    ///
    /// # Errors
    /// The failure of the turn, if the file cannot be written.
    pub fn begin(steps: &Path, turn: &TurnId, prompt: &str) -> Result<Self, TurnFailure> {
        let path = TurnFiles::of(steps, turn).stream;
        match plain_file::create(&path) {
            Ok(file) => {
                let mut stream = Self { path, file: Some(file) };
                let message =
                    json!({ "role": "user", "content": [{ "type": "text", "text": prompt }] });
                stream.write(&[
                    json!({ "type": "user", "uuid": turn.stem(), "isReplay": true, "message": message }),
                ])?;
                Ok(stream)
            }
            Err(error) => Err(unwritable(&path, &error)),
        }
    }

    /// Closes the file until the turn ends, because the number of open files is limited.
    pub fn pause(&mut self) {
        self.file = None;
    }

    /// Ends the stream with the turn's reply.
    ///
    /// # Errors
    /// The failure of the turn, if the file cannot be written.
    pub fn end(mut self, reply: &TurnReply) -> Result<(), TurnFailure> {
        let TurnReply { text, cost, duration_ms, structured, .. } = reply;
        let structured: Option<Value> =
            structured.as_deref().and_then(|object| serde_json::from_str(object).ok());
        let message = json!({ "role": "assistant", "content": [{ "type": "text", "text": text }] });
        let mut result = json!({
            "type": "result", "subtype": "success", "is_error": false, "result": text,
            "total_cost_usd": cost, "duration_ms": duration_ms,
        });
        if let Some(structured) = structured {
            result["structured_output"] = structured;
        }
        self.write(&[json!({ "type": "assistant", "message": message }), result])
    }

    /// Returns whether the stream of a turn was begun here, and not by a program.
    pub fn is_of(steps: &Path, turn: &TurnId) -> bool {
        let mut line = Vec::new();
        let read = plain_file::open(&TurnFiles::of(steps, turn).stream).and_then(|file| {
            BufReader::new(file.take(MAX_FIRST_LINE)).read_until(b'\n', &mut line)
        });
        let first: Option<Value> = read.ok().and_then(|_| serde_json::from_slice(&line).ok());
        first.is_some_and(|first| first["type"] == "user" && first["uuid"] == turn.stem())
    }

    /// Removes the streams of turns that were begun and are begun again.
    pub fn discard(steps: &Path, turns: &[TurnId]) {
        for turn in turns {
            // If it stays, the turn is only shown as one that has begun.
            let _ = std::fs::remove_file(TurnFiles::of(steps, turn).stream);
        }
    }

    /// Writes lines at once, so that a reader sees a whole message or none.
    fn write(&mut self, lines: &[Value]) -> Result<(), TurnFailure> {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let text = lines.join("\n") + "\n";
        let write = |file: &mut File| file.write_all(text.as_bytes());
        let written = match &mut self.file {
            Some(file) => write(file),
            None => plain_file::open_with(&self.path, OpenOptions::new().append(true))
                .and_then(|mut file| write(&mut file)),
        };
        written.map_err(|error| unwritable(&self.path, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::AgentId;
    use crate::process::turn_transcript::{PromptAndReply, TurnTranscript};

    fn read(steps: &Path, turn: &TurnId) -> Option<PromptAndReply> {
        let transcript = TurnTranscript::find(steps, &turn.stem());
        transcript.map(|transcript| transcript.prompt_and_reply().expect("it can be read"))
    }

    #[test]
    fn transcript_has_prompt_at_once_and_answer_at_the_end() {
        let steps = tempfile::tempdir().expect("a directory");
        let steps = steps.path();
        let turn = TurnId { agent: AgentId::main(), step: 1, turn: 0 };
        let pair = |answer: Option<&str>| {
            let (prompt, answer) = (Some("ask\nme".to_owned()), answer.map(str::to_owned));
            Some(PromptAndReply { prompt, answer, ..PromptAndReply::default() })
        };
        let mut stream = ScriptedStream::begin(steps, &turn, "ask\nme").expect("written");
        stream.pause();
        assert!(TurnFiles::of(steps, &turn).are_there());
        assert_eq!(read(steps, &turn), pair(None));
        let text = "I say\n<result>done</result>".to_owned();
        let reply = TurnReply { text, ..TurnReply::default() };
        stream.end(&reply).expect("written");
        assert_eq!(read(steps, &turn), pair(Some("I say\n<result>done</result>")));
        drop(ScriptedStream::begin(steps, &turn, "ask\nme").expect("written"));
        assert_eq!(read(steps, &turn), pair(None), "the turn is run again");
        assert!(ScriptedStream::is_of(steps, &turn));
        let other = TurnId { step: 2, ..turn.clone() };
        std::fs::write(steps.join("main-2-0.jsonl"), "{\"type\":\"system\"}\n").expect("written");
        assert!(!ScriptedStream::is_of(steps, &other));
        ScriptedStream::discard(steps, std::slice::from_ref(&turn));
        assert_eq!(read(steps, &turn), None);
    }

    #[test]
    fn unwritable_stream_fails_turn_as_storage() {
        let steps = tempfile::tempdir().expect("a directory");
        let turn = TurnId { agent: AgentId::main(), step: 1, turn: 0 };
        let failure = ScriptedStream::begin(&steps.path().join("none"), &turn, "ask");
        let failure = failure.expect_err("no such directory");
        assert_eq!(failure.cause, crate::domain::turn::FailureCause::Storage);
        assert!(failure.message.contains("main-1-0.jsonl"), "{}", failure.message);
    }
}
