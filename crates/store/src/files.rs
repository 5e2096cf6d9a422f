//! Private files and directories that survive a power cut.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use super::Error;
use super::draft::draft_beside;
use crate::plain_file::{FileReplacement, ReplaceError, sync_directory};

/// Makes a directory and its parents, for this user only, all of them durable.
///
/// # Errors
/// [`Error::Io`].
pub fn make_dir(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        make_dir(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(Error::io("make the directory", path)(error)),
        Ok(()) => parent.map_or(Ok(()), sync_dir),
    }
}

/// Makes a directory and its parents like [`make_dir`], but not durable.
///
/// # Errors
/// [`Error::Io`].
pub fn make_draft_dir(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(path);
    made.map_err(Error::io("make the directory", path))
}

/// Writes a new file. Its content is durable when this returns, its entry in the directory is not.
///
/// # Errors
/// [`Error::Io`].
pub fn create(path: &Path, content: &[u8]) -> Result<(), Error> {
    let written = private().write(true).create_new(true).open(path).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.map_err(Error::io("write", path))
}

/// Makes git ignore a directory of raymond's own in a repository, unless it has a `.gitignore` already. Only a
/// directory of the usual name certainly belongs to raymond alone.
///
/// # Errors
/// [`Error::Io`].
pub fn hide(path: &Path) -> Result<(), Error> {
    if path.file_name().is_none_or(|name| name != ".raymond") {
        return Ok(());
    }
    let ignored = path.join(".gitignore");
    match private().write(true).create_new(true).open(&ignored) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        file => {
            file.and_then(|mut file| file.write_all(b"*\n")).map_err(Error::io("write", &ignored))
        }
    }
}

/// Returns options for a file of this user only.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes new, renamed and removed entries of a directory durable.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_dir(path: &Path) -> Result<(), Error> {
    sync_directory(path).map_err(Error::io("sync the directory", path))
}

/// Replaces a file as a whole: a reader sees the old or the new content, also after a power cut.
///
/// # Errors
/// [`Error::Io`].
pub fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    FileReplacement::of(path).write(content).map_err(refused)
}

/// Replaces a file like [`replace`], by what `fill` writes.
///
/// # Errors
/// [`Error::Io`].
pub fn replace_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<(), Error> {
    FileReplacement::of(path).write_with(fill).map_err(refused)
}

/// Replaces a file like [`replace`], in a directory where several processes may do so at once.
///
/// # Errors
/// [`Error::Io`].
pub fn replace_among_others(path: &Path, content: &[u8]) -> Result<(), Error> {
    let draft = draft_beside(path);
    let draft = draft.file_name().unwrap_or_default();
    FileReplacement::of(path).with_draft(draft).write(content).map_err(refused)
}

fn refused(failed: ReplaceError) -> Error {
    Error::io(failed.doing, &failed.path)(failed.error)
}
