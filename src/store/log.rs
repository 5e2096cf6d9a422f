//! The log of a run: ordered lines of one writer, durable when an append returns.
//!
//! A run on one machine has its journal file alone. A run that several machines share has its log in an engine, and the
//! journal file is a copy for this machine's readers: the engine comes first, and its answer is the acknowledgement. So the
//! copy never holds a record that the engine does not have.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::Error;
use super::acknowledged::AcknowledgedEnd;
use crate::fault::point;

/// Lines that are appended together.
#[derive(Debug, Default)]
pub struct LineBatch {
    /// The number of the last record.
    pub last: u64,
    /// The lines for the file, each with its end.
    pub text: String,
    /// The lines for an engine, if there is one: they bear no proof, because each machine has a key of its own.
    pub shared: Vec<SharedLine>,
}

/// A line for an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLine {
    /// The number of the record.
    pub seq: u64,
    /// The record, without a line break.
    pub text: String,
}

impl LineBatch {
    /// Adds the lines of a later moment.
    pub fn add(&mut self, later: Self) {
        self.last = later.last;
        self.text.push_str(&later.text);
        self.shared.extend(later.shared);
    }
}

/// The log of a run, as its one writer has it.
pub trait RunLog: Send + 'static {
    /// Appends lines, all or none. They are durable when it returns.
    ///
    /// # Errors
    /// [`Error`] if they may not be durable. Nothing can be appended from then on.
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error>;

    /// Returns the longest time between two calls of [`renew`](Self::renew); `None` if none is needed.
    fn renewal_interval(&self) -> Option<Duration> {
        None
    }

    /// Renews the right to append, while there is nothing to append.
    ///
    /// # Errors
    /// [`Error::TakenOver`] if another raymond has it.
    fn renew(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns how long a further line is waited for before an append; zero if an append costs little.
    fn gathering_time(&self) -> Duration {
        Duration::ZERO
    }
}

/// The storage of lines: a file, or a test's stand-in for it.
pub trait JournalStorage: Send + 'static {
    /// Appends all bytes.
    ///
    /// # Errors
    /// The error of the system.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all that was appended durable.
    ///
    /// # Errors
    /// The error of the system.
    fn sync(&mut self) -> io::Result<()>;
}

impl JournalStorage for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// The journal file of a run.
#[derive(Debug)]
pub struct LogFile<M> {
    /// The open journal, at its end.
    pub medium: M,
    /// Its path, for errors.
    pub journal: PathBuf,
    /// The note of its durable length.
    pub acknowledged: AcknowledgedEnd,
}

impl<M: JournalStorage> RunLog for LogFile<M> {
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error> {
        point("append.before");
        let lines = batch.text.as_bytes();
        self.medium.append(lines).map_err(Error::io("append to", &self.journal))?;
        point("append.after");
        self.medium.sync().map_err(Error::io("sync", &self.journal))?;
        self.acknowledged.add(lines.len());
        point("sync.after");
        Ok(())
    }
}

/// A log in an engine, with the journal file as its copy.
pub struct CopiedLog<M> {
    /// The log in the engine.
    pub engine: Box<dyn RunLog>,
    /// The copy.
    pub copy: LogFile<M>,
}

impl<M: JournalStorage> RunLog for CopiedLog<M> {
    fn append(&mut self, batch: &LineBatch) -> Result<(), Error> {
        self.engine.append(batch)?;
        self.copy.append(batch)
    }

    fn renewal_interval(&self) -> Option<Duration> {
        self.engine.renewal_interval()
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.engine.renew()
    }

    fn gathering_time(&self) -> Duration {
        self.engine.gathering_time()
    }
}
