//! Private files and directories that survive a power cut.
//!
//! Folders beside a run's root, which explicit tags such as `<call-workflow>` lead to.
//!
//! In a run's copy of its files they lie in a folder of the root. Only those are copied that a file of the workflow
//! names literally, so that they are pinned, trusted and checked with the rest.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use raymond_lang::source::checksum;
use raymond_model::sealed_terms::{PinnedFile, WorkflowPins};

use super::Error;
use super::capture::{CapturedFile, MAX_TOTAL, WorkflowCapture, content_of, is_large};
use super::draft::draft_beside;
use crate::plain_file;
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

// The contents of a run's pinned files, one after another in one file.
//
// The copy of a workflow has many files, and a flush of each would take longer than the rest of a run's start. So the
// copy is written without flushes, and this file is flushed in their place: if a power cut damages the copy, the copy
// is made again from it. The list of pinned files gives the order and the sizes, and its checksums prove each content.
//
// Versions of files, to tell without reading whether a file has changed.

/// Writes the contents of a workflow's files into a file that is not there yet.
pub(super) fn save(path: &Path, workflow: &WorkflowCapture) -> Result<(), Error> {
    let small = workflow.files.values().filter(|file| !is_large(file.content.len() as u64));
    let contents: Vec<&[u8]> = small.map(|file| file.content.as_slice()).collect();
    create(path, &contents.concat())
}

/// Returns the pinned files, each from the file of contents or else from one of the copies; `None` unless all are as
/// pinned.
pub(super) fn load(
    path: &Path,
    copies: &[PathBuf],
    pins: &WorkflowPins,
) -> Result<Option<WorkflowCapture>, Error> {
    let mut contents = match plain_file::open(path) {
        Ok(file) => file.take(MAX_TOTAL),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    let mut found = BTreeMap::new();
    for (name, pin) in &pins.files {
        let is_as_pinned = |content: &Vec<u8>| checksum(content) == pin.checksum;
        let content = if is_large(pin.size) {
            copies.iter().filter_map(|copy| content_of(&copy.join(name))).find(is_as_pinned)
        } else {
            next(&mut contents, pin).map_err(Error::io("read", path))?.filter(is_as_pinned)
        };
        match content {
            Some(content) => {
                found.insert(
                    name.clone(),
                    CapturedFile { content, is_executable: pin.is_executable, version: None },
                );
            }
            None => return Ok(None),
        }
    }
    Ok(Some(WorkflowCapture::of_files(found)))
}

/// Reads the content of the next file; `None` at the end.
fn next(contents: &mut std::io::Take<File>, pin: &PinnedFile) -> std::io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    contents.take(pin.size).read_to_end(&mut content)?;
    Ok((content.len() as u64 == pin.size).then_some(content))
}
