//! Folders beside a run's root, which explicit tags such as `<call-workflow>` lead to.
//!
//! In a run's copy of its files they lie in a folder of the root. Only those are copied that a file of the workflow
//! names literally, so that they are pinned, trusted and checked with the rest.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::capture::is_part;
use crate::domain::id::{BESIDE, Folder};

/// Returns the place of a file or folder, by its path below a root that is not a copy.
pub(super) fn on_disk(root: &Path, below: &str) -> PathBuf {
    let path = Folder::parse(below).map_or_else(|_| below.to_owned(), |folder| folder.on_disk());
    match (path.strip_prefix("../"), root.parent()) {
        (Some(beside), Some(parent)) => parent.join(beside),
        _ => root.join(path),
    }
}

/// Returns the path of a file below a root, or of one beside it.
pub(super) fn below_root(root: &Path, file: &Path) -> Option<String> {
    if let Ok(below) = file.strip_prefix(root) {
        return below.to_str().map(str::to_owned);
    }
    Some(format!("{BESIDE}/{}", file.strip_prefix(root.parent()?).ok()?.to_str()?))
}

/// Returns whether a folder beside a root may be entered: no link leads to it, it is not hidden, and it has the same
/// owner. Both are given by their real paths.
pub(super) fn may_enter(root: &Path, folder: &Folder, real: &Path) -> bool {
    let owner = |path: &Path| path.metadata().ok().map(|found| found.uid());
    let is_named = below_root(root, real).is_some_and(|below| below == folder.as_str());
    let is_plain = folder.as_str().split('/').all(|part| !part.starts_with('.') && is_part(part));
    (is_named || real.starts_with(root)) && is_plain && owner(root) == owner(real)
}
