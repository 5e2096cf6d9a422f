//! Git's lock of the index after a crash: a git that was killed leaves it, and no later git works then.
//!
//! A lock is removed only if by all signs it is that of the command which is repeated: it was not there when the
//! command began, it is younger than that, no git works in this repository, and no process has it open. Otherwise it is
//! named, with what to do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::context::OperationContext;
use super::git_place::GitPlace;
use raymond_store::plain_file;

/// The name of the lock in git's directory.
const LOCK: &str = "index.lock";

/// The end of the name of the note that a command began without a lock.
const NOTE: &str = "unlocked";

/// A command that may be repeated, and the lock of the repository that it works in.
pub(super) struct GitLock {
    lock: PathBuf,
    repository: PathBuf,
    note: PathBuf,
}

impl GitLock {
    /// Returns the lock of the repository that the workspace is in, if it is in one.
    pub(super) fn of(shared: &OperationContext, stem: &str) -> Option<Self> {
        let GitPlace::Found(found) = GitPlace::find(shared.root(), None).ok()? else { return None };
        let lock = found.own_directory()?.join(LOCK);
        let note = shared.place.steps.join(format!("{stem}.{NOTE}"));
        Some(Self { lock, repository: found.root?, note })
    }

    /// Notes that the command begins without a lock. With `again` the lock that an earlier try has left is removed,
    /// if it is provably that.
    pub(super) fn before(&self, again: bool) {
        if again && self.is_of_earlier_try() {
            // If it stays, the command fails, and its failure names the lock.
            let _ = std::fs::remove_file(&self.lock);
        }
        if !again {
            // A note of an earlier command says nothing about this one.
            let _ = std::fs::remove_file(&self.note);
        }
        if !self.lock.exists() && !plain_file::is_there(&self.note) {
            if let Some(steps) = self.note.parent() {
                let _ = std::fs::create_dir_all(steps);
            }
            // Without the note a lock is not removed later, and that is all.
            let _ = plain_file::create(&self.note);
        }
    }

    /// Removes the note after the command has succeeded.
    pub(super) fn after(&self) {
        let _ = std::fs::remove_file(&self.note);
    }

    /// Returns the end of the message of a failure, if there is a lock and no git that may hold it.
    pub(super) fn hint(&self) -> String {
        if !self.lock.exists() || works_in(&self.repository) {
            return String::new();
        }
        format!(
            "; {} is there, and no git works here: a git that was killed has left it; if that is so, remove this file",
            self.lock.display()
        )
    }

    fn is_of_earlier_try(&self) -> bool {
        let changed =
            |path: &Path| std::fs::symlink_metadata(path).and_then(|file| file.modified());
        match (changed(&self.note), changed(&self.lock)) {
            (Ok(began), Ok(locked)) => {
                locked >= began && !works_in(&self.repository) && !is_held(&self.lock)
            }
            _ => false,
        }
    }
}

/// Returns whether a process has a lock open.
fn is_held(lock: &Path) -> bool {
    let Ok(lock) = lock.canonicalize() else { return false };
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    processes.filter_map(Result::ok).any(|process| {
        let open = std::fs::read_dir(process.path().join("fd"));
        let links = open.into_iter().flatten().filter_map(Result::ok);
        links.filter_map(|fd| std::fs::read_link(fd.path()).ok()).any(|file| file == lock)
    })
}

/// Returns whether a git may work in a repository. One whose directory cannot be seen may, and so may any where
/// processes cannot be seen at all.
fn works_in(repository: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    let repository = repository.canonicalize().unwrap_or_else(|_| repository.to_owned());
    processes.filter_map(Result::ok).any(|process| {
        let path = process.path();
        let is_process = process.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit());
        let name = || std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        is_process
            && name().starts_with("git")
            && match std::fs::read_link(path.join("cwd")) {
                Ok(directory) => directory.starts_with(&repository),
                Err(error) => error.kind() == ErrorKind::PermissionDenied,
            }
    })
}
