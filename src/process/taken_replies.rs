//! The replies of a script that the agents of a run were given, kept beside the streams of the turns.
//!
//! Most lists are taken in order, and the number of an agent's turns tells the next one. Where the choice depends on
//! more, a line for each turn says which reply it was given, so that a run that is resumed goes on as it would have.
//! A turn that is run again has the same identity; its later line counts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::start_failure::unwritable;
use crate::domain::turn::{TAKEN_REPLIES_FILE, TurnFailure, TurnId};
use crate::plain_file;

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
    pub fn before(&self, turn: &TurnId, key: &str) -> Vec<usize> {
        let mut taken = self.taken.borrow_mut();
        let taken = taken.get_or_insert_with(|| self.read());
        let first = TurnId { agent: turn.agent.clone(), step: 0, turn: 0 };
        let own = taken.range(first..).take_while(|(other, _)| other.agent == turn.agent);
        let of_list = own.filter(|(other, (list, _))| *other != turn && list == key);
        of_list.map(|(_, (_, reply))| *reply).collect()
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
        let mut taken = self.taken.borrow_mut();
        let taken = taken.get_or_insert_with(|| self.read());
        taken.insert(line.turn, (line.key, line.reply));
        Ok(())
    }

    fn read(&self) -> RepliesByTurn {
        let text = plain_file::read(&self.path, MAX_BYTES).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        // A line that was cut off by a crash belongs to a turn that is run again.
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok());
        lines.map(|TakenReply { turn, key, reply }| (turn, (key, reply))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::AgentId;

    fn turn(step: u64, turn: u32) -> TurnId {
        TurnId { agent: AgentId::main(), step, turn }
    }

    #[test]
    fn taken_replies_outlive_their_process_and_a_repeated_turn_takes_its_own_again() {
        let steps = tempfile::tempdir().expect("a directory");
        let taken = TakenReplies::new(steps.path());
        assert!(taken.before(&turn(1, 0), "A.md").is_empty());
        taken.note(&turn(1, 0), "A.md", 2).expect("written");
        taken.note(&turn(1, 1), "A.md", 0).expect("written");
        taken.note(&turn(2, 0), "B.md", 1).expect("written");
        let child = TurnId { agent: AgentId::main().child(1), step: 1, turn: 0 };
        taken.note(&child, "A.md", 5).expect("written");
        let path = steps.path().join(TAKEN_REPLIES_FILE);
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, text + "{\"agent\":\"main\",\"st").expect("written");
        let later = TakenReplies::new(steps.path());
        assert_eq!(later.before(&turn(3, 0), "A.md"), [2, 0]);
        assert_eq!(later.before(&turn(1, 1), "A.md"), [2]);
        assert!(later.before(&child, "A.md").is_empty());
        assert_eq!(later.before(&turn(3, 0), "B.md"), [1]);
    }
}
