//! The change log: each change is appended as a whole and flushed, and only then made in the files.
//!
//! The first line names a generation, the boot it is of, and the number it begins at. The facts that held then follow,
//! one a line, and then the changes: number, label, key, and what to apply ([`ChangeLogEntry`]). A reader of a change
//! reads the fact itself. When the changes have outgrown their limit, a new file takes the place of this one, and its
//! readers read all facts once.

#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::entry::{ChangeLogEntry, LoggedChange};
use super::is_unusable;
use crate::dataspace::step;
use crate::fault::point;
use crate::plain_file;
use crate::{Error, files};

/// The limit of the first line's length, in bytes.
const MAX_HEADER: u64 = 4 * 1024;

/// The size of the part that is read first to find the last line, in bytes.
const TAIL: u64 = 8 * 1024;

/// The limit of that part, in bytes: an entry with the largest fact, and a torn one behind it.
const MAX_TAIL: u64 = 32 * 1024 * 1024;

/// The limit of what is read at once, in bytes: the file begins anew long before.
pub(super) const MAX_READ: u64 = 64 * 1024 * 1024;

/// The limit of the facts that a file begins with, in bytes. The files of the others are read.
const MAX_SNAPSHOT: usize = 16 * 1024 * 1024;

/// The number of the first change that machines share.
pub(super) const FIRST_SHARED: u64 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangeLogHeader {
    pub(super) generation: String,
    pub(super) from: u64,
    /// The boot in which all changes were made; an earlier raymond wrote none, and none that can be applied again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) boot: Option<String>,
    /// The length of the facts that follow, in bytes.
    #[serde(default)]
    pub(super) snapshot: u64,
}

/// The last line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LastLine {
    /// The header, or one of the facts after it: nothing has changed since.
    NoEntry,
    Entry(Box<ChangeLogEntry>),
    Damaged,
}

/// The file in the hands of the holder of the lock.
#[derive(Debug)]
pub(super) struct ChangeLog {
    file: File,
    pub(super) header: ChangeLogHeader,
    /// The start of the first change, in bytes.
    entries: u64,
    /// The end of the last whole line, in bytes.
    length: u64,
    pub(super) last: LastLine,
    /// The number of the next change.
    pub(super) next: u64,
}

impl ChangeLogHeader {
    /// Returns whether all changes behind it were made since the machine has started.
    pub(super) fn is_of_this_boot(&self) -> bool {
        self.boot.is_some() && self.boot.as_deref() == step::id()
    }

    /// Returns whether changes behind it may have been lost in a power cut. Without an id of the boot nobody knows.
    pub(super) fn is_of_other_boot(&self) -> bool {
        step::id().is_some_and(|boot| self.boot.as_deref().is_some_and(|own| own != boot))
    }
}

impl ChangeLog {
    /// Opens the file for writing. The incomplete line of a writer that died is cut off. Returns `None` if there is no
    /// file, or none that begins like one.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, Error> {
        let file = match plain_file::open_with(path, files::private().read(true).append(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // Anything but a plain file is replaced.
            Err(error) if plain_file::is_unfit(&error) => return Ok(None),
            Err(error) => return Err(Error::io("open", path)(error)),
        };
        let found = Self::of(file).map_err(Error::io("read", path))?;
        if let Some(log) = &found {
            log.file.set_len(log.length).map_err(Error::io("write", path))?;
        }
        Ok(found)
    }

    /// Returns the number of the last change in a file that others may write; 0 if nothing says it.
    pub(super) fn last_number_at(path: &Path) -> Result<u64, Error> {
        match plain_file::open(path).and_then(Self::of) {
            Ok(Some(log)) if log.last != LastLine::Damaged => Ok(log.last_number()),
            Ok(_) => Ok(0),
            Err(error) if error.kind() == ErrorKind::NotFound || is_unusable(&error) => Ok(0),
            Err(error) => Err(Error::io("read", path)(error)),
        }
    }

    fn of(file: File) -> std::io::Result<Option<Self>> {
        let Some((header, start)) = header(&file)? else { return Ok(None) };
        let Some((line, length)) = last_line(&file)? else { return Ok(None) };
        let Some(entries) = start.checked_add(header.snapshot).filter(|start| *start <= length)
        else {
            return Ok(None);
        };
        let mut log =
            Self { file, entries, length, last: LastLine::NoEntry, next: header.from, header };
        if length > entries {
            let entry = serde_json::from_slice::<ChangeLogEntry>(&line).ok();
            // Each change takes more than one byte; a forged number would leave none for others.
            let numbers = log.header.from.saturating_sub(1)..log.header.from.saturating_add(length);
            let entry = entry.filter(|entry| numbers.contains(&entry.0));
            match entry.and_then(|entry| Some((entry.0.checked_add(1)?, entry))) {
                Some((next, entry)) => {
                    log.next = next;
                    log.last = LastLine::Entry(Box::new(entry));
                }
                None => log.last = LastLine::Damaged,
            }
        }
        Ok(Some(log))
    }

    /// Begins a new file in place of any other, with the lines of facts that hold, all of them durable.
    pub(super) fn begin<'line>(
        path: &Path,
        next: u64,
        facts: impl Iterator<Item = &'line [u8]>,
    ) -> Result<Self, Error> {
        let random = || RandomState::new().build_hasher().finish();
        let mut snapshot = Vec::new();
        for fact in facts {
            if snapshot.len() + fact.len() < MAX_SNAPSHOT {
                snapshot.extend_from_slice(fact);
                snapshot.push(b'\n');
            }
        }
        let header = ChangeLogHeader {
            generation: format!("{:016x}{:016x}", random(), random()),
            from: next,
            boot: step::id().map(str::to_owned),
            snapshot: snapshot.len() as u64,
        };
        let mut content = line(&header).map_err(Error::io("write", path))?;
        content.append(&mut snapshot);
        files::replace(path, &content)?;
        let file = plain_file::open_with(path, files::private().read(true).append(true));
        let file = file.map_err(Error::io("open", path))?;
        let length = content.len() as u64;
        Ok(Self { file, header, entries: length, length, last: LastLine::NoEntry, next })
    }

    /// Returns whether the changes take more than this room, and more than the facts before them.
    pub(super) fn is_full(&self, room: u64) -> bool {
        self.length - self.entries > room.max(self.header.snapshot)
    }

    /// Appends a change, which is durable when this returns.
    pub(super) fn append(&mut self, path: &Path, entry: &ChangeLogEntry) -> Result<(), Error> {
        self.write(entry).map_err(Error::io("append to", path))?;
        point("dataspace.written");
        self.file.sync_data().map_err(Error::io("append to", path))?;
        point("dataspace.noted");
        Ok(())
    }

    /// Appends a change that is durable elsewhere.
    pub(super) fn append_copied(
        &mut self,
        path: &Path,
        entry: &ChangeLogEntry,
    ) -> Result<(), Error> {
        self.write(entry).map_err(Error::io("append to", path))
    }

    /// Has all readers read a fact again; returns the number of this. It is that of the last change, because nothing is
    /// changed: changes that machines share have the same numbers everywhere.
    pub(super) fn touch(&mut self, path: &Path, label: &str, key: &str) -> Result<u64, Error> {
        let (last, label, key) = (self.last_number(), label.to_owned(), key.to_owned());
        let entry = ChangeLogEntry(last, label, key, Some(LoggedChange::Reread {}));
        self.write(&entry).map_err(Error::io("append to", path))?;
        Ok(entry.0)
    }

    /// Returns the number of the last change; 0 if there is none.
    pub(super) fn last_number(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    fn write(&mut self, entry: &ChangeLogEntry) -> std::io::Result<()> {
        let line = line(entry)?;
        self.file.write_all(&line)?;
        self.length += line.len() as u64;
        self.next = entry.0.saturating_add(1);
        Ok(())
    }

    /// Returns all changes that can be read.
    pub(super) fn entries(&self) -> std::io::Result<Vec<ChangeLogEntry>> {
        let bytes = read(&self.file, self.entries, self.length.min(self.entries + MAX_READ))?;
        let lines = bytes.split(|&byte| byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

fn line(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Returns the first line of a change log; `None` if there is none that can be read.
pub(super) fn header_at(path: &Path) -> Result<Option<ChangeLogHeader>, Error> {
    match plain_file::open(path).and_then(|file| header(&file)) {
        Ok(found) => Ok(found.map(|(header, _)| header)),
        Err(error) if error.kind() == ErrorKind::NotFound || is_unusable(&error) => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// Returns the first line and its length; `None` if it is none of a change log.
pub(super) fn header(file: &File) -> std::io::Result<Option<(ChangeLogHeader, u64)>> {
    let start = read(file, 0, MAX_HEADER)?;
    let Some(end) = start.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
    let header = serde_json::from_slice(&start[..end]).ok();
    Ok(header.map(|header| (header, end as u64 + 1)))
}

/// Returns the last whole line and its end.
fn last_line(file: &File) -> std::io::Result<Option<(Vec<u8>, u64)>> {
    let length = file.metadata()?.len();
    let mut span = TAIL;
    loop {
        let start = length.saturating_sub(span);
        let mut tail = read(file, start, length)?;
        let end = tail.iter().rposition(|&byte| byte == b'\n');
        let before = end.and_then(|end| tail[..end].iter().rposition(|&byte| byte == b'\n'));
        if let (Some(end), true) = (end, before.is_some() || start == 0) {
            tail.truncate(end);
            let line = tail.split_off(before.map_or(0, |before| before + 1));
            return Ok(Some((line, start + end as u64 + 1)));
        }
        if start == 0 || span >= MAX_TAIL {
            return Ok(None);
        }
        span *= 4;
    }
}

pub(super) fn read(file: &File, from: u64, to: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}
