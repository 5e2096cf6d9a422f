//! Replaces a file as a whole: a reader sees the old or the new content, also after a power cut.
//!
//! The content is written into a draft in the same directory, which is then renamed. No link is followed: what
//! lies at the draft's or the file's path is replaced, not written through.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{Error, Result, Write};
use std::path::{Path, PathBuf};

use super::{PRIVATE, create_with};
use crate::fault::point;

/// A file that is to be replaced, and how. Only its owner can read the new one, unless a mode is given.
#[derive(Debug)]
#[must_use]
pub struct FileReplacement<'a> {
    path: &'a Path,
    draft: PathBuf,
    mode: u32,
    permissions: Option<Permissions>,
    is_durable: bool,
}

/// The reason why a file is not replaced: the step that failed, and where.
#[derive(Debug)]
pub struct ReplaceError {
    /// The step, as a verb: `write`, `replace`, `sync the directory`.
    pub doing: &'static str,
    /// The path that the step is about.
    pub path: PathBuf,
    /// The system's error.
    pub error: Error,
}

impl From<ReplaceError> for Error {
    fn from(failed: ReplaceError) -> Self {
        failed.error
    }
}

impl<'a> FileReplacement<'a> {
    /// Returns the replacement of a file, with a draft `NAME.new`.
    pub fn of(path: &'a Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let draft = path.with_file_name(name);
        Self { path, draft, mode: PRIVATE, permissions: None, is_durable: true }
    }

    /// Sets the name of the draft. Processes that may replace the file at once need a name each.
    pub fn with_draft(mut self, name: impl Into<OsString>) -> Self {
        self.draft = self.path.with_file_name(name.into());
        self
    }

    /// Sets the mode of the new file, before the user's mask.
    pub fn with_mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the permissions of the new file, whatever the user's mask.
    pub fn with_permissions(mut self, permissions: Permissions) -> Self {
        self.mode = PRIVATE;
        self.permissions = Some(permissions);
        self
    }

    /// Leaves it to the caller to make the new file durable. Until then a power cut may leave the old content, none, or
    /// a part of the new.
    pub fn without_sync(mut self) -> Self {
        self.is_durable = false;
        self
    }

    /// Replaces the file. It is durable when this returns, unless it is written [without sync](Self::without_sync).
    ///
    /// # Errors
    /// [`ReplaceError`]. No draft is left, and the old content is still there, unless only the directory could not
    /// be synced.
    pub fn write(self, content: &[u8]) -> std::result::Result<(), ReplaceError> {
        self.write_with(|file| file.write_all(content))
    }

    /// Replaces the file by what `fill` writes. It is durable like that of [`write`](Self::write).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_with(
        self,
        fill: impl FnOnce(&mut File) -> Result<()>,
    ) -> std::result::Result<(), ReplaceError> {
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |error| ReplaceError { doing, path, error }
        };
        let remove_draft = |_: &ReplaceError| drop(std::fs::remove_file(&self.draft));
        point("replace.before");
        self.write_draft(fill).map_err(failed("write", &self.draft)).inspect_err(remove_draft)?;
        point("replace.written");
        std::fs::rename(&self.draft, self.path)
            .map_err(failed("replace", self.path))
            .inspect_err(remove_draft)?;
        point("replace.after");
        let Some(directory) = self.path.parent().filter(|_| self.is_durable) else {
            return Ok(());
        };
        sync_directory(directory).map_err(failed("sync the directory", directory))
    }

    fn write_draft(&self, content: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        let mut file = create_with(&self.draft, self.mode)?;
        content(&mut file)?;
        if let Some(permissions) = &self.permissions {
            file.set_permissions(permissions.clone())?;
        }
        if self.is_durable { file.sync_all() } else { Ok(()) }
    }
}

/// Makes new, renamed and removed entries of a directory durable.
///
/// # Errors
/// The system's error.
pub fn sync_directory(path: &Path) -> Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().expect("it is there").permissions().mode() & 0o7777
    }

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(directory).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name()).collect()
    }

    #[test]
    fn new_file_is_private_unless_a_mode_or_permissions_are_given() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        FileReplacement::of(&path).write(b"one").expect("written");
        assert_eq!((std::fs::read(&path).expect("read"), mode(&path)), (b"one".to_vec(), 0o600));
        FileReplacement::of(&path).with_mode(0o400).write(b"two").expect("written");
        assert_eq!((std::fs::read(&path).expect("read"), mode(&path)), (b"two".to_vec(), 0o400));
        let all = Permissions::from_mode(0o777);
        FileReplacement::of(&path).with_permissions(all).write(b"three").expect("written");
        assert_eq!((std::fs::read(&path).expect("read"), mode(&path)), (b"three".to_vec(), 0o777));
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[test]
    fn links_at_the_file_and_at_the_draft_are_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, other) = (dir.path().join("file"), dir.path().join("other"));
        std::fs::write(&other, "mine").expect("written");
        symlink(&other, &path).expect("linked");
        symlink(&other, dir.path().join("file.new")).expect("linked");
        FileReplacement::of(&path).write(b"new").expect("written");
        assert!(path.symlink_metadata().expect("it is there").is_file());
        assert_eq!(std::fs::read(&path).expect("read"), b"new");
        assert_eq!(std::fs::read(&other).expect("read"), b"mine");
    }

    #[test]
    fn failed_replacement_leaves_no_draft() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::create_dir(&path).expect("made");
        let failed = FileReplacement::of(&path).with_draft("draft").write(b"x").expect_err("taken");
        assert_eq!((failed.doing, &failed.path), ("replace", &path));
        assert_eq!(names(dir.path()), ["file"]);
    }
}
