//! The snapshot: the run's state at one record, so that recovery need not apply all before it.
//!
//! It is written when the journal has grown by more than the snapshot is long, so that its cost a
//! record stays the same however long a run is. A snapshot that cannot be read costs nothing but
//! time, because the journal holds everything; one that a newer program wrote is refused.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use super::Error;
use crate::domain::run::{Run, STATE_VERSION};
use crate::plain_file::{self, is_unfit};

/// The longest snapshot, in bytes: far more than a run with as many agents as it may have takes.
const MAX_LENGTH: u64 = 1024 * 1024 * 1024;

/// The journal grows by at least this before a snapshot is written.
const LEAST_GROWTH: u64 = 256 * 1024;

/// What was found where a snapshot should be.
#[derive(Debug)]
pub enum Found {
    /// A snapshot.
    Run(Box<Run>),
    /// None.
    Nothing,
    /// Something that is not a snapshot.
    Unreadable(String),
}

/// Reads a snapshot.
///
/// # Errors
/// [`Error::Newer`] and [`Error::Io`].
pub fn load(path: &Path) -> Result<Found, Error> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let bytes = match plain_file::read(path, MAX_LENGTH) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) if is_unfit(&error) => return Ok(Found::Unreadable(error.to_string())),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    if let Ok(Version { version }) = serde_json::from_slice(&bytes)
        && version > STATE_VERSION
    {
        return Err(Error::Newer { path: path.to_owned(), found: version });
    }
    Ok(match serde_json::from_slice(&bytes) {
        Ok(run) => Found::Run(Box::new(run)),
        Err(error) => Found::Unreadable(error.to_string()),
    })
}

/// When the next snapshot is due.
#[derive(Debug, Clone, Copy)]
pub struct Growth {
    since: u64,
    allowed: u64,
    snapshot: usize,
}

impl Growth {
    /// After a snapshot of `size` bytes.
    #[must_use]
    pub fn after_snapshot(size: usize) -> Self {
        Self { since: 0, allowed: (2 * size as u64).max(LEAST_GROWTH), snapshot: size }
    }

    /// The size of the last snapshot.
    #[must_use]
    pub fn snapshot(self) -> usize {
        self.snapshot
    }

    /// Counts bytes that were appended; tells whether a snapshot is due.
    #[must_use]
    pub fn grow(&mut self, bytes: usize) -> bool {
        self.since += bytes as u64;
        self.since > self.allowed
    }
}
