//! Changes to the facts: one writer at a time, each change logged as a whole, durable with one flush, and then made.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::changes::ChangeLog;
use super::entry::{ChangeLogEntry, LoggedChange, ProvenFact};
use super::step::{DataspaceStep, FactOperation, IdempotencyKey};
use super::{Dataspace, FACT, FactLookup, name};
use crate::domain::fact::Fact;
use crate::domain::time::Timestamp;
use crate::fault::point;
use crate::plain_file;
use crate::store::{Error, files};

/// The poll interval of the lock for a caller that may be told to end.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The outcome of an assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssertionOutcome {
    /// The fact as it holds now; `None` if this step asserted it before, and it has been retracted or taken since.
    pub fact: Option<Fact>,
    /// True if this call has changed something: a fact that already holds with that value stays as it is.
    pub is_new: bool,
    /// The fact with another value that this one replaces; nobody had taken it.
    pub replaced: Option<Fact>,
    /// The number of values that waited behind the replaced one, and are gone with it.
    pub dropped: usize,
}

/// The content of an assertion.
#[derive(Debug, Clone, Copy)]
pub struct FactStatement<'text> {
    /// The label of the fact.
    pub label: &'text str,
    /// The key of the fact.
    pub key: &'text str,
    /// Its payload.
    pub value: &'text str,
    /// The author of the assertion.
    pub source: &'text str,
    /// The time of the assertion.
    pub at: Timestamp,
}

/// The dataspace in the hands of its one writer.
pub(super) struct DataspaceWriter<'space> {
    space: &'space Dataspace,
    lock: File,
    pub(super) log: ChangeLog,
}

impl Dataspace {
    /// Asserts a fact; it is durable when this returns. If the same step does it again, nothing changes, whatever
    /// has become of the fact.
    ///
    /// # Errors
    /// [`Error::Unfit`] for values that cannot be a fact, [`Error::Io`].
    pub fn assert(
        &self,
        what: FactStatement,
        step: Option<&DataspaceStep>,
    ) -> Result<AssertionOutcome, Error> {
        let path = self.fact(what.label, what.key)?;
        name::check_value(what.label, what.key, what.value)?;
        let mut writing = self.write()?;
        let is_made = match step {
            Some(step) => {
                self.marked(step, FactOperation::Assert, what.label, what.key)?.is_some()
                    && !self.outgoing_of(step).exists()
            }
            None => false,
        };
        let held = self.proven(&path)?.ok().map(|held| held.value);
        let dropped = held.as_ref().map_or(0, |held| held.later.len());
        let now: Option<Fact> = held.map(Into::into);
        if is_made || now.as_ref().is_some_and(|fact| fact.value == what.value) {
            return Ok(AssertionOutcome { fact: now, is_new: false, replaced: None, dropped: 0 });
        }
        let fact = Fact {
            label: what.label.to_owned(),
            key: what.key.to_owned(),
            value: what.value.to_owned(),
            seq: writing.log.next,
            source: what.source.to_owned(),
            at: what.at,
        };
        let proven = ProvenFact::new(fact.clone().into(), self.key.as_ref(), FACT)
            .map_err(std::io::Error::other)
            .map_err(Error::io("write", &path))?;
        let change = LoggedChange::Asserted { fact: proven, step: step.cloned() };
        writing.change(what.label, what.key, change)?;
        Ok(AssertionOutcome { fact: Some(fact), is_new: true, replaced: now, dropped })
    }

    /// Retracts a fact; returns whether it held. If the same step does it again, it gets the same answer and
    /// removes no fact that was asserted since.
    ///
    /// # Errors
    /// [`Error::Unfit`] for values that cannot be a fact, [`Error::Io`].
    pub fn retract(
        &self,
        label: &str,
        key: &str,
        step: Option<&DataspaceStep>,
    ) -> Result<bool, Error> {
        let path = self.fact(label, key)?;
        if !self.path.is_dir() {
            return Ok(false);
        }
        let mut writing = self.write()?;
        let held = match self.read(&path)? {
            FactLookup::Fact(fact) => Some(fact.seq),
            FactLookup::Damaged(_) => Some(0),
            FactLookup::Nothing => None,
        };
        if let Some(step) = step
            && let Some(mark) = self.marked(step, FactOperation::Retract, label, key)?
            // An earlier raymond may have marked a step without having removed the fact.
            && held != Some(mark.seq)
        {
            return Ok(true);
        }
        let Some(seq) = held else { return Ok(false) };
        writing.change(label, key, LoggedChange::Retracted { seq, step: step.cloned() })?;
        Ok(true)
    }

    /// Takes the fact with a number, if it still holds. Only one caller gets it. If the same step tries again, it gets
    /// the fact that it has taken, whatever its label and key; see [`claimed`](Self::claimed).
    ///
    /// # Errors
    /// [`Error::Unfit`] for values that cannot be a fact, [`Error::Io`].
    pub fn claim(
        &self,
        label: &str,
        key: &str,
        seq: u64,
        step: &DataspaceStep,
    ) -> Result<Option<Fact>, Error> {
        let path = self.fact(label, key)?;
        if let Some(fact) = self.claimed(step)? {
            return Ok(Some(fact));
        }
        if !self.path.is_dir() {
            return Ok(None);
        }
        let mut writing = self.write()?;
        // A writer that was killed may have left it to be made by this one.
        if let Some(fact) = self.claimed(step)? {
            return Ok(Some(fact));
        }
        let proven = match self.proven(&path)? {
            Ok(fact) if fact.value.seq == seq => fact,
            Ok(_) | Err(FactLookup::Nothing | FactLookup::Fact(_)) => return Ok(None),
            Err(FactLookup::Damaged(_)) => {
                // Readers may believe the log that it holds.
                let seq = writing.log.touch(&self.changes(), label, key)?;
                self.note_made(&writing.lock, &writing.log, seq)?;
                return Ok(None);
            }
        };
        let fact = proven.value.fact();
        let next = proven.value.without_first();
        let next = next.map(|next| ProvenFact::new(next, self.key.as_ref(), FACT)).transpose();
        let next = next.map_err(std::io::Error::other).map_err(Error::io("write", &path))?;
        let change = LoggedChange::Claimed { fact: proven, step: step.clone(), next };
        writing.change(label, key, change)?;
        Ok(Some(fact))
    }

    /// Returns the fact that a step has taken.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn claimed(&self, step: &DataspaceStep) -> Result<Option<Fact>, Error> {
        Ok(self.read(&self.claim_of(step))?.whole())
    }

    fn marked(
        &self,
        step: &DataspaceStep,
        operation: FactOperation,
        label: &str,
        key: &str,
    ) -> Result<Option<IdempotencyKey>, Error> {
        Ok(self.mark(step)?.filter(|mark| mark.is_of(step, operation, label, key)))
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
}

impl Dataspace {
    /// Waits until the lock is free, or until the caller is told to end.
    fn wait_for(&self, lock: &File) -> std::io::Result<()> {
        let Some(ends) = &self.ends else { return lock.lock() };
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if ends.load(Ordering::Relaxed) => {
                    return Err(ErrorKind::Interrupted.into());
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

impl DataspaceWriter<'_> {
    /// Logs a change, and makes it. The one flush is that of the log.
    pub(super) fn change(
        &mut self,
        label: &str,
        key: &str,
        change: LoggedChange,
    ) -> Result<(), Error> {
        let (label, key) = (label.to_owned(), key.to_owned());
        let entry = ChangeLogEntry(self.log.next, label, key, Some(change));
        self.log.append(&self.space.changes(), &entry)?;
        self.space.apply(&entry)?;
        self.space.note_made(&self.lock, &self.log, entry.0)?;
        point("dataspace.applied");
        Ok(())
    }
}
