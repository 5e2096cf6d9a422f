//! Changes to the facts: one writer at a time, each change logged as a whole, durable with one flush, and then made.
//!
//! The change log as readers have it: its facts and changes as text, and the names of what has changed.
//!
//! The end of a run, which leaves nothing beside the facts.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Error;
use crate::dataspace::changes::{ChangeLogHeader, MAX_READ, header, read};
use crate::dataspace::entry::{LoggedChange, ProvenFact};
use crate::dataspace::step::{DataspaceStep, FactOperation, IdempotencyKey, STEP_FOLDERS};
use crate::dataspace::writer::{DataspaceWriter, FactDecision};
use crate::dataspace::{Dataspace, FACT, FactLookup, fact_file, is_unusable};
use crate::plain_file;
use raymond_model::fact::Fact;
use raymond_model::id::RunId;
use raymond_model::time::Timestamp;

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
        self.fact(what.label, what.key)?;
        fact_file::check_value(what.label, what.key, what.value)?;
        self.carry_out(|writer| self.decide_assertion(what, step, writer))
    }

    fn decide_assertion(
        &self,
        what: FactStatement,
        step: Option<&DataspaceStep>,
        writer: &DataspaceWriter,
    ) -> Result<FactDecision<AssertionOutcome>, Error> {
        let path = self.fact(what.label, what.key)?;
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
            let outcome = AssertionOutcome { fact: now, is_new: false, replaced: None, dropped: 0 };
            return Ok(FactDecision::Unchanged(outcome));
        }
        let fact = Fact {
            label: what.label.to_owned(),
            key: what.key.to_owned(),
            value: what.value.to_owned(),
            seq: writer.log.next,
            source: what.source.to_owned(),
            at: what.at,
        };
        let proven = ProvenFact::new(fact.clone().into(), self.key.as_ref(), FACT)
            .map_err(std::io::Error::other)
            .map_err(Error::io("write", &path))?;
        let change = LoggedChange::Asserted { fact: proven, step: step.cloned() };
        let outcome = AssertionOutcome { fact: Some(fact), is_new: true, replaced: now, dropped };
        Ok(FactDecision::change(what.label, what.key, change, outcome))
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
        self.fact(label, key)?;
        if self.shared.is_none() && !self.path.is_dir() {
            return Ok(false);
        }
        self.carry_out(|_| self.decide_retraction((label, key), step))
    }

    fn decide_retraction(
        &self,
        (label, key): (&str, &str),
        step: Option<&DataspaceStep>,
    ) -> Result<FactDecision<bool>, Error> {
        let path = self.fact(label, key)?;
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
            return Ok(FactDecision::Unchanged(true));
        }
        let Some(seq) = held else { return Ok(FactDecision::Unchanged(false)) };
        let change = LoggedChange::Retracted { seq, step: step.cloned() };
        Ok(FactDecision::change(label, key, change, true))
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
        self.fact(label, key)?;
        if let Some(fact) = self.claimed(step)? {
            return Ok(Some(fact));
        }
        if self.shared.is_none() && !self.path.is_dir() {
            return Ok(None);
        }
        self.carry_out(|writer| self.decide_claim((label, key), seq, step, writer))
    }

    fn decide_claim(
        &self,
        (label, key): (&str, &str),
        seq: u64,
        step: &DataspaceStep,
        writer: &mut DataspaceWriter,
    ) -> Result<FactDecision<Option<Fact>>, Error> {
        let path = self.fact(label, key)?;
        // A writer that was killed, or one on another machine, may have left it to be made by this one.
        if let Some(fact) = self.claimed(step)? {
            return Ok(FactDecision::Unchanged(Some(fact)));
        }
        let proven = match self.proven(&path)? {
            Ok(fact) if fact.value.seq == seq => fact,
            Ok(_) | Err(FactLookup::Nothing | FactLookup::Fact(_)) => {
                return Ok(FactDecision::Unchanged(None));
            }
            Err(FactLookup::Damaged(_)) => {
                // Readers may believe the log that it holds.
                let seq = writer.log.touch(&self.changes(), label, key)?;
                self.note_made(&writer.lock, &writer.log, seq)?;
                return Ok(FactDecision::Unchanged(None));
            }
        };
        let fact = proven.value.fact();
        let next = proven.value.without_first();
        let next = next.map(|next| ProvenFact::new(next, self.key.as_ref(), FACT)).transpose();
        let next = next.map_err(std::io::Error::other).map_err(Error::io("write", &path))?;
        let change = LoggedChange::Claimed { fact: proven, step: step.clone(), next };
        Ok(FactDecision::change(label, key, change, Some(fact)))
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
}

/// The longest time that the end of a run waits for another writer.
const ENDED_TIMEOUT: Duration = Duration::from_secs(5);

impl Dataspace {
    /// Removes the marks and changes of a run that has ended, durably: another run may get its id. Nobody waits if there
    /// are none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn ended(&self, run: &RunId) -> Result<(), Error> {
        let log = self.changes();
        let is_named = ChangeLogContent::read(&log)?.is_some_and(|log| log.names(run));
        if !is_named && !self.has_files_of(run)? {
            return Ok(());
        }
        if self.shared.is_some() {
            return self.carry_out(|_| {
                let change = LoggedChange::RunEnded { run: run.clone() };
                Ok(FactDecision::change("", "", change, ()))
            });
        }
        self.refuse_copy()?;
        if !log.symlink_metadata().is_ok_and(|found| found.is_file()) {
            return self.clear_run(run);
        }
        let Some(mut writer) = self.write_within(ENDED_TIMEOUT)? else {
            tracing::warn!(
                "the facts are locked by another process, so the end of {run} is not noted there"
            );
            return self.clear_run(run);
        };
        writer.change(String::new(), String::new(), LoggedChange::RunEnded { run: run.clone() })
    }

    fn has_files_of(&self, run: &RunId) -> Result<bool, Error> {
        let agent_file_stem = format!("{run}~");
        let is_of_run = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&agent_file_stem))
        };
        for folder in STEP_FOLDERS {
            if crate::dataspace::entries(&self.path.join(folder))?.iter().any(is_of_run) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

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
