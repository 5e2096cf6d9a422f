//! The change log as readers have it: its facts and changes as text, and the names of what has changed.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::changes::{ChangeLogHeader, MAX_READ, header, read};
use super::is_unusable;
use crate::domain::id::RunId;
use crate::plain_file;
use crate::store::Error;

/// The file as a reader finds it.
#[derive(Debug)]
pub(super) struct ChangeLogContent {
    pub(super) header: ChangeLogHeader,
    /// The whole lines behind the header.
    pub(super) lines: Vec<u8>,
    /// The end of the last whole line, in bytes.
    pub(super) end: u64,
}

impl ChangeLogContent {
    /// Reads the file; `None` if there is none that can be read.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, Error> {
        match plain_file::open(path) {
            Ok(file) => {
                let content = file.metadata().and_then(|found| Self::of(&file, found.len()));
                content.map_err(Error::io("read", path))
            }
            Err(error) if error.kind() == ErrorKind::NotFound || is_unusable(&error) => Ok(None),
            Err(error) => Err(Error::io("open", path)(error)),
        }
    }

    /// Reads an open file up to this length; `None` if it is no change log.
    pub(super) fn of(file: &File, length: u64) -> std::io::Result<Option<Self>> {
        let Some((header, start)) = header(file)?.filter(|_| length <= MAX_READ) else {
            return Ok(None);
        };
        let mut lines = read(file, start, length)?;
        let end = lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        lines.truncate(end);
        Ok(Some(Self { header, lines, end: start + end as u64 }))
    }

    /// Returns whether a change may be of a step of a run that has not ended since.
    pub(super) fn names(&self, run: &RunId) -> bool {
        let snapshot = usize::try_from(self.header.snapshot).unwrap_or(usize::MAX);
        let changes = self.lines.get(snapshot..).unwrap_or_default();
        let text = String::from_utf8_lossy(changes);
        let name = format!("\"run\":\"{run}\"");
        let ended = format!("{{\"run_ended\":{{{name}}}}}");
        text.rsplit(&ended).next().is_some_and(|since| since.contains(&name))
    }

    /// Returns the start of the last line in the file, if it is a change, and the end of the file.
    pub(super) fn start_of_last_change(&self) -> u64 {
        let whole = self.lines.strip_suffix(b"\n").unwrap_or(&self.lines);
        let start = whole.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        if start as u64 >= self.header.snapshot && !whole.is_empty() {
            self.end - (self.lines.len() - start) as u64
        } else {
            self.end
        }
    }
}

/// The part of the file between two places.
#[derive(Debug)]
pub(super) struct ChangeLogRange {
    /// The labels and keys of the changes.
    pub(super) changes: Vec<(String, String)>,
    /// The start of the last whole line, in bytes.
    pub(super) last: u64,
    /// The end of the last whole line, in bytes.
    pub(super) end: u64,
}

/// The part of a change that says which fact to read again.
#[derive(Deserialize)]
struct ChangedFact(IgnoredAny, String, String, #[serde(default)] IgnoredAny);

/// Reads the changes in the whole lines between two places; `None` if one of them is no change.
pub(super) fn lines(file: &File, from: u64, to: u64) -> std::io::Result<Option<ChangeLogRange>> {
    if to.saturating_sub(from) > MAX_READ {
        return Ok(None);
    }
    let bytes = read(file, from, to)?;
    let mut lines = ChangeLogRange { changes: Vec::new(), last: from, end: from };
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else { break };
        let Ok(ChangedFact(_, label, key, _)) = serde_json::from_slice(text) else {
            return Ok(None);
        };
        lines.changes.push((label, key));
        lines.last = lines.end;
        lines.end += line.len() as u64;
    }
    Ok(Some(lines))
}
