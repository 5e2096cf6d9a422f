//! The contents of a run's pinned files, one after another in one file.
//!
//! The copy of a workflow has many files, and a flush of each would take longer than the rest of a run's start. So the
//! copy is written without flushes, and this file is flushed in their place: if a power cut damages the copy, the copy
//! is made again from it. The list of pinned files gives the order and the sizes, and its checksums prove each content.
//!
//! Versions of files, to tell without reading whether a file has changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::capture::{CapturedFile, MAX_TOTAL, WorkflowCapture, content_of, is_large};
use super::{Error, files};
use crate::plain_file;
use raymond_lang::source::checksum;
use raymond_model::workflow_pins::{PinnedFile, WorkflowPins};

/// Writes the contents of a workflow's files into a file that is not there yet.
pub(super) fn save(path: &Path, workflow: &WorkflowCapture) -> Result<(), Error> {
    let small = workflow.files.values().filter(|file| !is_large(file.content.len() as u64));
    let contents: Vec<&[u8]> = small.map(|file| file.content.as_slice()).collect();
    files::create(path, &contents.concat())
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
