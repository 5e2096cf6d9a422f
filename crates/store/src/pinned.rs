//! The workflow's files as they were when a run began.
//!
//! The run's directory has a copy. Each file is checked against its checksum each time it is read.
//!
//! A program that can write into the run's directory can change the copy, but not the list of checksums: that is
//! read once, when the run is resumed, and the run's seal holds it.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raymond_lang::source;
use raymond_lang::source::checksum;
use raymond_model::id::{BESIDE, Folder, StateName};
use raymond_model::sealed_terms::{PINS_VERSION, WorkflowPins, is_below, is_prompt_path};

use crate::capture::{FileVersion, MAX_FILE, WorkflowCapture, content_of, is_part};
use crate::source_text::text;
use crate::{Error, files, plain_file};

/// The longest list of pinned files, in bytes.
const MAX_LIST: u64 = 16 * 1024 * 1024;

/// The pinned files behind a workflow's directory.
#[derive(Debug, Clone)]
pub struct PinnedFiles {
    pins: Arc<WorkflowPins>,
    /// The top of the copy.
    copy: PathBuf,
    /// The folder that was copied.
    live: PathBuf,
    /// True if prompts are read from there.
    is_live: bool,
    verified: Arc<VerifiedTexts>,
    /// The files that were warned of already.
    warned: Arc<Mutex<BTreeSet<String>>>,
}

impl PinnedFiles {
    /// Takes the copy of a folder, both by their real paths.
    pub fn new(pins: WorkflowPins, copy: &Path, live: &Path, is_live: bool) -> Self {
        let (copy, live) = (copy.to_owned(), live.to_owned());
        let verified = Arc::default();
        Self { pins: Arc::new(pins), copy, live, is_live, verified, warned: Arc::default() }
    }

    /// Takes the texts that the copy was just written from, so that they need not be read again.
    pub fn with_captured(self, capture: &WorkflowCapture) -> Self {
        for (path, file) in &capture.files {
            let is_pinned = self.pins.files.contains_key(path);
            if let Ok(text) = std::str::from_utf8(&file.content)
                && is_pinned
            {
                self.verified.keep(path, text, file.version);
            }
        }
        self
    }

    /// Returns whether the text of a file of the copy was read before, and was as pinned.
    pub(super) fn is_verified(&self, file: &Path) -> bool {
        let path = file.strip_prefix(&self.copy).ok().and_then(Path::to_str);
        path.is_some_and(|path| self.verified.has(path))
    }

    /// Returns whether a state is read afresh: only prompts are, and only on request.
    pub(super) fn reads_live(&self, name: &StateName) -> bool {
        self.is_live && name.is_prompt()
    }

    /// Returns the folder that a folder of the copy was copied from.
    pub(super) fn live_of(&self, folder: &Path) -> PathBuf {
        let below = folder.strip_prefix(&self.copy).ok().and_then(Path::to_str);
        below.map_or_else(|| folder.to_owned(), |below| on_disk(&self.live, below))
    }

    /// Returns the path in the copy of a file in the folder that was copied, or of a pinned one beside it.
    fn below(&self, file: &Path) -> Option<String> {
        let below = below_root(&self.live, file)?;
        let is_within = file.starts_with(&self.live) || self.pins.files.contains_key(&below);
        is_within.then_some(below)
    }

    /// Returns the file of the copy for one of the folder that was copied; `None` for another file.
    pub(super) fn copy_of(&self, file: &Path) -> Option<PathBuf> {
        self.below(file).map(|below| self.copy.join(below))
    }

    /// Returns whether a file has the content it had when the run began.
    pub(super) fn is_as_pinned(&self, real: &Path) -> bool {
        // The copy may lie in the folder itself.
        let in_copy = real.strip_prefix(&self.copy).ok().and_then(Path::to_str).map(str::to_owned);
        let below = in_copy.or_else(|| self.below(real));
        let pin = below.and_then(|path| self.pins.files.get(&path));
        pin.zip(content_of(real)).is_some_and(|(pin, content)| pin.checksum == checksum(content))
    }

    /// Returns the text of a file of the copy, or of a prompt that is read afresh.
    pub(super) fn text(&self, real: &Path, shown: &str) -> Result<String, source::Error> {
        if !real.starts_with(&self.copy) {
            return text(real, shown);
        }
        let path = real.strip_prefix(&self.copy).ok().and_then(Path::to_str).unwrap_or_default();
        let not_pinned = || source::Error::NotPinned { path: shown.to_owned() };
        let pin = self.pins.files.get(path).ok_or_else(not_pinned)?;
        let live = on_disk(&self.live, path);
        if let Some(verified) = self.verified.get(path) {
            self.warn_of_change(path, &live, &verified);
            return Ok(verified.to_string());
        }
        let kept = text(real, shown)?;
        if checksum(&kept) == pin.checksum {
            self.verified.keep(path, &kept, None);
            self.warn_of_change(path, &live, &kept);
            return Ok(kept);
        }
        match text(&live, shown) {
            Ok(original) if checksum(&original) == pin.checksum => Ok(original),
            _ => Err(source::Error::Unreadable {
                path: shown.to_owned(),
                error: format!(
                    "the run's copy of this file was changed ({}), so raymond does not use it; use the current file with --migrate",
                    real.display()
                ),
            }),
        }
    }

    /// Returns the copy of a file of the folder, after a check of its content.
    pub(super) fn executable_copy(&self, path: &Path) -> Result<Option<PathBuf>, source::Error> {
        let Some(below) = self.below(path) else { return Ok(None) };
        let copy = self.copy.join(&below);
        if !self.pins.files.contains_key(&below) {
            return if path.is_file() {
                Err(source::Error::NotPinned { path: path.display().to_string() })
            } else {
                Ok(None)
            };
        }
        self.check_copy().map(|()| Some(copy))
    }

    /// Checks that the copy has every pinned file unchanged, and no other file.
    pub(super) fn check_copy(&self) -> Result<(), source::Error> {
        if is_copy_whole(&self.copy, &self.pins) {
            return Ok(());
        }
        let error = "the run's copy of the workflow was changed, so raymond does not execute it or pass it to Claude Code; use the current files with --migrate";
        Err(source::Error::Unreadable {
            path: self.copy.display().to_string(),
            error: error.to_owned(),
        })
    }

    /// Returns a file whose name stands in a command and whose content has changed: the command would run an
    /// untrusted file.
    pub(super) fn changed_file_in(&self, command: &str) -> Option<String> {
        let is_named = |path: &&String| {
            let name = path.rsplit('/').next().unwrap_or_default();
            !name.is_empty() && command.contains(name)
        };
        let is_changed = |path: &&String| !self.is_as_pinned(&self.live_of(&self.copy.join(path)));
        self.pins.files.keys().filter(is_named).find(is_changed).cloned()
    }

    /// Warns once that a file has changed: the run continues with the pinned one.
    fn warn_of_change(&self, path: &str, live: &Path, kept: &str) {
        let version = FileVersion::of(live);
        if version.is_some_and(|version| self.verified.is_equal(path, version)) {
            return;
        }
        if content_of(live).is_some_and(|now| now == kept.as_bytes()) {
            if let Some(version) = version {
                self.verified.note_equal(path, version);
            }
            return;
        }
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.live.is_dir() {
            if warned.insert(String::new()) {
                tracing::warn!(
                    "{}: the workflow's folder is gone; the run uses the copy of its files that it keeps",
                    self.live.display()
                );
            }
        } else if warned.insert(path.to_owned()) {
            let advice = if is_prompt_path(path) {
                ", and a run started with --reread-prompts always takes it"
            } else {
                ""
            };
            tracing::warn!(
                "{}: changed since the run began; the run uses the old content; `resume --migrate` or `retry --prompts` takes the new one, `branch --edit` repeats steps with it{advice}",
                live.display()
            );
        }
    }
}

/// Reads the list of a run's pinned files; `None` for a run that has none, because an older raymond
/// began it.
///
/// # Errors
/// [`Error::Newer`], [`Error::Io`].
pub fn load(path: &Path) -> Result<Option<WorkflowPins>, Error> {
    let Some(pins) = files::read_json::<WorkflowPins>(path, MAX_LIST)? else { return Ok(None) };
    if pins.version > PINS_VERSION {
        let (path, found) = (path.to_owned(), pins.version);
        return Err(Error::Newer { path, found, known: PINS_VERSION });
    }
    if let Some(name) = pins.files.keys().find(|name| !is_below(name)) {
        let why = format!("`{name}` is not a path below the workflow's folder");
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, why);
        return Err(Error::io("read", path)(error));
    }
    Ok(Some(pins))
}

/// Returns the text of a file of a run's copy; empty, if there is none.
pub fn kept_text(copy: &Path, path: &str) -> String {
    let content = content_of(&copy.join(path)).unwrap_or_default();
    String::from_utf8_lossy(&content).into_owned()
}

/// Returns whether a copy has every pinned file unchanged, and no other file, because a program may load any file
/// there.
pub(super) fn is_copy_whole(copy: &Path, pins: &WorkflowPins) -> bool {
    let mut expected: BTreeSet<&str> = pins.files.keys().map(String::as_str).collect();
    let mut folders = vec![(copy.to_owned(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { return false };
        for entry in entries {
            let Ok(name) = entry.map(|entry| entry.file_name()) else { return false };
            let Some(name) = name.to_str() else { return false };
            let (path, below) = (folder.join(name), format!("{prefix}{name}"));
            let Ok(metadata) = path.symlink_metadata() else { return false };
            if metadata.is_dir() {
                folders.push((path, format!("{below}/")));
            } else if !expected.remove(below.as_str()) || !is_as_pinned(&path, &below, pins) {
                return false;
            }
        }
    }
    expected.is_empty()
}

/// Returns whether a file of a copy is a plain one with the content that was pinned.
fn is_as_pinned(path: &Path, below: &str, pins: &WorkflowPins) -> bool {
    let content = plain_file::read(path, MAX_FILE).ok();
    let pin = pins.files.get(below);
    pin.zip(content).is_some_and(|(pin, content)| pin.checksum == checksum(content))
}

/// Writes the list of a run's pinned files.
pub(super) fn save(path: &Path, pins: &WorkflowPins) -> Result<(), Error> {
    files::replace(path, &json(path, pins)?)
}

/// Returns the list of a run's pinned files as it is written to a path.
pub(super) fn json(path: &Path, pins: &WorkflowPins) -> Result<Vec<u8>, Error> {
    serde_json::to_vec_pretty(pins).map_err(Error::json("write", path))
}

// Folders beside a run's root, which explicit tags such as `<call-workflow>` lead to.
//
// In a run's copy of its files they lie in a folder of the root. Only those are copied that a file of the workflow
// names literally, so that they are pinned, trusted and checked with the rest.

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

// The texts of a run's copy that were read before, and matched the pinned content.
//
// A pinned text never changes, so it is read and verified once. The original file is compared again only if its version
// differs from the last version that was found equal.

/// The maximum size of all texts that are kept, in bytes.
const MAX_TOTAL_BYTES: usize = 8 * 1024 * 1024;

/// The texts by their paths below the folder.
#[derive(Debug, Default)]
struct VerifiedTexts(Mutex<KeptTexts>);

#[derive(Debug, Default)]
struct KeptTexts {
    texts: BTreeMap<String, VerifiedText>,
    bytes: usize,
}

#[derive(Debug)]
struct VerifiedText {
    text: Arc<str>,
    /// The version of the copied file that had this text.
    equal: Option<FileVersion>,
}

impl VerifiedTexts {
    /// Returns the text of a path, if it was verified.
    fn get(&self, path: &str) -> Option<Arc<str>> {
        self.lock().texts.get(path).map(|kept| Arc::clone(&kept.text))
    }

    /// Returns whether the text of a path was verified.
    fn has(&self, path: &str) -> bool {
        self.lock().texts.contains_key(path)
    }

    /// Keeps a verified text, if there is room for it, and the version of the copied file that had it, if that is
    /// known.
    fn keep(&self, path: &str, text: &str, equal: Option<FileVersion>) {
        let mut kept = self.lock();
        if kept.bytes.saturating_add(text.len()) <= MAX_TOTAL_BYTES {
            kept.bytes += text.len();
            kept.texts.insert(path.to_owned(), VerifiedText { text: text.into(), equal });
        }
    }

    /// Returns whether this version of the copied file was found equal.
    fn is_equal(&self, path: &str, version: FileVersion) -> bool {
        self.lock().texts.get(path).is_some_and(|kept| kept.equal == Some(version))
    }

    /// Notes that this version of the copied file is equal.
    fn note_equal(&self, path: &str, version: FileVersion) {
        if let Some(kept) = self.lock().texts.get_mut(path) {
            kept.equal = Some(version);
        }
    }

    fn lock(&self) -> MutexGuard<'_, KeptTexts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod verified_texts_tests {
    use super::*;

    #[test]
    fn texts_are_kept_up_to_the_limit() {
        let texts = VerifiedTexts::default();
        texts.keep("a", &"x".repeat(MAX_TOTAL_BYTES - 1), None);
        texts.keep("b", "xx", None);
        assert!(texts.get("a").is_some() && texts.get("b").is_none());
        assert!(texts.has("a") && !texts.has("b"));
    }

    #[test]
    fn changed_file_is_another_version() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("A.md");
        std::fs::write(&path, "one").expect("written");
        let first = FileVersion::of(&path).expect("there");
        let texts = VerifiedTexts::default();
        texts.keep("A.md", "one", None);
        assert!(!texts.is_equal("A.md", first));
        texts.note_equal("A.md", first);
        assert!(texts.is_equal("A.md", first));
        std::fs::write(&path, "other").expect("written");
        assert!(!texts.is_equal("A.md", FileVersion::of(&path).expect("there")));
    }
}
