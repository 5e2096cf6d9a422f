//! Git's lock of the index after a crash: a git that was killed leaves it, and no later git works then.
//!
//! A lock is removed only if it is provably that of the command which is repeated: it was not there when the command
//! began, it is younger than that, and no git works in this repository. Otherwise it is named, with what to do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::context::OperationContext;

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
        let (repository, directory) = git_directory(shared.root())?;
        let note = shared.place.steps.join(format!("{stem}.{NOTE}"));
        Some(Self { lock: directory.join(LOCK), repository, note })
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
        if !self.lock.exists() && !self.note.exists() {
            // Without the note a lock is not removed later, and that is all.
            if let Some(steps) = self.note.parent() {
                let _ = std::fs::create_dir_all(steps);
            }
            let _ = std::fs::write(&self.note, "");
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
        let is_younger = |began: SystemTime, locked: SystemTime| locked >= began;
        match (changed(&self.note), changed(&self.lock)) {
            (Ok(began), Ok(locked)) => is_younger(began, locked) && !works_in(&self.repository),
            _ => false,
        }
    }
}

/// Returns the root of the repository that a directory is in, and git's directory for it.
fn git_directory(root: &Path) -> Option<(PathBuf, PathBuf)> {
    for directory in root.ancestors() {
        let git = directory.join(".git");
        match std::fs::symlink_metadata(&git) {
            Ok(found) if found.is_dir() => return Some((directory.to_owned(), git)),
            Ok(found) if found.is_file() => {
                // A worktree has a file that names its directory.
                let text = std::fs::read_to_string(&git).ok()?;
                let named = text.strip_prefix("gitdir:")?.trim();
                return Some((directory.to_owned(), directory.join(named)));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(_) | Err(_) => return None,
        }
    }
    None
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
