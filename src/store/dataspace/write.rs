//! Changes to the facts: one writer at a time, each change whole, durable and noted.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::changes::ChangeLog;
use super::step::{DataspaceStep, FactOperation, IdempotencyKey};
use super::{Dataspace, FACT, FactLookup, name, proof};
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
struct DataspaceWriter<'space> {
    space: &'space Dataspace,
    _lock: File,
    changes: ChangeLog,
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
        let out = self.outgoing_of(step);
        let is_marked = match step {
            Some(step) => self.marked(step, FactOperation::Assert, what.label, what.key)?.is_some(),
            None => false,
        };
        let now = self.read(&path)?.whole();
        let holds = now.as_ref().is_some_and(|fact| fact.value == what.value);
        if holds || (is_marked && !out.exists()) {
            return Ok(AssertionOutcome { fact: now, is_new: false });
        }
        let fact = Fact {
            label: what.label.to_owned(),
            key: what.key.to_owned(),
            value: what.value.to_owned(),
            seq: writing.changes.next,
            source: what.source.to_owned(),
            at: what.at,
        };
        let text = proof::close(&fact, self.key.as_ref(), FACT)
            .map_err(std::io::Error::other)
            .map_err(Error::io("write", &out))?;
        files::make_dir(&self.path.join("outgoing"))?;
        files::replace(&out, &text)?;
        point("dataspace.written");
        if let Some(step) = step.filter(|_| !is_marked) {
            self.set_mark(step, &mark(step, FactOperation::Assert, &fact))?;
            point("dataspace.marked");
        }
        if let Some(folder) = path.parent() {
            files::make_dir(folder)?;
        }
        writing.note(what.label, what.key)?;
        writing.rename(&out, &path)?;
        Ok(AssertionOutcome { fact: Some(fact), is_new: true })
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
        let fact = match self.read(&path)? {
            FactLookup::Fact(fact) => Some(fact),
            FactLookup::Damaged(_) => Some(Fact {
                label: label.to_owned(),
                key: key.to_owned(),
                value: String::new(),
                seq: 0,
                source: String::new(),
                at: Timestamp(0),
            }),
            FactLookup::Nothing => None,
        };
        if let Some(step) = step {
            match (self.marked(step, FactOperation::Retract, label, key)?, &fact) {
                (Some(mark), Some(fact)) if mark.seq == fact.seq => {}
                (Some(_), _) => return Ok(true),
                (None, Some(fact)) => {
                    self.set_mark(step, &mark(step, FactOperation::Retract, fact))?;
                    point("dataspace.marked");
                }
                (None, None) => {}
            }
        }
        if fact.is_none() {
            return Ok(false);
        }
        writing.note(label, key)?;
        std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        point("dataspace.moved");
        sync_dir_of(&path)?;
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
        let Some(fact) = self.read(&path)?.whole().filter(|fact| fact.seq == seq) else {
            return Ok(None);
        };
        files::make_dir(&self.path.join("claims"))?;
        writing.note(label, key)?;
        writing.rename(&path, &self.claim_of(step))?;
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

    /// Waits until there is no other writer.
    fn write(&self) -> Result<DataspaceWriter<'_>, Error> {
        files::make_dir(&self.path)?;
        let path = self.lock();
        let lock = plain_file::open_with(&path, files::private().create(true).append(true));
        let lock = lock.map_err(Error::io("open", &path))?;
        self.wait_for(&lock).map_err(Error::io("lock", &path))?;
        let highest = || {
            let listing = self.facts()?;
            Ok(listing.facts.iter().map(|fact| fact.seq).max().unwrap_or(0))
        };
        let changes = ChangeLog::open(&self.changes(), self.room, highest)?;
        Ok(DataspaceWriter { space: self, _lock: lock, changes })
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
    fn note(&mut self, label: &str, key: &str) -> Result<(), Error> {
        self.changes.note(&self.space.changes(), label, key)?;
        point("dataspace.noted");
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "only who writes may move a fact")]
    fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        std::fs::rename(from, to).map_err(Error::io("replace", to))?;
        point("dataspace.moved");
        sync_dir_of(to)?;
        sync_dir_of(from)
    }
}

fn mark(step: &DataspaceStep, operation: FactOperation, fact: &Fact) -> IdempotencyKey {
    IdempotencyKey {
        step: step.step,
        operation,
        label: fact.label.clone(),
        key: fact.key.clone(),
        seq: fact.seq,
    }
}

fn sync_dir_of(path: &Path) -> Result<(), Error> {
    path.parent().map_or(Ok(()), files::sync_dir)
}
