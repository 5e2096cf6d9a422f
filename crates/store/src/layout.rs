//! The paths of all files and directories.
//!
//! ```text
//! .raymond/runs/<run id>/   state.json  journal.jsonl  acknowledged  lock  steps/  inbox/  results/  output.log
//!                           workflow/  workflow.json  workflow.contents  cassette/
//! .raymond/debug/
//! .raymond/dataspace/
//! .raymond/worktrees/<run id>/<agent id>/
//! ```

use std::path::{Path, PathBuf};

use raymond_model::id::RunId;

/// The directory of all runs, by default `.raymond`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsRoot(PathBuf);

impl RunsRoot {
    /// Takes the directory as it is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory that has one directory for each run.
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// Returns the directory of the debug directories.
    pub fn debug(&self) -> PathBuf {
        self.0.join("debug")
    }

    /// Returns the directory of the facts that all runs share.
    pub fn dataspace(&self) -> PathBuf {
        self.0.join("dataspace")
    }

    /// Returns the directory of the worktrees of one run's agents. They outlive the run's own directory.
    pub fn worktrees(&self, id: &RunId) -> PathBuf {
        self.0.join("worktrees").join(id.as_str())
    }

    /// Returns the directory of one run.
    pub fn run(&self, id: &RunId) -> RunDir {
        RunDir(self.runs().join(id.as_str()))
    }
}

/// The directory of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir(pub(super) PathBuf);

impl RunDir {
    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the snapshot.
    pub fn state(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// Returns the path of the journal.
    pub fn journal(&self) -> PathBuf {
        self.0.join("journal.jsonl")
    }

    /// Returns the path of the lock.
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// Returns the directory of the turns' files.
    pub fn steps(&self) -> PathBuf {
        self.0.join("steps")
    }

    /// Returns the directory of the results of joins: a file for each.
    pub fn results(&self) -> PathBuf {
        self.0.join("results")
    }

    /// Returns the directory of commands from outside.
    pub fn inbox(&self) -> PathBuf {
        self.0.join("inbox")
    }

    /// Returns the directory of the workflow's files as they were when the run began.
    pub fn workflow(&self) -> PathBuf {
        self.0.join("workflow")
    }

    /// Returns the path of the list of those files.
    pub fn pins(&self) -> PathBuf {
        self.0.join("workflow.json")
    }

    /// Returns the path of the contents of those files.
    pub fn contents(&self) -> PathBuf {
        self.0.join("workflow.contents")
    }

    /// Returns the directory of the copy of the cassette that answers it.
    pub fn cassette(&self) -> PathBuf {
        self.0.join("cassette")
    }

    /// Returns the path of the output of a raymond in the background.
    pub fn output(&self) -> PathBuf {
        self.0.join("output.log")
    }
}
