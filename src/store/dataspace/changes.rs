//! The change log: it lists the facts to read again, so that no reader has to read all of them.
//!
//! Its first line names a generation and the number it begins at; each later line names the number, the label and the
//! key of a fact that changes. A line is written before its change, so a reader of the line reads the fact itself.
//! When the file has outgrown its limit, a new file takes its place, and its readers read all facts once.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::plain_file::{self, is_unfit};
use crate::store::{Error, files};

/// The limit of a line's length, in bytes: a label and a key have names of 200 bytes at the most.
const MAX_LINE: u64 = 8 * 1024;

/// The most bytes that are read at once: the file begins anew long before.
const MAX_READ: u64 = 4 * 1024 * 1024;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct ChangeLogHeader {
    generation: String,
    from: u64,
}

/// A change: its number, and the label and the key of the fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangeLogEntry(pub(super) u64, pub(super) String, pub(super) String);

/// The file in the hands of the holder of the lock.
#[derive(Debug)]
pub(super) struct ChangeLog {
    file: File,
    length: u64,
    /// The number of the next change.
    pub(super) next: u64,
}

impl ChangeLog {
    /// Opens the file for writing, and fixes it. The incomplete line of a writer that died is cut off; a file that
    /// is missing or cannot be read begins anew behind `highest`.
    pub(super) fn open(
        path: &Path,
        room: u64,
        highest: impl FnOnce() -> Result<u64, Error>,
    ) -> Result<Self, Error> {
        match plain_file::open_with(path, files::private().read(true).append(true)) {
            Ok(file) => {
                if let Some((length, next)) = end(&file).map_err(Error::io("read", path))? {
                    file.set_len(length).map_err(Error::io("write", path))?;
                    if length <= room {
                        return Ok(Self { file, length, next });
                    }
                    return Self::begin(path, next);
                }
            }
            // Anything but a plain file is replaced.
            Err(error) if error.kind() == ErrorKind::NotFound || is_unfit(&error) => {}
            Err(error) => return Err(Error::io("open", path)(error)),
        }
        Self::begin(path, highest()? + 1)
    }

    fn begin(path: &Path, next: u64) -> Result<Self, Error> {
        let random = || RandomState::new().build_hasher().finish();
        let generation = format!("{:016x}{:016x}", random(), random());
        let line =
            line(&ChangeLogHeader { generation, from: next }).map_err(Error::io("write", path))?;
        files::replace(path, &line)?;
        let file = plain_file::open_with(path, files::private().read(true).append(true));
        let file = file.map_err(Error::io("open", path))?;
        Ok(Self { file, length: line.len() as u64, next })
    }

    /// Notes durably that a fact is about to change; returns the number of the change.
    pub(super) fn note(&mut self, path: &Path, label: &str, key: &str) -> Result<u64, Error> {
        let change = ChangeLogEntry(self.next, label.to_owned(), key.to_owned());
        let written = line(&change).and_then(|line| {
            self.file.write_all(&line)?;
            self.length += line.len() as u64;
            self.file.sync_data()
        });
        written.map_err(Error::io("append to", path))?;
        self.next += 1;
        Ok(change.0)
    }
}

fn line(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Returns the end of the last whole line and the number that follows it; `None` if they are not known.
fn end(file: &File) -> std::io::Result<Option<(u64, u64)>> {
    let length = file.metadata()?.len();
    let start = length.saturating_sub(MAX_LINE);
    let tail = read(file, start, length)?;
    let Some(end) = tail.iter().rposition(|&byte| byte == b'\n') else { return Ok(None) };
    let before = tail[..end].iter().rposition(|&byte| byte == b'\n');
    let last = &tail[before.map_or(0, |place| place + 1)..end];
    let is_head = before.is_none() && start == 0;
    let next = if is_head {
        serde_json::from_slice(last).ok().map(|head: ChangeLogHeader| head.from)
    } else {
        serde_json::from_slice(last).ok().map(|change: ChangeLogEntry| change.0 + 1)
    };
    Ok(next.map(|next| (start + end as u64 + 1, next)))
}

fn read(file: &File, from: u64, to: u64) -> std::io::Result<Vec<u8>> {
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

/// The part of the file between two places.
#[derive(Debug)]
pub(super) struct ChangeLogRange {
    /// The changes.
    pub(super) changes: Vec<ChangeLogEntry>,
    /// The start of the last whole line, in bytes.
    pub(super) last: u64,
    /// The end of the last whole line, in bytes.
    pub(super) end: u64,
}

/// Reads the whole lines between two places; `None` if one of them is not a change. A first line at the start of
/// the file is skipped.
pub(super) fn lines(file: &File, from: u64, to: u64) -> std::io::Result<Option<ChangeLogRange>> {
    if to.saturating_sub(from) > MAX_READ {
        return Ok(None);
    }
    let bytes = read(file, from, to)?;
    let mut lines = ChangeLogRange { changes: Vec::new(), last: from, end: from };
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let Some(text) = line.strip_suffix(b"\n") else { break };
        if lines.end > 0 {
            let Ok(change) = serde_json::from_slice(text) else { return Ok(None) };
            lines.changes.push(change);
            lines.last = lines.end;
        }
        lines.end += line.len() as u64;
        if lines.changes.is_empty() {
            lines.last = lines.end;
        }
    }
    Ok(Some(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_CHANGE_LOG_BYTES: u64 = 200;

    fn open(path: &Path) -> ChangeLog {
        ChangeLog::open(path, MAX_CHANGE_LOG_BYTES, || Ok(7)).expect("opened")
    }

    fn all(path: &Path) -> Option<Vec<ChangeLogEntry>> {
        let file = File::open(path).expect("opened");
        let length = file.metadata().expect("there").len();
        lines(&file, 0, length).expect("read").map(|lines| lines.changes)
    }

    fn change(seq: u64) -> ChangeLogEntry {
        ChangeLogEntry(seq, "l".into(), "k\n".into())
    }

    #[test]
    fn numbering_continues_after_last_complete_line() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("changes");
        assert_eq!(open(&path).note(&path, "l", "k\n").expect("noted"), 8);
        let text = std::fs::read(&path).expect("read");
        for torn in ["", "[9,\"l\"", "[9,\"l\",\"k\"]"] {
            std::fs::write(&path, [&text[..], torn.as_bytes()].concat()).expect("torn");
            assert_eq!(all(&path).expect("whole lines"), [change(8)], "{torn}");
            assert_eq!(open(&path).next, 9, "{torn}");
            assert_eq!(std::fs::read(&path).expect("read"), text, "{torn}");
        }
        for damaged in [&b"\0\0\0\n"[..], b"", b"{}\n", b"[8,\"l\",\"k\"]\n"] {
            std::fs::write(&path, damaged).expect("damaged");
            assert_eq!(open(&path).next, 8, "it begins anew");
        }
    }

    #[test]
    fn changes_file_that_outgrows_its_limit_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("changes");
        let mut generations = std::collections::BTreeSet::new();
        for seq in 8..80 {
            assert_eq!(open(&path).note(&path, "l", "k\n").expect("noted"), seq);
            let text = std::fs::read_to_string(&path).expect("read");
            assert!(text.len() < 300, "{text}");
            generations.insert(text.lines().next().unwrap_or_default().to_owned());
            assert_eq!(all(&path).expect("whole lines").last(), Some(&change(seq)));
        }
        assert!(generations.len() > 5);
    }

    #[test]
    fn invalid_line_makes_changes_unreadable() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("changes");
        std::fs::write(&path, "{}\nxx\n").expect("written");
        assert_eq!(all(&path), None);
    }
}
