//! The one writer of a dataspace: it waits for the lock, and what it decides is logged and made.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Dataspace;
use super::changes::ChangeLog;
use super::entry::{ChangeLogEntry, LoggedChange};
use crate::fault::point;
use crate::plain_file;
use crate::{Error, files};

/// The poll interval of the lock for a caller that may be told to end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The dataspace in the hands of its one writer.
pub(super) struct DataspaceWriter<'space> {
    pub(super) space: &'space Dataspace,
    pub(super) lock: File,
    pub(super) log: ChangeLog,
}

/// A change that is to be made, and what its caller is told then.
pub(super) struct DecidedChange<T> {
    pub(super) label: String,
    pub(super) key: String,
    pub(super) change: LoggedChange,
    pub(super) outcome: T,
}

/// The decision of a writer who has seen all changes before.
pub(super) enum FactDecision<T> {
    /// Nothing is changed.
    Unchanged(T),
    /// A change is made.
    Change(Box<DecidedChange<T>>),
}

impl<T> FactDecision<T> {
    pub(super) fn change(label: &str, key: &str, change: LoggedChange, outcome: T) -> Self {
        let (label, key) = (label.to_owned(), key.to_owned());
        Self::Change(Box::new(DecidedChange { label, key, change, outcome }))
    }
}

impl Dataspace {
    /// Decides under the lock, and makes what was decided; it is durable when this returns. Where machines share the facts,
    /// a change of another one that came between has it decide again.
    pub(super) fn carry_out<T>(
        &self,
        decide: impl Fn(&mut DataspaceWriter) -> Result<FactDecision<T>, Error>,
    ) -> Result<T, Error> {
        if let Some(shared) = &self.shared {
            return self.carry_out_shared(&**shared, decide);
        }
        self.refuse_copy()?;
        let mut writer = self.write()?;
        match decide(&mut writer)? {
            FactDecision::Unchanged(outcome) => Ok(outcome),
            FactDecision::Change(decided) => {
                let DecidedChange { label, key, change, outcome } = *decided;
                writer.change(label, key, change)?;
                Ok(outcome)
            }
        }
    }

    /// Waits until there is no other writer, and makes what the last one has left undone.
    pub(super) fn write(&self) -> Result<DataspaceWriter<'_>, Error> {
        let lock = self.open_lock()?;
        self.wait_for(&lock).map_err(Error::io("lock", &self.lock()))?;
        self.locked(lock)
    }

    /// Waits for a while until there is no other writer, as [`write`](Self::write) does; `None` if there still is one.
    pub(super) fn write_within(
        &self,
        longest: Duration,
    ) -> Result<Option<DataspaceWriter<'_>>, Error> {
        let lock = self.open_lock()?;
        let start = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return self.locked(lock).map(Some),
                Err(TryLockError::Error(error)) => {
                    return Err(Error::io("lock", &self.lock())(error));
                }
                Err(TryLockError::WouldBlock) if start.elapsed() > longest => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn open_lock(&self) -> Result<File, Error> {
        files::make_dir(&self.path)?;
        let path = self.lock();
        let mut options = files::private();
        options.read(true).write(true).create(true).truncate(false);
        plain_file::open_with(&path, &mut options).map_err(Error::io("open", &path))
    }

    fn locked(&self, lock: File) -> Result<DataspaceWriter<'_>, Error> {
        let log = self.recovered(&lock)?;
        Ok(DataspaceWriter { space: self, lock, log })
    }

    /// Waits until the lock is free, or until the caller is told to end.
    fn wait_for(&self, lock: &File) -> std::io::Result<()> {
        if self.ends.is_none() {
            return lock.lock();
        }
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) => self.pause(POLL_INTERVAL)?,
            }
        }
    }

    /// Waits for a moment.
    ///
    /// # Errors
    /// An error of the kind `Interrupted` if the caller is told to end.
    pub(super) fn pause(&self, time: Duration) -> std::io::Result<()> {
        let start = Instant::now();
        loop {
            if self.ends.as_ref().is_some_and(|ends| ends.load(Ordering::Relaxed)) {
                return Err(ErrorKind::Interrupted.into());
            }
            if start.elapsed() >= time {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl DataspaceWriter<'_> {
    /// Logs a change, and makes it. The one flush is that of the log.
    pub(super) fn change(
        &mut self,
        label: String,
        key: String,
        change: LoggedChange,
    ) -> Result<(), Error> {
        self.make(&ChangeLogEntry(self.log.next, label, key, Some(change)))
    }

    /// Logs the next change, and makes it.
    pub(super) fn make(&mut self, entry: &ChangeLogEntry) -> Result<(), Error> {
        self.log.append(&self.space.changes(), entry)?;
        self.space.apply(entry)?;
        self.space.note_made(&self.lock, &self.log, entry.0)?;
        point("dataspace.applied");
        Ok(())
    }
}
