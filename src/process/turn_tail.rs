//! Observes turns from outside, by the files they leave, without asking their runtime.
//! Permits are not in the journal. But a turn that is begun has a file from then on, so one listing
//! of the directory of all turns tells which of the due turns have been begun.
//!
//! Proofs that raymond began a turn.
//!
//! Without them, any program that can write into the directory of all turns could put a finished stream there before
//! the turn begins.
//!
//! A process has its proof in a file beside its stream, which is written first; a further turn has it in the
//! file of its offset.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::domain::id::AgentId;
use crate::domain::time::Timestamp;
use crate::domain::turn::{TurnId, TurnOffset};
use crate::plain_file;
use crate::process::stream::activity::TurnActivity;
use crate::process::transcript::TurnFiles;
use crate::proof::StepProofs;

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

/// The longest file of a proof, in bytes.
const MAX_PROOF: u64 = 1024;

/// The kind of the proof that a process was started by raymond.
const PROCESS: &str = "process";

/// The kind of the proof that a turn was asked of a process.
const TURN_OFFSET: &str = "passage";

/// The offset of a turn and its proof, side by side.
#[derive(Debug, Serialize, Deserialize)]
struct ProvenTurnOffset {
    #[serde(flatten)]
    turn_offset: TurnOffset,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proof: String,
}

impl StepProofs {
    /// Writes the proof that a process is about to be started; does nothing without a key.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn prove_start(&self, process: &str, file: &Path) -> std::io::Result<()> {
        if self.key.is_none() {
            return Ok(());
        }
        let proof = self.proof(PROCESS, process.as_bytes());
        plain_file::create(file)?.write_all(proof.as_bytes())
    }

    /// Returns the offset of a turn with its proof, as they are stored.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub(super) fn stored_turn_offset(
        &self,
        stem: &str,
        turn_offset: &TurnOffset,
    ) -> serde_json::Result<Vec<u8>> {
        let content = serde_json::to_vec(&(stem, turn_offset))?;
        let proof = self.proof(TURN_OFFSET, &content);
        serde_json::to_vec(&ProvenTurnOffset { turn_offset: turn_offset.clone(), proof })
    }

    /// Returns whether stored bytes are the offset of this turn, as raymond wrote it.
    pub(super) fn believe_turn_offset(&self, stem: &str, stored: &[u8]) -> bool {
        let Ok(ProvenTurnOffset { turn_offset, proof }) = serde_json::from_slice(stored) else {
            return false;
        };
        let content = serde_json::to_vec(&(stem, &turn_offset)).unwrap_or_default();
        !turn_offset.process.contains('/') && self.believe(TURN_OFFSET, &content, &proof)
    }

    /// Returns whether a file proves that raymond started the process.
    pub(super) fn believe_start(&self, process: &str, file: &Path) -> bool {
        let proof = plain_file::read(file, MAX_PROOF).unwrap_or_default();
        self.believe(PROCESS, process.as_bytes(), &String::from_utf8_lossy(&proof))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::domain::id::MessageId;
    use crate::domain::turn::TurnOffset;
    use crate::domain::usage::ProcessSpending;
    use crate::proof::StepProofs;

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

#[cfg(test)]
mod turn_proof_tests {
    use super::*;
    use crate::domain::id::MessageId;
    use crate::domain::usage::ProcessSpending;
    use crate::proof::ProofKey;

    fn proofs(key: &str) -> StepProofs {
        StepProofs { key: Some(ProofKey::new(key)), believes_unproven: false }
    }

    #[test]
    fn start_proof_is_valid_only_for_its_key_and_process() {
        let steps = tempfile::tempdir().expect("a directory");
        let file = steps.path().join("main-1-0.started");
        assert!(!proofs("k").believe_start("main-1-0", &file), "nothing is there");
        assert!(StepProofs::default().believe_start("main-1-0", &file));
        assert!(StepProofs { believes_unproven: true, ..proofs("k") }.believe_start("x", &file));
        proofs("k").prove_start("main-1-0", &file).expect("written");
        assert!(proofs("k").believe_start("main-1-0", &file));
        assert!(!proofs("l").believe_start("main-1-0", &file), "another key");
        assert!(!proofs("k").believe_start("main-2-0", &file), "another process");
    }

    #[test]
    fn turn_offset_proof_is_valid_only_for_its_turn_and_content() {
        let (process, message) = ("main-1-0".to_owned(), MessageId::new("m"));
        let turn_offset =
            TurnOffset { process, from: 7, spent: ProcessSpending::default(), message };
        let stored = proofs("k").stored_turn_offset("main-2-0", &turn_offset).expect("JSON");
        let is_believed =
            |key: &str, stem: &str, stored: &[u8]| proofs(key).believe_turn_offset(stem, stored);
        assert!(is_believed("k", "main-2-0", &stored));
        assert!(!is_believed("l", "main-2-0", &stored) && !is_believed("k", "main-3-0", &stored));
        let changed = String::from_utf8(stored).expect("text").replace(":7", ":8");
        assert!(!is_believed("k", "main-2-0", changed.as_bytes()));
        let plain = serde_json::to_vec(&turn_offset).expect("JSON");
        assert!(!is_believed("k", "main-2-0", &plain) && !is_believed("k", "main-2-0", b"{"));
        assert!(StepProofs::default().believe_turn_offset("main-2-0", &plain));
        let outside = TurnOffset { process: "../x".to_owned(), ..turn_offset };
        let stored = proofs("k").stored_turn_offset("main-2-0", &outside).expect("JSON");
        assert!(!is_believed("k", "main-2-0", &stored));
    }
}
