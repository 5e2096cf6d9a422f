//! The stream of a turn that a script answers, and the replies that a script's turns were given.
//!
//! Its lines are those of Claude Code, so that what reads the turns of a run need not know who answers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::transcript::TurnFiles;
use crate::transcript::{unreadable, unwritable};
use raymond_model::turn::{TAKEN_REPLIES_FILE, TurnFailure, TurnId, TurnReply};
use raymond_store::plain_file;

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
            // If the file stays, the only effect is that the turn is shown as begun.
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

// The replies of a script that the agents of a run were given, kept beside the streams of the turns.
//
// Most lists are taken in order, and the number of an agent's turns tells the next one. Where the choice depends on
// more, a line for each turn says which reply it was given, so that a run that is resumed goes on as it would have.
// A turn that is run again has the same identity; its later line counts.

/// The most bytes that are read of it.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// A reply that a turn was given.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct TakenReply {
    #[serde(flatten)]
    turn: TurnId,
    key: String,
    reply: usize,
}

/// The replies by turn: the key of the list, and the place in it.
type RepliesByTurn = BTreeMap<TurnId, (String, usize)>;

/// The replies that were given.
#[derive(Debug)]
pub struct TakenReplies {
    path: PathBuf,
    /// The replies by turn, once they have been read.
    taken: RefCell<Option<RepliesByTurn>>,
}

impl TakenReplies {
    /// Returns those of a run, whose turns leave their streams in `steps`.
    pub fn new(steps: &Path) -> Self {
        Self { path: steps.join(TAKEN_REPLIES_FILE), taken: RefCell::default() }
    }

    /// Returns the places of the replies that an agent was given of a list, in the order of its turns, without that of
    /// this turn.
    ///
    /// # Errors
    /// The failure of the turn, if the file cannot be read.
    pub fn before(&self, turn: &TurnId, key: &str) -> Result<Vec<usize>, TurnFailure> {
        let mut taken = self.taken.borrow_mut();
        if taken.is_none() {
            *taken = Some(self.read()?);
        }
        let taken = taken.get_or_insert_default();
        let first = TurnId { agent: turn.agent.clone(), step: 0, turn: 0 };
        let earlier = taken.range(first..).take_while(|(other, _)| other.agent == turn.agent);
        let of_list = earlier.filter(|(other, (list, _))| *other != turn && list == key);
        Ok(of_list.map(|(_, (_, reply))| *reply).collect())
    }

    /// Notes the reply that a turn is given.
    ///
    /// # Errors
    /// The failure of the turn, if the file cannot be written.
    pub fn note(&self, turn: &TurnId, key: &str, reply: usize) -> Result<(), TurnFailure> {
        let line = TakenReply { turn: turn.clone(), key: key.to_owned(), reply };
        let write = || {
            let text = serde_json::to_string(&line).map_err(std::io::Error::from)? + "\n";
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o600);
            plain_file::open_with(&self.path, &mut options)?.write_all(text.as_bytes())
        };
        write().map_err(|error| unwritable(&self.path, &error))?;
        // If they have not been read yet, they are read with this one.
        if let Some(taken) = &mut *self.taken.borrow_mut() {
            taken.insert(line.turn, (line.key, line.reply));
        }
        Ok(())
    }

    fn read(&self) -> Result<RepliesByTurn, TurnFailure> {
        let text = plain_file::if_there(plain_file::read(&self.path, MAX_BYTES));
        let text = text.map_err(|error| unreadable(&self.path, &error))?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        // A line that was cut off by a crash belongs to a turn that is run again.
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(lines.map(|TakenReply { turn, key, reply }| (turn, (key, reply))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::turn_transcript::{PromptAndReply, TurnTranscript};
    use raymond_model::id::AgentId;

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
            let has_succeeded = answer.is_some();
            Some(PromptAndReply { prompt, answer, has_succeeded, ..PromptAndReply::default() })
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
        assert_eq!(failure.cause, raymond_model::turn::FailureCause::Storage);
        assert!(failure.message.contains("main-1-0.jsonl"), "{}", failure.message);
    }
}

#[cfg(test)]
mod taken_replies_tests {
    use super::*;
    use raymond_model::id::AgentId;

    fn turn(step: u64, turn: u32) -> TurnId {
        TurnId { agent: AgentId::main(), step, turn }
    }

    #[test]
    fn taken_replies_outlive_their_process_and_a_repeated_turn_takes_its_reply_again() {
        let steps = tempfile::tempdir().expect("a directory");
        let taken = TakenReplies::new(steps.path());
        let before =
            |taken: &TakenReplies, turn: &TurnId, key: &str| taken.before(turn, key).expect("read");
        assert!(before(&taken, &turn(1, 0), "A.md").is_empty(), "the file is missing");
        taken.note(&turn(1, 0), "A.md", 2).expect("written");
        taken.note(&turn(1, 1), "A.md", 0).expect("written");
        taken.note(&turn(2, 0), "B.md", 1).expect("written");
        let child = TurnId { agent: AgentId::main().child(1), step: 1, turn: 0 };
        taken.note(&child, "A.md", 5).expect("written");
        let path = steps.path().join(TAKEN_REPLIES_FILE);
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, text + "{\"agent\":\"main\",\"st").expect("written");
        let later = TakenReplies::new(steps.path());
        assert_eq!(before(&later, &turn(3, 0), "A.md"), [2, 0]);
        assert_eq!(before(&later, &turn(1, 1), "A.md"), [2]);
        assert!(before(&later, &child, "A.md").is_empty());
        assert_eq!(before(&later, &turn(3, 0), "B.md"), [1]);
    }

    #[test]
    fn unreadable_replies_fail_the_turn_and_name_the_file() {
        let place = tempfile::tempdir().expect("a directory");
        let file = |name: &str| place.path().join(name).join(TAKEN_REPLIES_FILE);
        for name in ["directory", "link", "long", "below"] {
            std::fs::create_dir(place.path().join(name)).expect("made");
        }
        std::fs::create_dir(file("directory")).expect("made");
        std::os::unix::fs::symlink("nowhere", file("link")).expect("made");
        File::create(file("long")).and_then(|file| file.set_len(MAX_BYTES + 1)).expect("made");
        std::fs::write(place.path().join("below/file"), "").expect("written");
        for name in ["directory", "link", "long", "below/file"] {
            let taken = TakenReplies::new(&place.path().join(name));
            let failure = taken.before(&turn(1, 0), "A.md").expect_err(name);
            assert_eq!(failure.cause, raymond_model::turn::FailureCause::Storage);
            let start = format!("{}: cannot be read: ", file(name).display());
            assert!(failure.message.starts_with(&start), "{}", failure.message);
        }
        let taken = TakenReplies::new(&place.path().join("none"));
        assert_eq!(taken.before(&turn(1, 0), "A.md"), Ok(Vec::new()), "there is no such file");
    }
}
