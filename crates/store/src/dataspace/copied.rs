//! A dataspace that is the copy of facts which several machines share: each change is made there first, in one order.
//!
//! A change has the same number in the copy as in the shared log, so the copy's journal shows how far it goes. If the
//! copy lacks a change, it is copied again as a whole, and its readers see no content in between. A note names what it
//! is a copy of, so nobody changes a fact in the copy alone.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Dataspace;
use super::journal::{FactState, FactWriter, LoggedChange, NamedChange};
use super::write::FactDecision;
use crate::Error;
use crate::shared_copy::SharedFacts;
use raymond_model::json_mistake::placed_mistake;
use raymond_model::log_line::LogLine;

/// The number of changes that are read at a time.
const PAGE: usize = 1_000;

/// The first pause before what could not be reached is asked again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Dataspace {
    /// Returns the dataspace as a copy of facts that several machines share.
    pub fn shared_by(self, shared: Arc<dyn SharedFacts>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Brings the copy up to date. A dataspace that is not a copy stays as it is.
    ///
    /// # Errors
    /// [`Error::Unreached`], [`Error::Engine`], [`Error::ForeignFacts`] if there are facts that were never shared,
    /// [`Error::Io`].
    pub fn pull(&self) -> Result<(), Error> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let known = self.known_changes()?;
        let news = shared.changes(known.saturating_sub(1), 2)?;
        let is_current = match known {
            0 => news.is_empty() && self.engine()?.is_none(),
            _ => news.len() == 1,
        };
        if is_current {
            return Ok(());
        }
        self.claim_copy(&**shared)?;
        self.write()?.pull(&**shared)
    }

    /// Returns the number of the last change that the copy has; 0 if it does not have all changes before.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn known_changes(&self) -> Result<u64, Error> {
        Ok(self.current()?.last_whole())
    }

    /// Refuses to change a copy alone.
    pub(super) fn refuse_copy(&self) -> Result<(), Error> {
        match self.engine()? {
            Some(engine) => Err(Error::SharedFacts { engine }),
            None => Ok(()),
        }
    }

    /// Notes what this is a copy of.
    fn claim_copy(&self, shared: &dyn SharedFacts) -> Result<(), Error> {
        let engine_name = shared.name();
        // Another process may be making the copy: it writes the note first.
        let has_facts = self.path_of_journal().exists();
        match self.engine()? {
            Some(engine) if engine == engine_name => Ok(()),
            Some(of) => Err(Error::ForeignFacts { path: self.path.clone(), of }),
            None if has_facts => {
                Err(Error::ForeignFacts { path: self.path.clone(), of: "this machine".to_owned() })
            }
            None => self.note_engine(&engine_name),
        }
    }

    /// Decides and makes a change as [`carry_out`](Self::carry_out) does, for all machines. A caller that can be asked
    /// to end waits until the shared log is reached, without holding the lock.
    pub(super) fn carry_out_shared<T>(
        &self,
        shared: &dyn SharedFacts,
        decide: impl Fn(&FactState) -> Result<FactDecision<T>, Error>,
    ) -> Result<T, Error> {
        self.claim_copy(shared)?;
        let (id, mut pause) = (unique(), FIRST_PAUSE);
        loop {
            match self.attempt(shared, &id, &decide) {
                Ok(Some(outcome)) => return Ok(outcome),
                // Another machine was first.
                Ok(None) => pause = FIRST_PAUSE,
                Err(Error::Unreached(_)) if self.ends.is_some() => {
                    self.pause(pause).map_err(Error::io("wait for", &self.lock()))?;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Decides once; `None` if another change has come between.
    fn attempt<T>(
        &self,
        shared: &dyn SharedFacts,
        id: &str,
        decide: impl Fn(&FactState) -> Result<FactDecision<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let writer = self.write()?;
        writer.pull(shared)?;
        // The facts are not kept from readers while the shared log is asked.
        let (decision, last) = {
            let journal = self.advanced()?;
            (decide(&journal.state)?, journal.state.last)
        };
        if let Some(change) = decision.change {
            let text = SharedFactChange::text(id, &change)
                .map_err(std::io::Error::other)
                .map_err(Error::io("write", &self.path_of_journal()))?;
            if !shared.append(last, &text)? {
                return Ok(None);
            }
            writer.append(&change)?;
        }
        Ok(Some(decision.outcome))
    }
}

impl FactWriter<'_> {
    /// Appends the changes that other machines have made since.
    fn pull(&self, shared: &dyn SharedFacts) -> Result<(), Error> {
        loop {
            let known = self.space.known_changes()?;
            if known == 0 {
                return self.copy_again(shared);
            }
            // The last known one is asked for, too: a shared log that was put back to an earlier state lacks it.
            let page = shared.changes(known - 1, PAGE + 1)?;
            if page.first().is_none_or(|first| first.seq != known) {
                return self.copy_again(shared);
            }
            let read = |change: &LogLine| Ok((change.seq, read(shared, change)?));
            let news: Vec<_> = page[1..].iter().map(read).collect::<Result<_, Error>>()?;
            let news: Vec<_> = news.iter().map(|(seq, change)| (*seq, change)).collect();
            if !news.is_empty() {
                self.write(&news, false)?;
            }
            if page.len() <= PAGE {
                return Ok(());
            }
            self.recover()?;
        }
    }

    /// Makes the copy what all changes together make of it.
    fn copy_again(&self, shared: &dyn SharedFacts) -> Result<(), Error> {
        let mut state = FactState::default();
        loop {
            let page = shared.changes(state.last, PAGE)?;
            for change in &page {
                state.apply(change.seq, read(shared, change)?);
            }
            if page.len() < PAGE {
                return self.space.begin(&state, &[]);
            }
        }
    }
}

/// Reads a change that machines share.
fn read(shared: &dyn SharedFacts, change: &LogLine) -> Result<NamedChange, Error> {
    let LogLine { seq, text } = change;
    SharedFactChange::read(*seq, text).map_err(|why| {
        let name = shared.name();
        Error::Engine(format!("change {seq} of the facts in {name} cannot be read: {why}"))
    })
}

/// Returns a word that no other change has.
pub(super) fn unique() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}

// A change of a fact as machines share it: without a proof, because each machine has its own key. Pure.

/// The version of [`SharedFactChange`].
const VERSION: u32 = 1;

/// A change that machines share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedFactChange {
    version: u32,
    /// A word that no other change has.
    id: String,
    label: String,
    key: String,
    change: LoggedChange,
}

/// The part that each version has.
#[derive(Deserialize)]
struct ChangeVersion {
    version: u32,
}

impl SharedFactChange {
    /// Returns the text of a change.
    fn text(id: &str, named: &NamedChange) -> serde_json::Result<String> {
        let NamedChange { label, key, change } = named.clone();
        serde_json::to_string(&Self { version: VERSION, id: id.to_owned(), label, key, change })
    }

    /// Returns the change with this number.
    ///
    /// # Errors
    /// The reason why it is none.
    fn read(number: u64, text: &str) -> Result<NamedChange, String> {
        let mistake = |error| placed_mistake(&error);
        let ChangeVersion { version } = serde_json::from_str(text).map_err(mistake)?;
        if version > VERSION {
            return Err(format!(
                "it has version {version}, and this raymond reads versions up to {VERSION}: use the raymond that the other machines use"
            ));
        }
        let change: NamedChange = serde_json::from_str(text).map_err(mistake)?;
        if change.is_sound(number) {
            Ok(change)
        } else {
            Err("it is not a change of a fact".to_owned())
        }
    }
}
