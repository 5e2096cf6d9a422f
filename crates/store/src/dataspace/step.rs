//! The step of a program that changes facts, and its idempotency key.
//!
//! A step that runs again after a crash changes no fact a second time.
//!
//! An agent has one mark, of its last step that changed a fact. The mark is part of the entry that the change has in the
//! change log, so whoever finds the mark under the lock finds the change made, too.
//!
//! An earlier raymond wrote the fact into `outgoing/`, then the mark, and then made the change. What it has left there
//! says that the marked assertion is still to be made.
//!
//! The boot of the machine: whatever was written in another one may have been lost in a power cut.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::dataspace::Dataspace;
use crate::plain_file;
use crate::{Error, files};
use raymond_model::id::{AgentId, RunId};

/// The size limit of a mark, in bytes: a label and a key have names of 200 bytes at the most.
const MAX_MARK_LENGTH: u64 = 64 * 1024;

/// The directories with files of steps.
pub(super) const STEP_FOLDERS: [&str; 3] = ["claims", "outgoing", "done"];

/// A step of an agent: it may assert, retract or take one fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataspaceStep {
    /// The run.
    pub run: RunId,
    /// The agent.
    pub agent: AgentId,
    /// The agent's step, counted from 1.
    pub step: u64,
}

impl DataspaceStep {
    /// Returns the name of a step's agent. A run's id has no `~`, an agent's no `-`.
    pub(super) fn agent_file_stem(run: &RunId, agent: &AgentId) -> String {
        format!("{run}~{}", agent.file_name())
    }

    fn name(&self) -> String {
        format!("{}-{}.json", Self::agent_file_stem(&self.run, &self.agent), self.step)
    }
}

/// The operation of a step on a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FactOperation {
    Assert,
    Retract,
}

/// The mark of a step that changes a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IdempotencyKey {
    pub(super) step: u64,
    #[serde(rename = "deed")]
    pub(super) operation: FactOperation,
    pub(super) label: String,
    pub(super) key: String,
    /// The number of the fact: the one it was first asserted with, or the one that is removed.
    pub(super) seq: u64,
}

impl IdempotencyKey {
    /// Returns whether it is about the same operation of the same step.
    pub(super) fn is_of(
        &self,
        step: &DataspaceStep,
        operation: FactOperation,
        label: &str,
        key: &str,
    ) -> bool {
        self.step == step.step
            && self.operation == operation
            && self.label == label
            && self.key == key
    }
}

impl Dataspace {
    fn marks(&self) -> PathBuf {
        self.path.join("done")
    }

    pub(super) fn mark_of(&self, step: &DataspaceStep) -> PathBuf {
        self.marks()
            .join(format!("{}.json", DataspaceStep::agent_file_stem(&step.run, &step.agent)))
    }

    pub(super) fn claim_of(&self, step: &DataspaceStep) -> PathBuf {
        self.path.join("claims").join(step.name())
    }

    /// Returns the place where an earlier raymond kept a fact until it was asserted.
    pub(super) fn outgoing_of(&self, step: &DataspaceStep) -> PathBuf {
        self.path.join("outgoing").join(step.name())
    }

    /// Returns the mark of an agent. An unreadable mark counts as none, as it is written as a whole.
    pub(super) fn mark(&self, step: &DataspaceStep) -> Result<Option<IdempotencyKey>, Error> {
        let path = self.mark_of(step);
        match plain_file::read(&path, MAX_MARK_LENGTH) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Writes the mark of an agent; it is not durable.
    pub(super) fn set_mark(
        &self,
        step: &DataspaceStep,
        mark: &IdempotencyKey,
    ) -> Result<(), Error> {
        let path = self.mark_of(step);
        files::make_draft_dir(&self.marks())?;
        refuse_link(&self.marks())?;
        let text = serde_json::to_vec(mark)
            .map_err(std::io::Error::other)
            .map_err(Error::io("write", &path))?;
        files::replace_draft(&path, &text)
    }

    /// Removes the marks and changes of an agent's steps before this one. The record of their outcome is durable,
    /// so none of them runs again.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn settled(&self, before: &DataspaceStep) -> Result<(), Error> {
        let mark = self.mark(before)?;
        if mark.is_some_and(|mark| mark.step < before.step) {
            remove(&self.mark_of(before))?;
        }
        let agent_file_stem =
            format!("{}-", DataspaceStep::agent_file_stem(&before.run, &before.agent));
        let earlier = |name: &str| {
            let step = name.strip_prefix(&agent_file_stem).and_then(|rest| rest.split('.').next());
            step.and_then(|step| step.parse().ok()).is_some_and(|step: u64| step < before.step)
        };
        self.clear(&["claims", "outgoing"], earlier)
    }

    /// Removes the marks and changes of a run.
    pub(super) fn clear_run(&self, run: &RunId) -> Result<(), Error> {
        let agent_file_stem = format!("{run}~");
        self.clear(&STEP_FOLDERS, |name| name.starts_with(&agent_file_stem))
    }

    pub(super) fn clear(
        &self,
        folders: &[&str],
        unneeded: impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        for folder in folders.iter().map(|folder| self.path.join(folder)) {
            refuse_link(&folder)?;
            for path in super::entries(&folder)? {
                if path.file_name().and_then(|name| name.to_str()).is_some_and(&unneeded) {
                    remove(&path)?;
                }
            }
        }
        Ok(())
    }
}

/// Removes a file, which may be missing.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Refuses a directory of the dataspace that is something else, such as a link to elsewhere: nothing is changed there.
pub(super) fn refuse_link(folder: &Path) -> Result<(), Error> {
    if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        let error = std::io::Error::new(
            std::io::ErrorKind::NotADirectory,
            "it is not a directory that raymond created; remove it",
        );
        return Err(Error::io("write into", folder)(error));
    }
    Ok(())
}

/// The longest id of a boot, in bytes.
const MAX_BOOT_ID: u64 = 128;

/// Returns the id of this boot; `None` where the system has none.
pub(super) fn id() -> Option<&'static str> {
    static ID: LazyLock<Option<String>> = LazyLock::new(|| {
        let bytes = plain_file::read(Path::new("/proc/sys/kernel/random/boot_id"), MAX_BOOT_ID);
        let id = String::from_utf8(bytes.ok()?).ok()?.trim().to_owned();
        (!id.is_empty()).then_some(id)
    });
    ID.as_deref()
}
