//! The watcher of selected facts: it finds the changes since the last read, without waiting for a writer.
//!
//! The change log only says which facts to read again. If a writer holds the lock, the last entry may not have been
//! applied yet, so its fact is read again next time. While nothing changes, a read is one system call.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Dataspace, FactLookup, is_absent, is_unusable};
use crate::Error;
use crate::dataspace::write::{ChangeLogContent, lines};
use crate::plain_file;
use raymond_model::fact::{Fact, FactChange, FactSelection, KnownFacts};

/// A watcher of a dataspace.
#[derive(Debug)]
pub struct DataspaceWatcher {
    space: Dataspace,
    /// The selected facts of those labels whose facts have all been read once.
    listed: FactSelection,
    reading: Option<ChangeLogReader>,
}

/// The file of changes as far as it is read. It stays open, so no other file is mistaken for it.
#[derive(Debug)]
struct ChangeLogReader {
    file: File,
    /// The device and inode numbers of the file.
    id: (u64, u64),
    /// The offset up to which nothing has to be read again, in bytes.
    position: u64,
    /// The file's length at the last read, in bytes.
    length: u64,
    /// True if the part between the two has to be read again.
    is_due: bool,
}

/// The changes against the known facts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FactChanges {
    /// The facts that no longer hold, then those that hold, in the order in which they were asserted.
    pub changes: Vec<FactChange>,
    /// The warnings: files that are no facts.
    pub warnings: Vec<String>,
}

/// The facts to look at.
enum DueFacts {
    /// The facts with these labels and keys.
    Of(Vec<(String, String)>),
    /// All facts, as this change log has them.
    All(Option<ChangeLogContent>),
}

impl DataspaceWatcher {
    /// Begins to watch: the first read is of all facts.
    pub fn new(space: Dataspace) -> Self {
        Self { space, listed: FactSelection::default(), reading: None }
    }

    /// Returns the changes among the selected facts, against the known ones. Each change is returned once, so the caller
    /// has to apply it before the next read. A fact that is no longer selected, because it has another payload, is
    /// retracted for the caller. A text that cannot be a label is warned of.
    ///
    /// # Errors
    /// [`Error::Io`]. The next read is of all facts.
    pub fn changes(
        &mut self,
        selection: &FactSelection,
        known: &KnownFacts,
    ) -> Result<FactChanges, Error> {
        let changes = self.read_changes(selection, known);
        if changes.is_err() {
            self.listed = FactSelection::default();
            self.reading = None;
        }
        changes
    }

    fn read_changes(
        &mut self,
        selection: &FactSelection,
        known: &KnownFacts,
    ) -> Result<FactChanges, Error> {
        let mut log = None;
        let due = match self.advance()? {
            DueFacts::Of(due) => due,
            DueFacts::All(found) => {
                self.listed = FactSelection::default();
                log = found;
                Vec::new()
            }
        };
        let listed = std::mem::replace(&mut self.listed, selection.clone());
        let is_listed = |label: &str| selection.is_same_for(label, &listed);
        let (mut now, mut changes) = (FactMap::new(), FactChanges::default());
        // Also where the selection has changed: the fact may be one that was selected before, too.
        for (label, key) in due.into_iter().filter(|(label, _)| selection.has_label(label)) {
            self.look_up((&label, &key), selection, &mut now, &mut changes)?;
        }
        for label in selection.labels().filter(|label| !is_listed(label)) {
            let names = known.all().filter(|fact| fact.label == label);
            let Some(keys) = selection.keys_beyond(label, &listed) else {
                if log.is_none() {
                    log = ChangeLogContent::read(&self.space.changes())?;
                }
                let listing = match self.space.labelled_in(label, log.as_ref(), Some(selection)) {
                    Err(Error::Unfit(unfit)) => {
                        changes.warnings.push(unfit.to_string());
                        continue;
                    }
                    listing => listing?,
                };
                changes.warnings.extend(listing.warnings);
                now.extend(names.map(|fact| ((fact.label, fact.key), None)));
                let facts = listing.facts.into_iter();
                now.extend(facts.map(|fact| ((fact.label.clone(), fact.key.clone()), Some(fact))));
                continue;
            };
            let left = names.filter(|fact| !selection.includes(fact));
            now.extend(left.map(|fact| ((fact.label, fact.key), None)));
            for key in keys {
                self.look_up((label, key), selection, &mut now, &mut changes)?;
            }
        }
        changes.warnings.dedup();
        changes.changes = compare(now, known);
        Ok(changes)
    }

    /// Reads the fact with this label and key. A text that cannot be a label or a key names no fact.
    fn look_up(
        &self,
        (label, key): (&str, &str),
        selection: &FactSelection,
        now: &mut FactMap,
        changes: &mut FactChanges,
    ) -> Result<(), Error> {
        let path = match self.space.fact(label, key) {
            Err(Error::Unfit(unfit)) => {
                changes.warnings.push(unfit.to_string());
                return Ok(());
            }
            path => path?,
        };
        let found = match self.space.read(&path)? {
            FactLookup::Fact(fact) => Some(fact).filter(|fact| selection.includes(fact)),
            FactLookup::Nothing => None,
            FactLookup::Damaged(why) => {
                changes.warnings.push(why);
                None
            }
        };
        now.insert((label.to_owned(), key.to_owned()), found);
        Ok(())
    }

    /// Reads the changes that were noted since the last read.
    fn advance(&mut self) -> Result<DueFacts, Error> {
        let path = self.space.changes();
        let there = match path.symlink_metadata() {
            Ok(there) if there.is_file() => there,
            // The next writer makes it anew. Until then all facts are read.
            Ok(_) => {
                self.reading = None;
                return Ok(DueFacts::All(None));
            }
            Err(error) if is_absent(&error) => {
                let was_there = self.reading.take().is_some();
                return Ok(if was_there { DueFacts::All(None) } else { DueFacts::Of(Vec::new()) });
            }
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        if !self.reading.as_ref().is_some_and(|reading| reading.is_of(&there)) {
            return self.begin(&path).map(DueFacts::All);
        }
        if let Some(reading) = &self.reading
            && !reading.is_due
            && reading.length == there.len()
        {
            return Ok(DueFacts::Of(Vec::new()));
        }
        let is_quiet = self.is_quiet()?;
        let Some(reading) = &mut self.reading else { return Ok(DueFacts::All(None)) };
        let found = reading.read(is_quiet).map_err(Error::io("read", &path))?;
        Ok(found.map_or_else(
            || {
                self.reading = None;
                DueFacts::All(None)
            },
            DueFacts::Of,
        ))
    }

    /// Opens the file of changes, and reads all of it.
    fn begin(&mut self, path: &Path) -> Result<Option<ChangeLogContent>, Error> {
        self.reading = None;
        self.space.recover_for_reader()?;
        let failed = || Error::io("read", path);
        let file = plain_file::open(path).map_err(Error::io("open", path))?;
        let quiet = self.is_quiet()?;
        let found = file.metadata().map_err(failed())?;
        let (id, length, is_quiet) = (id(&found), found.len(), quiet.is_some());
        drop(quiet);
        let content = ChangeLogContent::of(&file, length).map_err(failed())?;
        self.reading = content.as_ref().map(|content| ChangeLogReader {
            file,
            id,
            position: if is_quiet { content.end } else { content.start_of_last_change() },
            length,
            is_due: !is_quiet || content.end != length,
        });
        Ok(content)
    }

    /// Takes the lock if there is no writer: then all noted changes have been made.
    fn is_quiet(&self) -> Result<ChangeLogLock, Error> {
        let path = self.space.lock();
        match plain_file::open(&path) {
            Ok(file) => Ok(file.try_lock_shared().ok().map(|()| file)),
            Err(error) if is_absent(&error) || is_unusable(&error) => Ok(None),
            Err(error) => Err(Error::io("open", &path)(error)),
        }
    }
}

/// The lock, held for a moment; `None` if there is a writer.
type ChangeLogLock = Option<File>;

/// Facts that were read.
type FactMap = BTreeMap<(String, String), Option<Fact>>;

impl ChangeLogReader {
    fn is_of(&self, there: &Metadata) -> bool {
        self.id == id(there) && there.len() >= self.position
    }

    /// Returns the changes since the last read; `None` if the file is no change log.
    fn read(&mut self, quiet: ChangeLogLock) -> std::io::Result<Option<Vec<(String, String)>>> {
        self.length = self.file.metadata()?.len();
        let is_quiet = quiet.is_some();
        drop(quiet);
        let lines = lines(&self.file, self.position, self.length)?;
        Ok(lines.map(|lines| {
            self.position = if is_quiet { lines.end } else { lines.last };
            // The next writer cuts off a torn line and writes over it.
            self.is_due = !is_quiet || lines.end < self.length;
            lines.changes
        }))
    }
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Returns the changes in the facts that were read.
fn compare(now: FactMap, known: &KnownFacts) -> Vec<FactChange> {
    let change = |((label, key), fact)| match fact {
        Some(fact) => FactChange::Asserted(fact),
        None => FactChange::Retracted { label, key },
    };
    let mut changes: Vec<FactChange> =
        now.into_iter().map(change).filter(|change| known.is_news(change)).collect();
    changes.sort_by_key(|change| match change {
        FactChange::Asserted(fact) => fact.seq,
        FactChange::Retracted { .. } => 0,
    });
    changes
}
