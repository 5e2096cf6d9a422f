//! Records of worktrees, written before git begins with a worktree.
//!
//! After a crash they tell which parts of the repository are raymond's own.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Result as IoResult};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::WorkingDirs;
use raymond_model::id::AgentId;
use raymond_model::json_mistake::placed_mistake;
use raymond_store::plain_file;
use raymond_store::plain_file::replace::{FileReplacement, sync_directory};

/// The longest record, in bytes.
const MAX_LENGTH: u64 = 1024 * 1024;

/// The ending of a record's file.
const ENDING: &str = ".json";

/// The content of the `.gitignore` in the directory of worktrees: it hides everything.
const IGNORED: &[u8] = b"*\n";

/// A worktree as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRecord {
    /// The agent that the worktree belongs to.
    pub agent: AgentId,
    /// Its branch, which did not exist before.
    pub branch: String,
    /// The commit the branch begins at.
    pub base: String,
    /// The directory in its repository that the run works in: empty, or a path.
    pub prefix: String,
    /// The commit of the snapshot whose files it begins with, if it begins with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Its progress.
    #[serde(flatten)]
    pub stage: WorktreeStage,
}

/// The progress of a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum WorktreeStage {
    /// It is being made. All of it is raymond's, and nobody has worked in it.
    #[serde(rename = "begun")]
    Creating,
    /// It is there.
    Ready,
    /// It is being removed.
    #[serde(rename = "going")]
    Removing {
        /// The commit with all its content.
        kept: String,
        /// The ref of that commit, if a ref was made for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found_by: Option<String>,
    },
}

impl WorkingDirs {
    /// Returns the file of a record.
    pub fn record_file(&self, agent: &AgentId) -> PathBuf {
        self.trees().join(format!("{}{ENDING}", agent.file_name()))
    }

    /// Returns the record of an agent's worktree, if there is one.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn record(&self, agent: &AgentId) -> Result<Option<WorktreeRecord>, String> {
        let path = self.record_file(agent);
        let unreadable = |why: String| {
            format!("cannot read {}, which describes a worktree: {why}", path.display())
        };
        match plain_file::read(&path, MAX_LENGTH) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|error| unreadable(placed_mistake(&error)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Returns the recorded worktrees, in the order of their agents.
    ///
    /// # Errors
    /// The records cannot be read.
    pub fn records(&self) -> Result<Vec<WorktreeRecord>, String> {
        let unreadable = |why: &dyn std::fmt::Display| {
            format!("cannot read {}, where the worktrees are: {why}", self.trees().display())
        };
        let entries = match std::fs::read_dir(self.trees()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unreadable(&error)),
        };
        let mut records = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(&error))?.path();
            if path.as_os_str().as_encoded_bytes().ends_with(ENDING.as_bytes()) {
                let bytes =
                    plain_file::read(&path, MAX_LENGTH).map_err(|error| unreadable(&error))?;
                let record: WorktreeRecord = serde_json::from_slice(&bytes).map_err(|error| {
                    unreadable(&format!("{}: {}", path.display(), placed_mistake(&error)))
                })?;
                records.push(record);
            }
        }
        records.sort_by(|a: &WorktreeRecord, b| order(&a.agent).cmp(order(&b.agent)));
        Ok(records)
    }

    /// Returns the number of recorded worktrees.
    pub fn count(&self) -> usize {
        let is_mark = |name: &OsStr| name.as_encoded_bytes().ends_with(ENDING.as_bytes());
        let entries = std::fs::read_dir(self.trees()).into_iter().flatten().flatten();
        entries.filter(|entry| is_mark(&entry.file_name())).count()
    }

    /// Records a worktree; the record is durable when this returns.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn write_record(&self, record: &WorktreeRecord) -> Result<(), String> {
        let path = self.record_file(&record.agent);
        let bytes = serde_json::to_vec_pretty(record).map_err(|error| error.to_string())?;
        let written = self.prepare().and_then(|()| Ok(FileReplacement::of(&path).write(&bytes)?));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Removes the record of a worktree.
    ///
    /// # Errors
    /// The record cannot be removed.
    pub fn remove_record(&self, agent: &AgentId) -> Result<(), String> {
        let path = self.record_file(agent);
        let removed = match std::fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => sync_directory(self.trees()),
        };
        removed.map_err(|error| format!("cannot remove {}: {error}", path.display()))
    }

    /// Makes the directory of the worktrees, with a `.gitignore` that hides it from the repository around it.
    fn prepare(&self) -> IoResult<()> {
        if self.trees().is_dir() {
            return Ok(());
        }
        let private = |path: &Path| DirBuilder::new().mode(0o700).recursive(true).create(path);
        if let Some(all) = self.trees().parent() {
            private(all)?;
            // Several runs may do so at once.
            let draft = format!(".gitignore-{}.new", std::process::id());
            FileReplacement::of(&all.join(".gitignore")).with_draft(draft).write(IGNORED)?;
        }
        private(self.trees())
    }
}

/// Returns the key by which agents are sorted: the numbers of the id.
fn order(agent: &AgentId) -> impl Iterator<Item = u64> {
    agent.as_str().split('.').map(|part| part.parse().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn worktree_records_round_trip_in_agent_order() {
        let place = tempfile::tempdir().expect("a directory");
        let working_dirs = WorkingDirs::new("/x", place.path().join("ray/worktrees/r"));
        assert_eq!(working_dirs.records(), Ok(Vec::new()));
        let record = |agent: &str, stage| WorktreeRecord {
            agent: AgentId::parse(agent).expect("an id"),
            branch: format!("raymond/r/{agent}"),
            base: "1".repeat(40),
            prefix: String::new(),
            snapshot: None,
            stage,
        };
        let records = [
            record("main", WorktreeStage::Ready),
            record("main.2", WorktreeStage::Creating),
            record("main.10", WorktreeStage::Removing { kept: "2".repeat(40), found_by: None }),
        ];
        for record in records.iter().rev() {
            working_dirs.write_record(record).expect("noted");
        }
        assert_eq!((working_dirs.records(), working_dirs.count()), (Ok(records.to_vec()), 3));
        assert_eq!(working_dirs.record(&records[2].agent), Ok(Some(records[2].clone())));
        working_dirs.remove_record(&records[2].agent).expect("forgotten");
        working_dirs.remove_record(&records[2].agent).expect("there is none");
        assert_eq!(working_dirs.record(&records[2].agent), Ok(None));
        let all = place.path().join("ray/worktrees");
        assert_eq!(std::fs::read(all.join(".gitignore")).expect("there"), IGNORED);
        let mode = |path: &Path| path.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&all), mode(working_dirs.trees())), (0o700, 0o700));
        assert_eq!(mode(&working_dirs.record_file(&records[0].agent)), 0o600);
        std::fs::write(working_dirs.record_file(&records[0].agent), "{").expect("written");
        let why = working_dirs.record(&records[0].agent).expect_err("it is broken");
        assert!(why.contains("main.json, which describes a worktree"), "{why}");
    }
}
