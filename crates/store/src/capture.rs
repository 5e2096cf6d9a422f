//! The files of a workflow's folder, read at one moment and kept with a run.
//!
//! Bounds keep a folder that is the root of a large repository from filling the disk: the files near
//! the folder's top come first. A file beyond the bounds is not part of the run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use raymond_lang::source::checksum;
use raymond_model::sealed_terms::{PINS_VERSION, PinnedFile, WorkflowPins, is_below};

use crate::plain_file::if_there;
use crate::{Error, files, plain_file};

/// The most files of a workflow.
pub const MAX_FILES: usize = 2_000;

/// The most bytes of all files together.
pub const MAX_TOTAL: u64 = 64 * 1024 * 1024;

/// The most bytes of one file, and of a prompt.
pub const MAX_FILE: u64 = 16 * 1024 * 1024;

/// The size from which a file of a copy is flushed by itself, in bytes.
pub(super) const LARGE: u64 = 256 * 1024;

/// The deepest folder below the workflow's.
const MAX_DEPTH: usize = 16;

/// Folders of build output, dependencies or records, which are not part of a workflow.
const SKIPPED_FOLDERS: [&str; 12] = [
    ".cache",
    ".git",
    ".hg",
    ".raymond",
    ".svn",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "site-packages",
    "target",
    "venv",
];

/// A file as it was read.
#[derive(Debug, Clone)]
pub struct CapturedFile {
    pub content: Vec<u8>,
    /// True if it could be executed.
    pub is_executable: bool,
    /// Its version when it was read; `None` for the file of a copy.
    pub(super) version: Option<FileVersion>,
}

/// The files of a workflow's folder, by their paths below it.
#[derive(Debug, Clone, Default)]
pub struct WorkflowCapture {
    pub files: BTreeMap<String, CapturedFile>,
    /// The number of files beyond the bounds.
    pub left_out: usize,
    total: u64,
}

impl WorkflowCapture {
    /// Reads a folder. `apart` is a directory in it that is not read: the directory of the runs.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder itself cannot be read; a file that cannot be read is left out.
    pub fn of(folder: &Path, apart: &Path) -> Result<Self, Error> {
        let root = folder.canonicalize().map_err(Error::io("read the folder", folder))?;
        let mut capture = Self::default();
        capture.read(&root, "", apart)?;
        Ok(capture)
    }

    /// Adds the files of a folder, given by its real path.
    ///
    /// # Errors
    /// [`Error::Io`] if the machine has no room to read them; a file that cannot be read otherwise is left out.
    pub fn read(&mut self, root: &Path, prefix: &str, apart: &Path) -> Result<(), Error> {
        let mut seen = BTreeSet::from([root.to_owned()]);
        let mut folders = VecDeque::from([(root.to_owned(), prefix.to_owned(), 0)]);
        while let Some((folder, prefix, depth)) = folders.pop_front() {
            for (name, path) in readable(&folder, entries(&folder))?.unwrap_or_default() {
                let Some(real) = readable(&path, path.canonicalize())? else { continue };
                let Some(metadata) = readable(&real, real.metadata())? else { continue };
                if !real.starts_with(root) || real == apart {
                    continue;
                }
                let below = format!("{prefix}{name}");
                if metadata.is_file() {
                    self.add(below, &real, &metadata)?;
                } else if metadata.is_dir()
                    && is_part(&name)
                    && depth < MAX_DEPTH
                    && seen.insert(real.clone())
                {
                    folders.push_back((real, format!("{below}/"), depth + 1));
                }
            }
        }
        Ok(())
    }

    /// Returns files with these contents, by their paths; true stands for a file that can be executed.
    pub fn of_contents(contents: BTreeMap<String, (Vec<u8>, bool)>) -> Self {
        let file =
            |(content, is_executable)| CapturedFile { content, is_executable, version: None };
        Self::of_files(contents.into_iter().map(|(path, found)| (path, file(found))).collect())
    }

    /// Returns files that were kept.
    pub(super) fn of_files(files: BTreeMap<String, CapturedFile>) -> Self {
        Self { files, ..Self::default() }
    }

    fn add(&mut self, path: String, real: &Path, metadata: &Metadata) -> Result<(), Error> {
        let size = metadata.len();
        let fits =
            size <= MAX_FILE && self.total + size <= MAX_TOTAL && self.files.len() < MAX_FILES;
        let content = fits.then(|| readable(real, plain_file::read(real, MAX_FILE))).transpose()?;
        match content.flatten() {
            Some(content) => {
                self.total += content.len() as u64;
                let is_executable = metadata.permissions().mode() & 0o100 != 0;
                let version = Some(metadata.into());
                self.files.insert(path, CapturedFile { content, is_executable, version });
            }
            None => self.left_out += 1,
        }
        Ok(())
    }

    /// Returns the warning about files beyond the bounds, if there are any.
    pub fn warning(&self) -> Option<String> {
        let count = self.left_out;
        (count > 0).then(|| {
            format!(
                "{count} files of the workflow's folder are not pinned with the run: more than {MAX_FILES} files, {} MiB, or {} MiB of one",
                MAX_TOTAL >> 20,
                MAX_FILE >> 20,
            )
        })
    }

    /// Returns the checksums of the files.
    pub fn pins(&self) -> WorkflowPins {
        let pin = |file: &CapturedFile| PinnedFile {
            checksum: checksum(&file.content),
            size: file.content.len() as u64,
            is_executable: file.is_executable,
        };
        let files = self.files.iter().map(|(path, file)| (path.clone(), pin(file))).collect();
        WorkflowPins { version: PINS_VERSION, files }
    }

    /// Returns the files that are text.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let text = |file: &CapturedFile| String::from_utf8(file.content.clone()).ok();
        self.files.iter().filter_map(|(path, file)| Some((path.clone(), text(file)?))).collect()
    }

    /// Iterates over the paths of the files that can be executed.
    pub fn executables(&self) -> impl Iterator<Item = &str> {
        let files = self.files.iter().filter(|(_, file)| file.is_executable);
        files.map(|(path, _)| path.as_str())
    }

    /// Writes the files into a directory that is not there yet. Only large files are durable below it; for the
    /// others, their [contents](save) are.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        files::make_draft_dir(directory)?;
        let mut durable = BTreeSet::new();
        for (path, file) in &self.files {
            if !is_below(path) {
                let outside = std::io::Error::other("the path leaves the folder");
                return Err(Error::io("write", &directory.join(path))(outside));
            }
            let path = directory.join(path);
            if is_large(file.content.len() as u64) {
                let parents = path.ancestors().skip(1);
                durable.extend(
                    parents.take_while(|parent| parent.starts_with(directory)).map(Path::to_owned),
                );
            }
            files::make_draft_dir(path.parent().unwrap_or(directory))?;
            let mode = if file.is_executable { 0o500 } else { 0o400 };
            let mut options = files::private();
            let written = options.mode(mode).write(true).create_new(true).open(&path);
            written
                .and_then(|mut written| {
                    std::io::Write::write_all(&mut written, &file.content)?;
                    if is_large(file.content.len() as u64) {
                        written.sync_all()?;
                    }
                    Ok(())
                })
                .map_err(Error::io("write", &path))?;
        }
        durable.iter().try_for_each(|parent| files::sync_dir(parent))
    }
}

/// Returns the entries of a folder whose names are text, in order.
fn entries(folder: &Path) -> std::io::Result<Vec<(String, PathBuf)>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        entries.extend(entry.file_name().into_string().ok().map(|name| (name, entry.path())));
    }
    entries.sort();
    Ok(entries)
}

/// Returns what was read; `None` if it cannot be, unless the machine has no room for it.
fn readable<T>(path: &Path, read: std::io::Result<T>) -> Result<Option<T>, Error> {
    match read {
        Err(error) if plain_file::is_out_of_room(&error) => Err(Error::io("read", path)(error)),
        read => Ok(read.ok()),
    }
}

/// Returns whether a file of that size is flushed by itself.
pub(super) fn is_large(size: u64) -> bool {
    size >= LARGE
}

pub(super) fn is_part(folder: &str) -> bool {
    !SKIPPED_FOLDERS.contains(&folder)
}

/// Returns the content of a plain file, or of the file that a link leads to; `None` for anything else.
pub(super) fn content_of(path: &Path) -> Option<Vec<u8>> {
    plain_file::read(&path.canonicalize().ok()?, MAX_FILE).ok()
}

/// A version of a file, as its metadata tell it: whether a file has changed is known without reading it.
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

// The contents of a run's pinned files, one after another in one file.
//
// The copy of a workflow has many files, and a flush of each would take longer than the rest of a run's start. So the
// copy is written without flushes, and this file is flushed in their place: if a power cut damages the copy, the copy
// is made again from it. The list of pinned files gives the order and the sizes, and its checksums prove each content.

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
    let contents = if_there(plain_file::open(path)).map_err(Error::io("read", path))?;
    let Some(mut contents) = contents.map(|file| file.take(MAX_TOTAL)) else { return Ok(None) };
    let mut found = BTreeMap::new();
    for (name, pin) in &pins.files {
        let is_as_pinned = |content: &Vec<u8>| checksum(content) == pin.checksum;
        let content = if is_large(pin.size) {
            copies.iter().filter_map(|copy| content_of(&copy.join(name))).find(is_as_pinned)
        } else {
            next(&mut contents, pin).map_err(Error::io("read", path))?.filter(is_as_pinned)
        };
        let Some(content) = content else { return Ok(None) };
        let file = CapturedFile { content, is_executable: pin.is_executable, version: None };
        found.insert(name.clone(), file);
    }
    Ok(Some(WorkflowCapture::of_files(found)))
}

/// Reads the content of the next file; `None` at the end.
fn next(contents: &mut std::io::Take<File>, pin: &PinnedFile) -> std::io::Result<Option<Vec<u8>>> {
    let mut content = Vec::new();
    contents.take(pin.size).read_to_end(&mut content)?;
    Ok((content.len() as u64 == pin.size).then_some(content))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn capture_holds_only_files_within_the_folder() {
        let place = tempfile::tempdir().expect("a directory");
        let folder = place.path().join("flow");
        for inner in ["sub/.claude", ".git", "node_modules", "ray"] {
            std::fs::create_dir_all(folder.join(inner)).expect("made");
            std::fs::write(folder.join(inner).join("file"), inner).expect("written");
        }
        std::fs::write(place.path().join("secret"), "s").expect("written");
        std::fs::write(folder.join("A.md"), "a").expect("written");
        symlink("A.md", folder.join("B.md")).expect("linked");
        symlink(place.path().join("secret"), folder.join("OUT.md")).expect("linked");
        symlink("..", folder.join("sub/up")).expect("linked");
        let apart = folder.join("ray").canonicalize().expect("real");
        let capture = WorkflowCapture::of(&folder, &apart).expect("captured");
        let paths: Vec<&str> = capture.files.keys().map(String::as_str).collect();
        assert_eq!(paths, ["A.md", "B.md", "sub/.claude/file"]);

        let copy = place.path().join("copy");
        capture.write(&copy).expect("written");
        let again = WorkflowCapture::of(&copy, &apart).expect("captured");
        assert_eq!(again.pins(), capture.pins());
    }

    #[test]
    fn files_beyond_capture_limits_are_left_out_and_counted() {
        let place = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(place.path().join("deep")).expect("made");
        std::fs::write(place.path().join("A.md"), "a").expect("written");
        let large = std::fs::File::create(place.path().join("large.bin")).expect("a file");
        large.set_len(MAX_FILE + 1).expect("a sparse file");
        for number in 0..MAX_FILES {
            std::fs::write(place.path().join(format!("deep/{number}")), "x").expect("written");
        }
        let capture = WorkflowCapture::of(place.path(), Path::new("/nowhere")).expect("captured");
        assert_eq!((capture.files.len(), capture.left_out), (MAX_FILES, 2));
        assert!(capture.files.contains_key("A.md"));
    }
}
