//! Changes to the facts: one writer at a time decides with all changes before, and appends one more.

use std::time::Duration;

use super::Dataspace;
use super::fact::{self, LaterValue, QueuedFact};
use super::journal::{
    DataspaceStep, FactOperation, FactState, FactWriter, LoggedChange, NamedChange,
};
use crate::Error;
use raymond_model::fact::Fact;
use raymond_model::id::RunId;
use raymond_model::time::Timestamp;

/// The longest time that the end of a run waits for another writer.
const ENDED_TIMEOUT: Duration = Duration::from_secs(5);

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

/// The outcome of appending a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendOutcome {
    /// The fact that holds now.
    pub fact: Fact,
    /// The number of the values before the appended one.
    pub before: usize,
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

impl FactStatement<'_> {
    /// Returns what is stated as the fact with this number.
    pub(super) fn numbered(&self, seq: u64) -> QueuedFact {
        let Self { label, key, value, source, at } = *self;
        let (label, key, value) = (label.to_owned(), key.to_owned(), value.to_owned());
        QueuedFact { label, key, value, seq, source: source.to_owned(), at, later: Vec::new() }
    }

    fn check(&self) -> Result<(), Error> {
        check_names(self.label, self.key)?;
        Ok(fact::check_value(self.label, self.key, self.value)?)
    }
}

fn check_names(label: &str, key: &str) -> Result<(), Error> {
    fact::of_label(label)?;
    fact::of_key(key)?;
    Ok(())
}

/// The decision of a writer who has seen all changes before: what its caller gets, and the change that is made.
pub(super) struct FactDecision<T> {
    pub(super) outcome: T,
    pub(super) change: Option<NamedChange>,
}

impl<T> FactDecision<T> {
    fn unchanged(outcome: T) -> Self {
        Self { outcome, change: None }
    }

    fn change(label: &str, key: &str, change: LoggedChange, outcome: T) -> Self {
        Self { outcome, change: Some(NamedChange::new(label, key, change)) }
    }
}

impl Dataspace {
    /// Decides under the lock, and appends the decision, which is durable when this returns. If machines share the
    /// facts and another machine's change came in between, it decides again.
    fn carry_out<T>(
        &self,
        decide: impl Fn(&FactState) -> Result<FactDecision<T>, Error>,
    ) -> Result<T, Error> {
        if let Some(shared) = &self.shared {
            return self.carry_out_shared(&**shared, decide);
        }
        self.refuse_copy()?;
        self.decide(&self.write()?, decide)
    }

    fn decide<T>(
        &self,
        writer: &FactWriter<'_>,
        decide: impl Fn(&FactState) -> Result<FactDecision<T>, Error>,
    ) -> Result<T, Error> {
        let FactDecision { outcome, change } = decide(&self.advanced()?.state)?;
        match change {
            Some(change) => writer.append(&change)?,
            None => writer.sync()?,
        }
        Ok(outcome)
    }

    /// Asserts a fact, which is durable when this returns. If the same step does it again, nothing changes, even if the
    /// fact no longer holds.
    ///
    /// # Errors
    /// [`Error::Unfit`] for values that cannot be a fact, [`Error::Io`].
    pub fn assert(
        &self,
        what: FactStatement,
        step: Option<&DataspaceStep>,
    ) -> Result<AssertionOutcome, Error> {
        what.check()?;
        let FactStatement { label, key, .. } = what;
        self.carry_out(|state| {
            let held = state.held(label, key);
            let now = held.map(QueuedFact::fact);
            let is_made = state.marked(step, FactOperation::Assert, label, key).is_some();
            if is_made || held.is_some_and(|held| held.value == what.value) {
                let outcome =
                    AssertionOutcome { fact: now, is_new: false, replaced: None, dropped: 0 };
                return Ok(FactDecision::unchanged(outcome));
            }
            let fact = what.numbered(state.last.saturating_add(1));
            let dropped = held.map_or(0, |held| held.later.len());
            let outcome =
                AssertionOutcome { fact: Some(fact.fact()), is_new: true, replaced: now, dropped };
            let change = LoggedChange::Asserted { fact, step: step.cloned() };
            Ok(FactDecision::change(label, key, change, outcome))
        })
    }

    /// Appends a value to a fact. The value holds once all earlier values are taken, and is durable when this returns.
    ///
    /// # Errors
    /// [`Error::Unfit`] for values that cannot be a fact, or if too many wait; [`Error::Io`].
    pub fn append(&self, what: FactStatement) -> Result<AppendOutcome, Error> {
        what.check()?;
        self.carry_out(|state| {
            let new = what.numbered(state.last.saturating_add(1));
            let fact = match state.held(what.label, what.key) {
                Some(held) => {
                    let QueuedFact { value, seq, source, at, .. } = new;
                    held.clone().followed_by(LaterValue { value, seq, source, at })?
                }
                None => new,
            };
            let outcome = AppendOutcome { fact: fact.fact(), before: fact.later.len() };
            let change = LoggedChange::Asserted { fact, step: None };
            Ok(FactDecision::change(what.label, what.key, change, outcome))
        })
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
        check_names(label, key)?;
        if self.shared.is_none() && !self.path.is_dir() {
            return Ok(false);
        }
        let is_damaged = self.has_damaged(label, key)?;
        self.carry_out(|state| {
            let held = state.held(label, key).map(|held| held.seq);
            let held = held.or(is_damaged.then_some(0));
            // An earlier raymond may have marked a step without having removed the fact.
            let mark = state.marked(step, FactOperation::Retract, label, key);
            let is_made = mark.is_some_and(|mark| held != Some(mark.seq));
            let Some(seq) = held.filter(|_| !is_made) else {
                return Ok(FactDecision::unchanged(is_made));
            };
            let change = LoggedChange::Retracted { seq, step: step.cloned() };
            Ok(FactDecision::change(label, key, change, true))
        })
    }

    /// Takes the fact with a number, if it still holds. Only one caller gets it. If the same step tries again, it gets
    /// the fact that it has taken, regardless of label and key; see [`claimed`](Self::claimed).
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
        check_names(label, key)?;
        if self.shared.is_none() && !self.path.is_dir() {
            return Ok(None);
        }
        self.carry_out(|state| {
            if let Some(taken) = state.claimed(step) {
                return Ok(FactDecision::unchanged(Some(taken.fact())));
            }
            let Some(held) = state.held(label, key).filter(|held| held.seq == seq) else {
                return Ok(FactDecision::unchanged(None));
            };
            let next = held.without_first();
            let change = LoggedChange::Claimed { fact: held.clone(), step: step.clone(), next };
            Ok(FactDecision::change(label, key, change, Some(held.fact())))
        })
    }

    /// Returns the fact that a step has taken.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn claimed(&self, step: &DataspaceStep) -> Result<Option<Fact>, Error> {
        Ok(self.current()?.state.claimed(step).map(QueuedFact::fact))
    }

    /// Removes the marks and claims of a run that has ended, durably: another run may get its id. Nobody waits if there
    /// are none.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn ended(&self, run: &RunId) -> Result<(), Error> {
        if !self.current()?.state.has_steps_of(run) {
            return Ok(());
        }
        let decide = |_: &FactState| {
            let change = LoggedChange::RunEnded { run: run.clone() };
            Ok(FactDecision::change("", "", change, ()))
        };
        if self.shared.is_some() {
            return self.carry_out(decide);
        }
        self.refuse_copy()?;
        if let Some(writer) = self.write_within(Some(ENDED_TIMEOUT))? {
            return self.decide(&writer, decide);
        }
        tracing::warn!(
            "the facts are locked by another process, so the end of {run} is not noted there"
        );
        Ok(())
    }
}
