//! Lists the facts that hold, from the change log or from their files.
//!
//! What many changes together make of each file of the dataspace. Pure.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::thread::Builder;

use super::entry::ProvenFact;
use super::logged_facts::{LoggedFact, LoggedFacts};
use super::redo::is_blocked;
use super::{Dataspace, FACT, FactListing, FactLookup, damaged, entries, entries_of};
use crate::Error;
use crate::dataspace::fact_file;
use crate::dataspace::write::ChangeLogContent;
use raymond_model::fact::{Fact, FactSelection};

/// The least number of facts for which a thread is worth its start.
const FACTS_PER_THREAD: usize = 256;

/// The size of a change log for which a thread is worth its start, in bytes.
const LOG_FOR_A_THREAD: usize = 64 * 1024;

impl Dataspace {
    /// Returns all facts that hold, each from its file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn facts(&self) -> Result<FactListing, Error> {
        self.recover_for_reader()?;
        self.all_facts()
    }

    /// Returns all facts that hold, in whatever boot they were asserted.
    pub(super) fn all_facts(&self) -> Result<FactListing, Error> {
        let mut listing = FactListing::default();
        for folder in entries(&self.path.join("facts"))? {
            self.list(&folder, entries_of(&folder), &LoggedFacts::new(), &mut listing)?;
        }
        listing.facts.sort_by(|a, b| (&a.label, &a.key).cmp(&(&b.label, &b.key)));
        Ok(listing)
    }

    /// Returns the facts of one label, as the change log has them, and from their files where it does not.
    ///
    /// # Errors
    /// [`Error::Unfit`] for a text that cannot be a label, [`Error::Io`].
    pub fn labelled(&self, label: &str) -> Result<FactListing, Error> {
        self.recover_for_reader()?;
        self.labelled_in(label, ChangeLogContent::read(&self.changes())?.as_ref(), None)
    }

    /// Returns the facts of one label, as a change log has them; with a selection, only the selected ones.
    pub(super) fn labelled_in(
        &self,
        label: &str,
        log: Option<&ChangeLogContent>,
        selection: Option<&FactSelection>,
    ) -> Result<FactListing, Error> {
        let mut listing = FactListing::default();
        let folder = self.folder(label)?;
        // Both take their time with thousands of facts.
        let (files, known) = std::thread::scope(|scope| {
            let list = || entries_of(&folder);
            let log = log.filter(|log| !log.lines.is_empty());
            let thread = log
                .filter(|log| log.lines.len() > LOG_FOR_A_THREAD)
                .and_then(|_| Builder::new().spawn_scoped(scope, list).ok());
            let known = log.map(|log| log.facts_of(label, selection)).unwrap_or_default();
            let files = thread.and_then(|thread| thread.join().ok()).unwrap_or_else(list);
            (files, known)
        });
        self.list(&folder, files, &known, &mut listing)?;
        listing.facts.retain(|fact| selection.is_none_or(|own| own.includes(fact)));
        listing.facts.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(listing)
    }

    /// Lists a directory of facts; files whose facts are known are not opened.
    fn list(
        &self,
        folder: &Path,
        files: Result<Vec<DirEntry>, Error>,
        known: &LoggedFacts<'_>,
        listing: &mut FactListing,
    ) -> Result<(), Error> {
        if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
            listing.warnings.push(damaged(folder, "it is not a directory of facts"));
            return Ok(());
        }
        let mut unknown = Vec::new();
        let files = match files {
            Err(Error::Io { error, .. }) if is_blocked(&error) => {
                listing.warnings.push(damaged(folder, &error.to_string()));
                return Ok(());
            }
            files => files?,
        };
        for entry in files {
            let name = entry.file_name();
            let logged = name.to_str().and_then(|name| known.get(fact_file::stem(name)?)?.as_ref());
            let is_plain = || entry.file_type().is_ok_and(|kind| kind.is_file());
            let logged = logged.filter(|_| is_plain());
            if logged.is_some_and(|logged| !logged.is_selected) {
                continue;
            }
            match logged.and_then(|logged| self.believed(logged)) {
                Some(fact) => listing.facts.push(fact),
                None => unknown.push(entry.path()),
            }
        }
        unknown.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        for found in self.read_all(&unknown)? {
            match found {
                FactLookup::Fact(fact) => listing.facts.push(fact),
                FactLookup::Damaged(why) => listing.warnings.push(why),
                FactLookup::Nothing => {}
            }
        }
        Ok(())
    }

    /// Returns a logged fact whose proof holds.
    fn believed(&self, logged: &LoggedFact<'_>) -> Option<Fact> {
        ProvenFact::read(logged.text, self.key.as_ref(), FACT)
            .ok()
            .map(|proven| proven.value.into())
    }

    /// Reads files of facts, many of them on several threads.
    fn read_all(&self, paths: &[PathBuf]) -> Result<Vec<FactLookup>, Error> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let each = paths.len().div_ceil(threads).max(FACTS_PER_THREAD);
        let read = |paths: &[PathBuf]| -> Result<Vec<FactLookup>, Error> {
            paths.iter().map(|path| self.read_in_place(path)).collect()
        };
        let (first, others) = paths.split_at(paths.len().min(each));
        std::thread::scope(|scope| {
            let start = |part| Builder::new().spawn_scoped(scope, move || read(part)).ok();
            let parts: Vec<_> = others.chunks(each).map(|part| (part, start(part))).collect();
            let mut found = read(first)?;
            for (part, thread) in parts {
                // Without a thread for it, a part is read here.
                let by_thread = thread.and_then(|thread| thread.join().ok());
                found.extend(by_thread.unwrap_or_else(|| read(part))?);
            }
            Ok(found)
        })
    }
}
