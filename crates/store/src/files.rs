//! Private files and directories that survive a power cut.

use std::fs::{DirBuilder, DirEntry, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;
use super::draft::draft_beside;
use crate::plain_file;
use crate::plain_file::{FileReplacement, ReplaceError, if_there, sync_directory};

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

/// Returns the content of a plain file of at most `longest` bytes; `None` if there is none.
///
/// # Errors
/// [`Error::Io`].
pub fn read(path: &Path, longest: u64) -> Result<Option<Vec<u8>>, Error> {
    if_there(plain_file::read(path, longest)).map_err(Error::io("read", path))
}

/// Returns the JSON document in a plain file like [`read`].
///
/// # Errors
/// [`Error::Io`], also if it is not such a document.
pub(super) fn read_json<T: DeserializeOwned>(
    path: &Path,
    longest: u64,
) -> Result<Option<T>, Error> {
    let Some(bytes) = read(path, longest)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(Error::json("read", path))
}

/// Returns a JSON document that is to be written to a path.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn json(path: &Path, document: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(document).map_err(Error::json("write", path))
}

/// Returns the entries of a directory; none if it is missing.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn entries(path: &Path) -> Result<Vec<DirEntry>, Error> {
    let entries = if_there(std::fs::read_dir(path)).map_err(Error::io("read", path))?;
    entries.into_iter().flatten().collect::<Result<_, _>>().map_err(Error::io("read", path))
}

/// Removes a file, which may be missing.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    if_there(std::fs::remove_file(path)).map(drop).map_err(Error::io("remove", path))
}

/// Removes a directory and all in it, which may be missing.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn remove_dir(path: &Path) -> Result<(), Error> {
    let removed = if_there(std::fs::remove_dir_all(path)).map(drop);
    removed.map_err(Error::io("remove the directory", path))
}

/// Opens a file that processes lock, and makes it if it is missing.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn open_lock(path: &Path) -> Result<File, Error> {
    let mut options = private();
    options.read(true).write(true).create(true).truncate(false);
    plain_file::open_with(path, &mut options).map_err(Error::io("open", path))
}

fn refused(failed: ReplaceError) -> Error {
    Error::io(failed.doing, &failed.path)(failed.error)
}
