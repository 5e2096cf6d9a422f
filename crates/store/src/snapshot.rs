//! The snapshot: the run's state at one record, so that recovery need not apply the records before it.
//!
//! It is written when the journal has grown by more than twice the snapshot's length, so that its cost a record stays the
//! same however long a run is. A snapshot that is unreadable or of an earlier version costs nothing but time, because
//! the journal holds everything; a snapshot of a newer program is refused.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use super::Error;
use crate::files;
use crate::plain_file::is_unfit;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::run::{Run, SNAPSHOT_VERSION};

/// The size limit of a snapshot, in bytes: far more than a run with the maximum number of agents takes.
const MAX_LENGTH: u64 = 1024 * 1024 * 1024;

/// The least growth of the journal before a snapshot is written, in bytes.
const LEAST_GROWTH: u64 = 256 * 1024;

/// The content of the place of a snapshot.
#[derive(Debug)]
pub(super) enum SnapshotLookup {
    /// A snapshot.
    Run(Box<Run>),
    /// The file does not exist.
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
pub(super) fn load(path: &Path) -> Result<SnapshotLookup, Error> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let bytes = match files::read(path, MAX_LENGTH) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(SnapshotLookup::Nothing),
        Err(Error::Io { error, .. }) if is_unfit(&error) => {
            return Ok(SnapshotLookup::Unreadable(error.to_string()));
        }
        Err(error) => return Err(error),
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
        (Err(error), _) => SnapshotLookup::Unreadable(placed_mistake(&error)),
    })
}

/// The number of bytes that are written at a time.
const BUFFER_BYTES: usize = 64 * 1024;

/// The end of a snapshot without its checksum.
const JSON_END: &[u8] = b"\n}";

/// The text before the checksum of a snapshot, which is its last entry.
const CHECKSUM: &[u8] = b",\n  \"checksum\": \"";

/// The text after the checksum.
const END: &[u8] = b"\"\n}";

/// The error of a snapshot whose bytes have changed.
const MISFIT: &str = "its checksum is wrong";

/// The error of a snapshot that was changed.
const MISSING: &str = "it has no checksum";

/// Writes a snapshot of a run, and returns its size in bytes. Its checksum covers all bytes before it.
///
/// # Errors
/// The system's error.
pub(super) fn write(run: &impl Serialize, file: impl Write) -> std::io::Result<u64> {
    let checked = ChecksumWriter { file, crc: Hasher::new(), end: Vec::new(), length: 0 };
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, checked);
    serde_json::to_writer_pretty(&mut writer, run)?;
    writer.into_inner()?.finish()
}

/// Writes JSON, and puts its checksum before its end.
struct ChecksumWriter<W> {
    file: W,
    crc: Hasher,
    /// The last bytes, which are held back: the end, once all is written.
    end: Vec<u8>,
    length: u64,
}

impl<W: Write> ChecksumWriter<W> {
    fn pass(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.length += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn finish(mut self) -> std::io::Result<u64> {
        if self.end != JSON_END {
            return Err(std::io::Error::other("a snapshot is an object in JSON"));
        }
        let crc = format!("{:08x}", self.crc.clone().finalize());
        self.pass(&[CHECKSUM, crc.as_bytes(), END].concat())?;
        Ok(self.length)
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut bytes_and_end = std::mem::take(&mut self.end);
        bytes_and_end.extend_from_slice(bytes);
        let end = bytes_and_end.len().saturating_sub(JSON_END.len());
        self.end = bytes_and_end.split_off(end);
        self.crc.update(&bytes_and_end);
        self.pass(&bytes_and_end)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
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

/// The size of a snapshot that is being written.
const BEING_WRITTEN: u64 = u64::MAX;

/// The schedule of the next snapshot.
#[derive(Debug)]
pub(super) struct SnapshotSchedule {
    since: u64,
    /// The size of the last snapshot, which the thread that writes it sets.
    size: Arc<AtomicU64>,
}

impl SnapshotSchedule {
    /// Returns the schedule after a snapshot of `size` bytes.
    pub(super) fn after_snapshot(size: u64) -> Self {
        Self { since: 0, size: Arc::new(AtomicU64::new(size)) }
    }

    /// Notes that a snapshot is being written; returns the place for its size. Until that is set, none is due.
    pub(super) fn begin(&mut self) -> Arc<AtomicU64> {
        self.since = 0;
        self.size.store(BEING_WRITTEN, Ordering::Relaxed);
        Arc::clone(&self.size)
    }

    /// Counts appended bytes; returns whether a snapshot is due.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        self.since += bytes as u64;
        let size = self.size.load(Ordering::Relaxed);
        size != BEING_WRITTEN && self.since > (2 * size).max(LEAST_GROWTH)
    }
}
