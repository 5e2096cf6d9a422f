//! Versions of files, to tell without reading whether a file has changed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A version of a file, as its metadata tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds of the last change.
    changed: (i64, i64),
}

impl FileVersion {
    /// Returns the version of a file, if it is there.
    pub(super) fn of(path: &Path) -> Option<Self> {
        path.metadata().ok().as_ref().map(Self::from)
    }
}

impl From<&Metadata> for FileVersion {
    fn from(found: &Metadata) -> Self {
        let changed = (found.ctime(), found.ctime_nsec());
        Self { inode: found.ino(), length: found.len(), changed }
    }
}
