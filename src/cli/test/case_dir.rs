//! The directories of the cases: each has its own, and none is left behind.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::cli::exit::Error;

/// The directory of all cases of a test, which is removed with it.
#[derive(Debug)]
pub(super) struct CasesDir(PathBuf);

/// The directories of a case, which are removed with it.
#[derive(Debug)]
pub(super) struct CaseDir(PathBuf);

/// Makes a directory that only the user can enter.
fn make(path: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o700);
    let failed = |error| Error::Io { doing: "make the directory", path: path.to_owned(), error };
    builder.create(path).map_err(failed)
}

impl CasesDir {
    /// Makes the directory, where the system has its temporary files.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn create() -> Result<Self, Error> {
        let unique = Uuid::new_v4().simple().to_string();
        let temporary = std::env::temp_dir();
        let temporary = temporary.canonicalize().unwrap_or(temporary);
        let path = temporary.join(format!("raymond-test-{}", &unique[..12]));
        make(&path)?;
        Ok(Self(path))
    }

    /// Makes the directories of a run of a case.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn case(&self, name: &str) -> Result<CaseDir, Error> {
        let dir = CaseDir(self.0.join(name));
        make(&dir.0)?;
        for path in [dir.runs(), dir.work(), dir.home(), dir.state()] {
            make(&path)?;
        }
        Ok(dir)
    }
}

impl Drop for CasesDir {
    fn drop(&mut self) {
        // What cannot be removed is among the temporary files all the same.
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl CaseDir {
    /// Returns the directory of the runs.
    pub(super) fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// Returns the working directory.
    pub(super) fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Returns the home of the user that the run has.
    pub(super) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// Returns the directory of that user's state.
    pub(super) fn state(&self) -> PathBuf {
        self.0.join("state")
    }

    /// Returns the script, if it is not the workflow's own.
    pub(super) fn replies(&self) -> PathBuf {
        self.0.join("replies.yaml")
    }

    /// Returns the file for what the run prints to stderr.
    pub(super) fn complaints(&self) -> PathBuf {
        self.0.join("stderr")
    }
}

impl Drop for CaseDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
