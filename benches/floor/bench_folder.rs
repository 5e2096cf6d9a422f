//! A folder on the disk of the build for workflows and runs, which is removed at the end.
//!
//! The system's folder for temporary files is often in memory, where a sync costs nothing. Everything is kept
//! until the end, because some file systems create files slowly where many were just removed.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Fallible;

/// The folder of the benchmark; it is removed with all its content.
#[derive(Debug)]
pub(crate) struct BenchFolder {
    dir: TempDir,
    made: Cell<usize>,
}

/// The folder of a workflow.
#[derive(Debug)]
pub(crate) struct WorkflowFolder(PathBuf);

impl BenchFolder {
    /// Creates the folder inside `parent`, or inside the build's folder.
    pub(crate) fn new(parent: Option<&str>) -> Fallible<Self> {
        let parent = parent.unwrap_or(env!("CARGO_TARGET_TMPDIR"));
        let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(parent)?;
        std::fs::create_dir(dir.path().join("work"))?;
        Ok(Self { dir, made: Cell::new(0) })
    }

    /// Returns the empty folder in which the agents work.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Creates an empty folder.
    pub(crate) fn folder(&self) -> Fallible<PathBuf> {
        self.made.set(self.made.get() + 1);
        let path = self.dir.path().join(self.made.get().to_string());
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    pub(crate) fn workflow(&self) -> Fallible<WorkflowFolder> {
        self.folder().map(WorkflowFolder)
    }
}

impl WorkflowFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Fallible<()> {
        Ok(std::fs::write(self.0.join(name), text)?)
    }
}
