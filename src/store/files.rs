//! Private files and directories, written so that they are there after a power cut.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Error;
use crate::fault::point;

/// Makes a directory and its parents, for this user only.
///
/// # Errors
/// [`Error::Io`].
pub fn make_dir(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(Error::io("make the directory", path))
}

/// Options for a file of this user only.
#[must_use]
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes what was created, renamed or removed in a directory durable.
///
/// # Errors
/// [`Error::Io`].
pub fn sync_dir(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(Error::io("sync the directory", path))
}

/// Replaces a file as a whole: a reader sees the old or the new content, also after a power cut.
///
/// # Errors
/// [`Error::Io`]; the old content is then still there.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    point("snapshot.before");
    let new = beside(path);
    let written =
        private().write(true).create(true).truncate(true).open(&new).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()
        });
    written.map_err(Error::io("write", &new))?;
    point("snapshot.written");
    std::fs::rename(&new, path).map_err(Error::io("replace", path))?;
    point("snapshot.after");
    path.parent().map_or(Ok(()), sync_dir)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}
