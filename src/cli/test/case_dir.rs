//! The directories of the cases: each has its own, and none is left behind.
//!
//! The directory of all of them has a lock that the tests hold while they run. The system drops it when they die, so
//! the next tests find what killed ones have left, and remove it.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use uuid::Uuid;

use crate::cli::exit::Error;
use crate::plain_file;

/// The beginning of the name of a directory of cases.
const PREFIX: &str = "raymond-test-";

/// The file whose lock the tests hold.
const LOCK: &str = "lock";

/// The longest time that it takes to make the lock.
const LOCK_TIME: Duration = Duration::from_mins(1);

/// The directory of all cases of a test, which is removed with it.
#[derive(Debug)]
pub(super) struct CasesDir {
    path: PathBuf,
    /// The lock, until the directory is gone.
    _lock: File,
}

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

/// Removes the directories whose tests were killed. What cannot be removed stays among the temporary files.
fn remove_abandoned(temporary: &Path) {
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let is_of_tests = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // The directory of temporary files may be everyone's.
        let is_own =
            entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if !is_of_tests || !is_own {
            continue;
        }
        let is_abandoned = match plain_file::open(&entry.path().join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            // Its test was killed before it made the lock, or is about to.
            Err(error) if error.kind() == ErrorKind::NotFound => is_old(&entry),
            Err(_) => false,
        };
        if is_abandoned {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether a directory is there for longer than it takes to make its lock.
fn is_old(entry: &fs::DirEntry) -> bool {
    let made = entry.metadata().and_then(|found| found.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > LOCK_TIME))
}

impl CasesDir {
    /// Makes the directory, where the system has its temporary files, and removes those of tests that were killed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn create() -> Result<Self, Error> {
        let temporary = std::env::temp_dir();
        let temporary = temporary.canonicalize().unwrap_or(temporary);
        remove_abandoned(&temporary);
        loop {
            let unique = Uuid::new_v4().simple().to_string();
            let path = temporary.join(format!("{PREFIX}{}", &unique[..12]));
            make(&path)?;
            let file = path.join(LOCK);
            let failed = |error| Error::Io { doing: "make the lock", path: file.clone(), error };
            let lock = File::create_new(&file).map_err(failed)?;
            // Another test that looks just now for what is abandoned may have it, and then removes the directory.
            if lock.try_lock().is_ok() {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    /// Makes the directories of a run of a case.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn case(&self, name: &str) -> Result<CaseDir, Error> {
        let dir = CaseDir(self.path.join(name));
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
        let _ = fs::remove_dir_all(&self.path);
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
