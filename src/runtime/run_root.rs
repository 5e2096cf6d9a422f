//! The root of a run: the folder within which tags may lead to other folders, and which is pinned and trusted.
//!
//! It is the workflow's folder, or the nearest folder above it whose `raymond.yaml` says `root: true`. Only a file of
//! the owner of the workflow's folder counts, so that nobody else can widen what a run may enter.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::Error;
use crate::domain::id::{Folder, StateName};
use crate::language::manifest;
use crate::language::prompt::step;
use crate::language::source::WorkflowSource;
use crate::store::workflow::WorkflowDir;

/// The root of a run, and the workflow's folder below it.
#[derive(Debug)]
pub(super) struct RunRoot {
    root: WorkflowDir,
    folder: Option<Folder>,
    scope: WorkflowDir,
}

impl RunRoot {
    /// Opens a root and a folder below it.
    ///
    /// # Errors
    /// [`Error::Io`] if the root is gone, [`Error::Workflow`] if the folder is.
    pub(super) fn of(root: &Path, folder: Option<&Folder>) -> Result<Self, Error> {
        let root = opened(root)?;
        let scope = folder.map_or_else(|| Ok(root.clone()), |folder| root.below(folder));
        let scope = scope.map_err(step::Error::from)?;
        Ok(Self { root, folder: folder.cloned(), scope })
    }

    /// Returns the root, the workflow's folder below it, and the files of that.
    pub(super) fn into_parts(self) -> (WorkflowDir, Option<Folder>, WorkflowDir) {
        (self.root, self.folder, self.scope)
    }
}

fn opened(folder: &Path) -> Result<WorkflowDir, Error> {
    WorkflowDir::open(folder).map_err(|error| Error::Io {
        doing: "open the directory",
        path: folder.to_owned(),
        error,
    })
}

/// Opens a workflow's folder with the root of its runs.
///
/// # Errors
/// [`Error::Io`] if it cannot be opened.
pub(super) fn open(folder: &Path) -> Result<RunRoot, Error> {
    let scope = opened(folder)?;
    match above(scope.root()) {
        Some((root, folder)) => RunRoot::of(&root, Some(&folder)),
        None => Ok(RunRoot { root: scope.clone(), folder: None, scope }),
    }
}

/// Returns the nearest root above a folder, and the folder's path below it.
pub fn above(folder: &Path) -> Option<(PathBuf, Folder)> {
    let owner = folder.metadata().ok()?.uid();
    let root = folder.ancestors().skip(1).find(|above| is_root(above, owner))?;
    let below = folder.strip_prefix(root).ok()?.to_str()?;
    Some((root.to_owned(), Folder::parse(below).ok()?))
}

/// Returns whether the manifest of a folder says that it is a root, in a file of this owner.
fn is_root(folder: &Path, owner: u32) -> bool {
    let is_own = |path: &Path| {
        path.symlink_metadata().is_ok_and(|found| found.uid() == owner && found.is_file())
    };
    if !is_own(&folder.join(manifest::FILE)) {
        return false;
    }
    let text = StateName::parse(manifest::FILE).ok().and_then(|name| {
        let scope = WorkflowDir::open(folder).ok()?;
        scope.read(&name).ok()
    });
    text.is_some_and(|text| manifest::examine(&text).manifest.is_root)
}
