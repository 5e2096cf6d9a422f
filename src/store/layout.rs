//! Where everything is.
//!
//! ```text
//! .raymond/runs/<run id>/   state.json  journal.jsonl  acknowledged  lock  steps/  inbox/  results/  workflow/  workflow.json  output.log
//!                           workflow/  workflow.json
//! .raymond/debug/
//! .raymond/dataspace/
//! .raymond/worktrees/<run id>/<agent id>/
//! ```

use std::path::{Path, PathBuf};

use crate::domain::id::RunId;

/// The directory of all runs, `.raymond` unless told otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsRoot(PathBuf);

impl RunsRoot {
    /// Takes the directory as it is.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The directory that has one directory a run.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// The directory of the debug directories.
    #[must_use]
    pub fn debug(&self) -> PathBuf {
        self.0.join("debug")
    }

    /// The directory of the facts that all runs share.
    #[must_use]
    pub fn dataspace(&self) -> PathBuf {
        self.0.join("dataspace")
    }

    /// The directory of the worktrees of one run's agents. They outlive the run's own directory.
    #[must_use]
    pub fn worktrees(&self, id: &RunId) -> PathBuf {
        self.0.join("worktrees").join(id.as_str())
    }

    /// The directory of one run.
    #[must_use]
    pub fn run(&self, id: &RunId) -> RunDir {
        RunDir(self.runs().join(id.as_str()))
    }
}

/// The directory of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir(pub(super) PathBuf);

impl RunDir {
    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The snapshot.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.0.join("journal.jsonl")
    }

    /// The lock.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// The directory of the turns' files.
    #[must_use]
    pub fn steps(&self) -> PathBuf {
        self.0.join("steps")
    }

    /// The directory of what joins have brought: a file for each.
    #[must_use]
    pub fn results(&self) -> PathBuf {
        self.0.join("results")
    }

    /// The directory of commands from outside.
    #[must_use]
    pub fn inbox(&self) -> PathBuf {
        self.0.join("inbox")
    }

    /// The copy of the workflow's files as they were when the run began.
    #[must_use]
    pub fn workflow(&self) -> PathBuf {
        self.0.join("workflow")
    }

    /// The list of those files.
    #[must_use]
    pub fn pins(&self) -> PathBuf {
        self.0.join("workflow.json")
    }

    /// What a raymond in the background prints.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        self.0.join("output.log")
    }
}
