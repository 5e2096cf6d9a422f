//! Observes turns from outside, by the files they leave, without asking their runtime.
//! Permits are not in the journal. But a turn that is begun has a file from then on, so one listing
//! of the directory of all turns tells which of the due turns have been begun.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::stream::activity::TurnActivity;
use crate::transcript::TurnFiles;
use raymond_model::id::AgentId;
use raymond_model::time::Timestamp;
use raymond_model::turn::TurnId;
use raymond_store::plain_file;

/// The number of bytes that are read of a stream at once, so that many long ones do not block others.
const CHUNK_BYTES: u64 = 1024 * 1024;

/// Passes each turn that has been begun to `visit`, by its [stem](TurnId::stem); some of them twice.
///
/// # Errors
/// The system's error; a directory that does not exist counts as empty.
pub fn for_each_begun(steps: &Path, mut visit: impl FnMut(&str)) -> std::io::Result<()> {
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

/// Returns the last turn of an agent that was begun, if any was.
///
/// # Errors
/// The system's error.
pub fn last(steps: &Path, agent: &AgentId) -> std::io::Result<Option<TurnId>> {
    let own = agent.file_name();
    let mut last = None;
    for_each_begun(steps, |stem| {
        let number = stem.strip_prefix(&*own).and_then(|rest| {
            let (step, turn) = rest.strip_prefix('-')?.split_once('-')?;
            Some((step.parse::<u64>().ok()?, turn.parse::<u32>().ok()?))
        });
        last = last.max(number);
    })?;
    Ok(last.map(|(step, turn)| TurnId { agent: agent.clone(), step, turn }))
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
        let turn_offset = files.turn_offset();
        let stem = turn_offset
            .as_ref()
            .map_or_else(|| turn.stem(), |turn_offset| turn_offset.process.clone());
        let from = turn_offset.map_or(0, |turn_offset| turn_offset.from);
        Self {
            path: steps.join(format!("{stem}.jsonl")),
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
    pub fn read_new(&mut self) -> std::io::Result<bool> {
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
        let count = stream.take(CHUNK_BYTES).read_to_end(&mut bytes)?;
        self.position += count as u64;
        self.activity.feed(&bytes);
        Ok(count > 0)
    }
}

/// Returns the time at which a file was last written, if it exists.
pub fn changed(path: &Path) -> Option<Timestamp> {
    std::fs::metadata(path).and_then(|file| file.modified()).map(timestamp).ok()
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
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
        for_each_begun(steps.path(), |stem| found.push(stem.to_owned())).expect("read");
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
