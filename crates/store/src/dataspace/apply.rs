//! Makes a logged change in the files. Nothing is flushed: until the log begins anew, it can be done again from there.
//!
//! Whatever a writer that was killed has left undone is done by whoever takes the lock next, so each part may be done
//! twice.
//!
//! Appends a value behind those of a fact that nobody has taken yet.

use std::path::Path;

use crate::dataspace::entry::{ChangeLogEntry, LoggedChange, ProvenFact};
use crate::dataspace::fact_file::{FactFile, LaterValue};
use crate::dataspace::step::{DataspaceStep, refuse_link, remove};
use crate::dataspace::writer::FactDecision;
use crate::dataspace::{Dataspace, FACT, FactLookup, FactStatement, fact_file};
use crate::fault::point;
use crate::{Error, files};
use raymond_model::fact::Fact;

impl Dataspace {
    /// Makes a change.
    pub(super) fn apply(&self, entry: &ChangeLogEntry) -> Result<(), Error> {
        if let Some((step, mark)) = entry.mark() {
            // An assertion that an earlier raymond has left there is done with this one.
            remove(&self.outgoing_of(step))?;
            self.set_mark(step, &mark)?;
            point("dataspace.marked");
        }
        let ChangeLogEntry(_, label, key, change) = entry;
        match change {
            None | Some(LoggedChange::Reread {}) => {}
            Some(LoggedChange::Asserted { fact, .. }) => self.put(fact)?,
            Some(LoggedChange::Retracted { .. }) => self.take_away(label, key)?,
            Some(LoggedChange::Claimed { fact, step, next: None }) => self.take(fact, step)?,
            Some(LoggedChange::Claimed { fact, step, next: Some(next) }) => {
                // Once its taker has the fact, nobody looks at this change again.
                self.put(next)?;
                self.put_claim(fact, step)?;
            }
            Some(LoggedChange::RunEnded { run }) => self.clear_run(run)?,
        }
        point("dataspace.moved");
        Ok(())
    }

    /// Puts a fact into its place.
    pub(super) fn put(&self, fact: &ProvenFact) -> Result<(), Error> {
        let folder = self.folder(&fact.value.label)?;
        files::make_draft_dir(&folder)?;
        refuse_link(&folder)?;
        put_into(&self.fact(&fact.value.label, &fact.value.key)?, fact)
    }

    /// Removes a fact from its place.
    pub(super) fn take_away(&self, label: &str, key: &str) -> Result<(), Error> {
        refuse_link(&self.folder(label)?)?;
        remove(&self.fact(label, key)?)
    }

    /// Moves a fact out of its place to its taker.
    fn take(&self, fact: &ProvenFact, step: &DataspaceStep) -> Result<(), Error> {
        let path = self.fact(&fact.value.label, &fact.value.key)?;
        let claim = self.claim_of(step);
        refuse_link(&self.folder(&fact.value.label)?)?;
        files::make_draft_dir(&self.path.join("claims"))?;
        refuse_link(&self.path.join("claims"))?;
        match self.read(&path)? {
            FactLookup::Fact(held) if held.seq == fact.value.seq => {
                std::fs::rename(&path, &claim).map_err(Error::io("replace", &claim))
            }
            _ => self.put_claim(fact, step),
        }
    }

    /// Puts a taken fact where its taker finds it, unless it is there.
    pub(super) fn put_claim(&self, fact: &ProvenFact, step: &DataspaceStep) -> Result<(), Error> {
        let claim = self.claim_of(step);
        if self.read(&claim)?.whole().as_ref() == Some(&fact.value.fact()) {
            return Ok(());
        }
        files::make_draft_dir(&self.path.join("claims"))?;
        refuse_link(&self.path.join("claims"))?;
        put_into(&claim, fact)
    }
}

fn put_into(path: &Path, fact: &ProvenFact) -> Result<(), Error> {
    let text = serde_json::to_vec(fact)
        .map_err(std::io::Error::other)
        .map_err(Error::io("write", path))?;
    files::replace_draft(path, &text)
}

/// The outcome of appending a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendOutcome {
    /// The fact that holds now.
    pub fact: Fact,
    /// The number of the values before the appended one.
    pub before: usize,
}

impl Dataspace {
    /// Appends a value to a fact: it holds once the values before it are taken. It is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Unfit`] for values that cannot be a fact, or if too many wait; [`Error::Io`].
    pub fn append(&self, what: FactStatement) -> Result<AppendOutcome, Error> {
        let FactStatement { label, key, value, source, at } = what;
        let path = self.fact(label, key)?;
        fact_file::check_value(label, key, value)?;
        self.carry_out(|writer| {
            let (value, source, seq) = (value.to_owned(), source.to_owned(), writer.log.next);
            let file = if let Ok(held) = self.proven(&path)? {
                held.value.followed_by(LaterValue { value, seq, source, at })?
            } else {
                let (label, key) = (label.to_owned(), key.to_owned());
                FactFile { label, key, value, seq, source, at, later: Vec::new() }
            };
            let outcome = AppendOutcome { fact: file.fact(), before: file.later.len() };
            let fact = ProvenFact::new(file, self.key.as_ref(), FACT)
                .map_err(std::io::Error::other)
                .map_err(Error::io("write", &path))?;
            let change = LoggedChange::Asserted { fact, step: None };
            Ok(FactDecision::change(label, key, change, outcome))
        })
    }
}
