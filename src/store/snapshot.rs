//! The snapshot: the run's state at one record, so that recovery need not apply the records before it.
//!
//! It is written when the journal has grown by more than the snapshot is long, so that its cost a record stays the
//! same however long a run is. A snapshot that is unreadable or of an earlier version costs nothing but time, because
//! the journal holds everything; a snapshot of a newer program is refused.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use super::Error;
use crate::domain::run::{Run, SNAPSHOT_VERSION};
use crate::plain_file::{self, is_unfit};

/// The size limit of a snapshot, in bytes: far more than a run with the maximum number of agents takes.
const MAX_LENGTH: u64 = 1024 * 1024 * 1024;

/// The least growth of the journal before a snapshot is written, in bytes.
const LEAST_GROWTH: u64 = 256 * 1024;

/// The content of the place of a snapshot.
#[derive(Debug)]
pub enum SnapshotLookup {
    /// A snapshot.
    Run(Box<Run>),
    /// There is no file.
    Nothing,
    /// A snapshot of an earlier version, with another shape.
    Outdated,
    /// A file that is not a snapshot, and the reason.
    Unreadable(String),
}

/// Reads a snapshot.
///
/// # Errors
/// [`Error::Newer`] and [`Error::Io`].
pub fn load(path: &Path) -> Result<SnapshotLookup, Error> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let bytes = match plain_file::read(path, MAX_LENGTH) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(SnapshotLookup::Nothing),
        Err(error) if is_unfit(&error) => return Ok(SnapshotLookup::Unreadable(error.to_string())),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    let flaw = flaw(&bytes);
    if flaw == Some(MISFIT) {
        return Ok(SnapshotLookup::Unreadable(MISFIT.to_owned()));
    }
    match serde_json::from_slice(&bytes).map(|Version { version }| version) {
        Ok(found) if found > SNAPSHOT_VERSION => {
            return Err(Error::Newer { path: path.to_owned(), found, known: SNAPSHOT_VERSION });
        }
        Ok(found) if found < SNAPSHOT_VERSION => return Ok(SnapshotLookup::Outdated),
        Ok(_) | Err(_) => {}
    }
    Ok(match (serde_json::from_slice(&bytes), flaw) {
        (Ok(_), Some(why)) => SnapshotLookup::Unreadable(why.to_owned()),
        (Ok(run), None) => SnapshotLookup::Run(Box::new(run)),
        (Err(error), _) => SnapshotLookup::Unreadable(error.to_string()),
    })
}

/// The text before the checksum of a snapshot, which is its last entry.
const CHECKSUM: &[u8] = b",\n  \"checksum\": \"";

/// The text after the checksum.
const END: &[u8] = b"\"\n}";

/// The error of a snapshot whose bytes have changed.
const MISFIT: &str = "its checksum is wrong";

/// The error of a snapshot that was changed.
const MISSING: &str = "it has no checksum";

/// Adds the checksum to a snapshot: it covers all bytes before it.
#[must_use]
pub(super) fn with_checksum(mut json: Vec<u8>) -> Vec<u8> {
    if json.ends_with(b"\n}") {
        json.truncate(json.len() - 2);
        let crc = format!("{:08x}", crc32fast::hash(&json));
        json.extend([CHECKSUM, crc.as_bytes(), END].concat());
    }
    json
}

/// Returns the error in the checksum of a snapshot; `None` if there is none. A snapshot of this version without a
/// checksum was changed, so the journal is read instead.
fn flaw(bytes: &[u8]) -> Option<&'static str> {
    let Some(body) = bytes.strip_suffix(END) else { return Some(MISSING) };
    let Some((body, crc)) = body.len().checked_sub(8).map(|at| body.split_at(at)) else {
        return Some(MISSING);
    };
    let Some(body) = body.strip_suffix(CHECKSUM) else { return Some(MISSING) };
    let fits = format!("{:08x}", crc32fast::hash(body)).as_bytes() == crc;
    (!fits).then_some(MISFIT)
}

/// The schedule of the next snapshot.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotSchedule {
    since: u64,
    allowed: u64,
    snapshot: usize,
}

impl SnapshotSchedule {
    /// Returns the schedule after a snapshot of `size` bytes.
    #[must_use]
    pub fn after_snapshot(size: usize) -> Self {
        Self { since: 0, allowed: (2 * size as u64).max(LEAST_GROWTH), snapshot: size }
    }

    /// Returns the size of the last snapshot, in bytes.
    #[must_use]
    pub fn snapshot(self) -> usize {
        self.snapshot
    }

    /// Counts appended bytes; returns whether a snapshot is due.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.since += bytes as u64;
        self.since > self.allowed
    }
}
