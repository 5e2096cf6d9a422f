//! The files of a workflow in a directory, and the plugin that the workflow is part of.
//!
//! No path that is read here can leave the directory.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capture::{CapturedFile, WorkflowCapture};
use crate::pinned::PinnedFiles;
use crate::pinned::{below_root, may_enter, on_disk};
use crate::source_text::{decoded, text};
use raymond_lang::hint::closest;
use raymond_lang::source::{Error, WorkflowSource, stays_below};
use raymond_model::id::{Folder, ScopePath, StateName};

/// The error of a folder beside the run's root that was not copied with it.
const NOT_NAMED: &str = "this folder beside the run's root was not part of the workflow when the run began: a file of the workflow has to name it in a tag such as <call-workflow>";

/// A workflow's directory.
#[derive(Debug, Clone, Default)]
pub struct WorkflowDir {
    root: PathBuf,
    /// The run's root and its path as people see it, if this is a folder below.
    top: Option<(PathBuf, PathBuf)>,
    workspace: Option<PathBuf>,
    /// The path that is shown to people.
    shown: PathBuf,
    /// The pinned files, if this is the run's copy of them.
    pinned: Option<PinnedFiles>,
    /// What was read, if nothing is to be read twice.
    read: Option<Arc<ReadFiles>>,
    /// The names of the programs that are defined, if they are known.
    defined: Option<Arc<[String]>>,
}

/// The files of a workflow that were read.
#[derive(Debug, Default)]
struct ReadFiles {
    /// Those of the run's root, all at one moment.
    captured: Arc<WorkflowCapture>,
    /// The texts of others, by their real paths.
    further: Mutex<BTreeMap<PathBuf, Arc<str>>>,
}

impl ReadFiles {
    fn further(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<str>>> {
        self.further.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self, real: &Path) -> Option<Arc<str>> {
        self.further().get(real).cloned()
    }
}

impl WorkflowDir {
    /// Takes a directory, resolved to its real path.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let root = path.canonicalize()?;
        if root.is_dir() {
            Ok(Self { shown: root.clone(), root, ..Self::default() })
        } else {
            Err(ErrorKind::NotADirectory.into())
        }
    }

    /// Returns this directory with a second one for the documents that it refers to, which is resolved, too.
    ///
    /// # Errors
    /// The error of the system.
    pub fn with_workspace(self, path: &Path) -> std::io::Result<Self> {
        Ok(Self { workspace: Some(path.canonicalize()?), ..self })
    }

    /// Returns this directory, shown to people by the path they gave.
    pub fn shown_as(self, path: &Path) -> Self {
        let shown = if path == Path::new(".") { PathBuf::new() } else { path.to_owned() };
        let top = self.top.map(|(top, shown_top)| {
            let steps = self.root.strip_prefix(&top).map_or(0, |below| below.components().count());
            let is_shown = self.root.strip_prefix(&top).is_ok_and(|below| shown.ends_with(below));
            let above = shown.ancestors().nth(steps).filter(|_| is_shown);
            (top, above.map_or(shown_top, Path::to_owned))
        });
        Self { top, shown, ..self }
    }

    /// Returns this directory as the copy that a run made of its workflow's files.
    pub fn pinned(self, pinned: PinnedFiles) -> Self {
        Self { pinned: Some(pinned), ..self }
    }

    /// Returns this directory with the files of the run's root as they were captured. Others are read once.
    pub fn captured(self, files: &Arc<WorkflowCapture>) -> Self {
        let read = ReadFiles { captured: Arc::clone(files), further: Mutex::default() };
        Self { read: Some(Arc::new(read)), ..self }
    }

    /// Returns this directory, whose files are read once, when they are needed.
    pub fn read_once(self) -> Self {
        self.captured(&Arc::default())
    }

    /// Returns a captured file by its real path.
    fn captured_file(&self, real: &Path) -> Option<&CapturedFile> {
        let top = self.top.as_ref().map_or(&self.root, |(top, _)| top);
        self.read.as_ref()?.captured.files.get(&below_root(top, real)?)
    }

    /// Returns whether a file was read before.
    fn was_read(&self, real: &Path) -> bool {
        self.captured_file(real).is_some()
            || self.read.as_ref().is_some_and(|read| read.text(real).is_some())
    }

    /// Returns this directory with the names of the defined programs, which its programs may start.
    pub fn with_defined_programs(self, names: impl IntoIterator<Item = String>) -> Self {
        Self { defined: Some(names.into_iter().collect()), ..self }
    }

    /// Returns its real path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns its path as shown to people.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Returns the folder that it is a copy of; the directory itself if it is not a copy.
    pub fn live_root(&self) -> PathBuf {
        self.pinned.as_ref().map_or_else(|| self.root.clone(), |pinned| pinned.live_of(&self.root))
    }

    /// Returns the root of the plugin that it is part of.
    pub fn plugin(&self) -> Option<PathBuf> {
        plugin_root(&self.live_root())
    }

    /// Returns the copy that is executed instead of a file of the folder; `None` for a file that is not part of the
    /// workflow.
    ///
    /// # Errors
    /// [`Error`] if the file was added after the run began, or the copy was changed.
    pub fn executable_copy(&self, path: &Path) -> Result<Option<PathBuf>, Error> {
        self.pinned.as_ref().map_or(Ok(None), |pinned| pinned.executable_copy(path))
    }

    /// Checks that the copy of the folder is whole, because a process may read any file in it.
    ///
    /// # Errors
    /// [`Error::Unreadable`] that names the copy.
    pub fn check_copy(&self) -> Result<(), Error> {
        self.pinned.as_ref().map_or(Ok(()), PinnedFiles::check_copy)
    }

    /// Returns a file of the workflow that a command names and that has changed since the run began.
    pub fn changed_file_in(&self, command: &str) -> Option<String> {
        self.pinned.as_ref()?.changed_file_in(command)
    }

    /// Returns this directory, or a folder below.
    ///
    /// # Errors
    /// As [`below`](Self::below).
    pub fn at(&self, folder: Option<&Folder>) -> Result<Self, Error> {
        folder.map_or_else(|| Ok(self.clone()), |folder| self.below(folder))
    }

    /// Returns a folder below.
    ///
    /// # Errors
    /// [`Error`] if there is none, it leads out of the directory, or came after the run began.
    pub fn below(&self, folder: &Folder) -> Result<Self, Error> {
        let mut path = self.root.join(folder.as_str());
        let is_beside = folder.sibling().is_some() && self.pinned.is_none() && !path.is_dir();
        if is_beside {
            path = on_disk(&self.root, folder.as_str());
        }
        let shown = self.shown.join(folder.on_disk());
        let name = || shown.display().to_string();
        let refused = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => match &self.pinned {
                Some(pinned) if pinned.live_of(&path).is_dir() && folder.sibling().is_some() => {
                    Error::Unreadable { path: name(), error: NOT_NAMED.to_owned() }
                }
                Some(pinned) if pinned.live_of(&path).is_dir() => Error::NotPinned { path: name() },
                _ => Error::NoFolder { path: name() },
            },
            _ => Error::Unreadable { path: name(), error: error.to_string() },
        };
        let below = Self::open(&path).map_err(refused)?;
        if is_beside && below.root == self.root {
            return Ok(self.clone());
        }
        let is_within = if is_beside {
            may_enter(&self.root, folder, &below.root)
        } else {
            below.root.starts_with(&self.root)
        };
        if !is_within {
            return Err(Error::Outside { path: name() });
        }
        let (pinned, workspace) = (self.pinned.clone(), self.workspace.clone());
        let top = self.top.clone().or_else(|| Some((self.root.clone(), self.shown.clone())));
        let (read, defined) = (self.read.clone(), self.defined.clone());
        Ok(Self { top, workspace, pinned, read, defined, ..below }.shown_as(&shown))
    }

    /// Returns the real path of a file, which is in the directory and a regular file. Only a link can lead
    /// elsewhere, because a name has no other directories in it.
    fn resolve(&self, name: &StateName) -> Result<PathBuf, Error> {
        if name.as_str().contains('/') {
            return Err(Error::Outside { path: self.path(name) });
        }
        match &self.pinned {
            Some(pinned) if pinned.reads_live(name) => {
                self.resolve_below(&pinned.live_of(&self.root), name)
            }
            Some(pinned) => {
                let path = self.root.join(name.as_str());
                if pinned.is_verified(&path) {
                    return Ok(path);
                }
                let found = self.resolve_below(&self.root, name);
                let Err(Error::Missing { path, .. }) = &found else { return found };
                match self.resolve_below(&pinned.live_of(&self.root), name) {
                    Ok(_) => Err(Error::NotPinned { path: path.clone() }),
                    Err(Error::Missing { .. }) => found,
                    Err(error) => Err(error),
                }
            }
            None => {
                let path = self.root.join(name.as_str());
                if self.was_read(&path) { Ok(path) } else { self.resolve_below(&self.root, name) }
            }
        }
    }

    fn resolve_below(&self, root: &Path, name: &StateName) -> Result<PathBuf, Error> {
        let path = root.join(name.as_str());
        let refused = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => {
                Error::Missing { path: self.path(name), similar: self.similar(name) }
            }
            _ => Error::Unreadable { path: self.path(name), error: error.to_string() },
        };
        let file = path.symlink_metadata().map_err(refused)?;
        if file.is_file() {
            return Ok(path);
        }
        let real = path.canonicalize().map_err(refused)?;
        if !real.starts_with(root) {
            return Err(Error::Outside { path: self.path(name) });
        }
        if real.is_file() { Ok(real) } else { Err(Error::NotAFile { path: self.path(name) }) }
    }

    /// Returns the text of a file, as it was when the run began, or when the workflow was read.
    fn text(&self, real: &Path, shown: &str) -> Result<String, Error> {
        match (&self.pinned, &self.read) {
            (Some(pinned), _) => pinned.text(real, shown),
            (None, None) => text(real, shown),
            (None, Some(known)) => match (self.captured_file(real), known.text(real)) {
                (Some(file), _) => decoded(file.content.clone(), shown),
                (None, Some(text)) => Ok(text.to_string()),
                (None, None) => {
                    let found = text(real, shown)?;
                    known.further().insert(real.to_owned(), found.as_str().into());
                    Ok(found)
                }
            },
        }
    }

    /// Returns the text of a file outside the scope. If the run has a copy of its folder, the file is read from the
    /// copy.
    fn text_outside(&self, real: &Path, shown: &str) -> Result<String, Error> {
        match self.pinned.as_ref().and_then(|pinned| Some((pinned, pinned.copy_of(real)?))) {
            Some((pinned, copy)) => pinned.text(&copy, shown),
            None => text(real, shown),
        }
    }

    fn similar(&self, name: &StateName) -> Option<String> {
        let entries = std::fs::read_dir(&self.root).ok()?;
        let names: Vec<String> =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        closest(name.as_str(), names.iter().map(String::as_str)).map(str::to_owned)
    }
}

impl WorkflowSource for WorkflowDir {
    fn read(&self, name: &StateName) -> Result<String, Error> {
        self.text(&self.resolve(name)?, &self.path(name))
    }

    fn defined_programs(&self) -> Option<&[String]> {
        self.defined.as_deref()
    }

    fn is_as_pinned(&self, name: &StateName) -> bool {
        let Some(pinned) = &self.pinned else { return true };
        let Ok(real) = self.resolve(name) else { return true };
        pinned.is_as_pinned(&real)
    }

    fn check(&self, name: &StateName) -> Result<(), Error> {
        self.resolve(name).map(drop)
    }

    fn is_executable(&self, name: &StateName) -> bool {
        let Ok(path) = self.resolve(name) else { return false };
        match self.captured_file(&path) {
            Some(file) => file.is_executable,
            None => path.metadata().is_ok_and(|file| file.mode() & 0o100 != 0),
        }
    }

    fn within(&self, folder: &Folder) -> Result<Arc<dyn WorkflowSource>, Error> {
        self.below(folder).map(|below| -> Arc<dyn WorkflowSource> { Arc::new(below) })
    }

    fn scope(&self, path: &ScopePath) -> Result<Arc<dyn WorkflowSource>, Error> {
        let (top, shown) =
            self.top.clone().unwrap_or_else(|| (self.root.clone(), self.shown.clone()));
        let here = below_root(&top, &self.root).and_then(|here| Folder::parse(&here).ok());
        let beyond = |_| Error::BeyondRoot { path: path.to_string() };
        let folder = path.seen_from(here.as_ref()).map_err(beyond)?;
        let top = Self { root: top, top: None, shown, ..self.clone() };
        match folder {
            None => Ok(Arc::new(top)),
            Some(folder) => top.within(&folder),
        }
    }

    fn names(&self) -> Result<Vec<StateName>, Error> {
        let unreadable = |error: std::io::Error| Error::Unreadable {
            path: self.shown.display().to_string(),
            error: error.to_string(),
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.root).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().into_string().ok();
            let same = |name: &StateName| entry.file_name() == *name.as_str();
            let state = name.and_then(|name| StateName::parse(&name).ok()).filter(same);
            names.extend(state.filter(|_| !entry.path().is_dir()));
        }
        names.sort();
        Ok(names)
    }

    fn path(&self, name: &StateName) -> String {
        self.shown.join(name.as_str()).display().to_string()
    }

    fn document(&self, path: &str) -> Result<String, Error> {
        let read = self.read_path(path);
        let Err(Error::Missing { .. }) = &read else { return read };
        let mut searched = vec![self.live_root().display().to_string()];
        for root in [plugin_root(&self.live_root()), self.workspace.clone()].into_iter().flatten() {
            match document(&root, path).and_then(|(real, shown)| self.text_outside(&real, &shown)) {
                Err(Error::Missing { .. }) => searched.push(root.display().to_string()),
                found => return found,
            }
        }
        Err(Error::NoDocument { path: path.to_owned(), searched })
    }

    fn is_in_plugin(&self, path: &str) -> bool {
        let is_missing = matches!(document(&self.root, path), Err(Error::Missing { .. }));
        let plugin = if is_missing { plugin_root(&self.live_root()) } else { None };
        plugin.is_some_and(|plugin| document(&plugin, path).is_ok())
    }

    fn read_path(&self, path: &str) -> Result<String, Error> {
        let (real, shown) = document(&self.root, path)?;
        self.text(&real, &shown)
    }

    fn check_path(&self, path: &str, is_folder: bool) -> Result<(), Error> {
        let (real, shown) = below(&self.root, path)?;
        match real.is_dir() {
            true if !is_folder => Err(Error::NotAFile { path: shown }),
            false if is_folder => {
                Err(Error::Unreadable { path: shown, error: "this is not a folder".to_owned() })
            }
            _ => Ok(()),
        }
    }
}

/// Returns the real path of a file below a directory, and the path it is shown by.
fn document(root: &Path, path: &str) -> Result<(PathBuf, String), Error> {
    let (real, shown) = below(root, path)?;
    if real.is_file() { Ok((real, shown)) } else { Err(Error::NotAFile { path: shown }) }
}

/// Returns the real path of a file or a folder below a directory, and the path it is shown by.
fn below(root: &Path, path: &str) -> Result<(PathBuf, String), Error> {
    let shown = root.join(path).display().to_string();
    if !stays_below(path) {
        return Err(Error::Outside { path: shown });
    }
    let real = root.join(path).canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            Error::Missing { path: shown.clone(), similar: None }
        }
        _ => Error::Unreadable { path: shown.clone(), error: error.to_string() },
    })?;
    if !real.starts_with(root) {
        return Err(Error::Outside { path: shown });
    }
    Ok((real, shown))
}

// The plugin that a workflow is part of: the nearest folder above it with `.claude-plugin/` or `plugin.json`.
//
// Its documents become prompts, so others must not be able to make one: the search ends at a folder that belongs to
// another user than the workflow's, or that others can write into.

/// The number of folders above a workflow that are searched.
const MAX_LEVELS: usize = 16;

/// The bit of a folder's mode that lets everybody write into it.
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// Returns the root of the plugin that a folder is part of.
pub(super) fn plugin_root(folder: &Path) -> Option<PathBuf> {
    let owner = folder.metadata().ok()?.uid();
    let above = folder.ancestors().skip(1).take(MAX_LEVELS);
    let is_safe = |folder: &&Path| {
        folder
            .symlink_metadata()
            .is_ok_and(|found| found.uid() == owner && found.mode() & WRITABLE_BY_OTHERS == 0)
    };
    let mut safe = above.take_while(is_safe);
    safe.find(|folder| {
        folder.join(".claude-plugin").is_dir() || folder.join("plugin.json").is_file()
    })
    .map(Path::to_owned)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod plugin_root_tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nearest_folder_with_plugin_file_is_root_unless_others_can_write_there() {
        let place = tempfile::tempdir().expect("a directory");
        let root = place.path().canonicalize().expect("it is there");
        let plugin = root.join("plugin");
        let skill = plugin.join("skills/one");
        std::fs::create_dir_all(&skill).expect("made");
        for folder in [&plugin, &plugin.join("skills"), &skill] {
            std::fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("set");
        }
        assert_eq!(plugin_root(&skill), None);
        std::fs::create_dir(plugin.join(".claude-plugin")).expect("made");
        assert_eq!(plugin_root(&skill), Some(plugin.clone()));
        std::fs::write(plugin.join("skills/plugin.json"), "{}").expect("written");
        assert_eq!(plugin_root(&skill), Some(plugin.join("skills")));
        let open = Permissions::from_mode(0o777);
        std::fs::set_permissions(plugin.join("skills"), open).expect("set");
        assert_eq!(plugin_root(&skill), None);
    }
}
