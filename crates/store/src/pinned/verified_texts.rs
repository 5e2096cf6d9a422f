//! The texts of a run's copy that were read before, and were as pinned.
//!
//! A pinned text never changes, so it is read and verified once. The file that it is the copy of is compared again only
//! when it is another version than the one that was last found equal.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capture::FileVersion;

/// The maximum size of all texts that are kept, in bytes.
const MAX_TOTAL_BYTES: usize = 8 * 1024 * 1024;

/// The texts by their paths below the folder.
#[derive(Debug, Default)]
pub(super) struct VerifiedTexts(Mutex<KeptTexts>);

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
    pub(super) fn get(&self, path: &str) -> Option<Arc<str>> {
        self.lock().texts.get(path).map(|kept| Arc::clone(&kept.text))
    }

    /// Returns whether the text of a path was verified.
    pub(super) fn has(&self, path: &str) -> bool {
        self.lock().texts.contains_key(path)
    }

    /// Keeps a verified text, if there is room for it, and the version of the copied file that had it, if that is known.
    pub(super) fn keep(&self, path: &str, text: &str, equal: Option<FileVersion>) {
        let mut kept = self.lock();
        if kept.bytes.saturating_add(text.len()) <= MAX_TOTAL_BYTES {
            kept.bytes += text.len();
            kept.texts.insert(path.to_owned(), VerifiedText { text: text.into(), equal });
        }
    }

    /// Returns whether this version of the copied file was found equal.
    pub(super) fn is_equal(&self, path: &str, version: FileVersion) -> bool {
        self.lock().texts.get(path).is_some_and(|kept| kept.equal == Some(version))
    }

    /// Notes that this version of the copied file is equal.
    pub(super) fn note_equal(&self, path: &str, version: FileVersion) {
        if let Some(kept) = self.lock().texts.get_mut(path) {
            kept.equal = Some(version);
        }
    }

    fn lock(&self) -> MutexGuard<'_, KeptTexts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
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
