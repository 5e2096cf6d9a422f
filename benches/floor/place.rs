//! A folder on the disk of the build, where workflows and runs live and nothing outlives the bench.
//!
//! The system's folder for temporary files is often in memory, where a sync costs nothing. All is
//! kept until the end, because some file systems make files slowly where many were just removed.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Fallible;

/// The folder; it is removed with all that is in it.
#[derive(Debug)]
pub(crate) struct Place {
    dir: TempDir,
    made: Cell<usize>,
}

/// A workflow's folder.
#[derive(Debug)]
pub(crate) struct Workflow(PathBuf);

impl Place {
    /// In this folder, or in the build's.
    pub(crate) fn new(parent: Option<&str>) -> Fallible<Self> {
        let parent = parent.unwrap_or(env!("CARGO_TARGET_TMPDIR"));
        let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(parent)?;
        std::fs::create_dir(dir.path().join("work"))?;
        Ok(Self { dir, made: Cell::new(0) })
    }

    /// Where agents work: an empty folder.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// A new empty folder.
    pub(crate) fn folder(&self) -> Fallible<PathBuf> {
        self.made.set(self.made.get() + 1);
        let path = self.dir.path().join(self.made.get().to_string());
        std::fs::create_dir(&path)?;
        Ok(path)
    }

    pub(crate) fn workflow(&self) -> Fallible<Workflow> {
        self.folder().map(Workflow)
    }
}

impl Workflow {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Fallible<()> {
        Ok(std::fs::write(self.0.join(name), text)?)
    }
}
