//! The watcher of selected facts: it finds the changes since the last read, without waiting for a writer.
//!
//! While nothing changes, a read only asks the system for the length of the journal.

use super::Dataspace;
use super::fact::{of_key, of_label};
use crate::Error;
use raymond_model::fact::{FactChange, FactSelection, KnownFacts};

/// A watcher of a dataspace.
#[derive(Debug)]
pub struct DataspaceWatcher {
    space: Dataspace,
    /// The content and the selection of the last read.
    seen: Option<(u64, FactSelection)>,
}

/// The changes against the known facts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FactChanges {
    /// The facts that no longer hold, then those that hold, in the order in which they were asserted.
    pub changes: Vec<FactChange>,
    /// The warnings: lines that are not facts.
    pub warnings: Vec<String>,
}

impl DataspaceWatcher {
    /// Begins to watch: the first read is of all facts.
    pub fn new(space: Dataspace) -> Self {
        Self { space, seen: None }
    }

    /// Returns the changes among the selected facts, against the known ones. Each change is returned once, so the caller
    /// has to apply it before the next read. A fact that is no longer selected, because it has another payload, is
    /// retracted for the caller. A text that cannot be a label is warned of.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Newer`].
    pub fn changes(
        &mut self,
        selection: &FactSelection,
        known: &KnownFacts,
    ) -> Result<FactChanges, Error> {
        let journal = self.space.current()?;
        if self
            .seen
            .as_ref()
            .is_some_and(|(version, own)| (version, own) == (&journal.version, selection))
        {
            return Ok(FactChanges::default());
        }
        let mut changes = FactChanges::default();
        for label in selection.labels() {
            if let Err(unfit) = of_label(label) {
                changes.warnings.push(unfit.to_string());
            }
            let keys = selection.keys_of(label);
            let unfit = keys.iter().flatten().filter_map(|key| of_key(key).err());
            changes.warnings.extend(unfit.map(|unfit| unfit.to_string()));
            let Some(facts) = journal.state.facts.get(label) else { continue };
            let selected: Vec<_> = match keys {
                Some(keys) => keys.into_iter().filter_map(|key| facts.get(key)).collect(),
                None => facts.values().collect(),
            };
            let selected =
                selected.into_iter().filter(|held| selection.has(label, &held.key, &held.value));
            let asserted = selected.map(|held| FactChange::Asserted(held.fact()));
            changes.changes.extend(asserted.filter(|change| known.is_news(change)));
        }
        changes.changes.sort_by_key(|change| match change {
            FactChange::Asserted(fact) => fact.seq,
            FactChange::Retracted { .. } => 0,
        });
        changes.warnings.extend(journal.ignored.iter().map(|line| line.warning.clone()));
        let holds = |label: &str, key: &str| {
            let held = journal.state.held(label, key);
            held.is_some_and(|held| selection.has(label, key, &held.value))
        };
        let gone = known.all().filter(|fact| selection.has_label(&fact.label));
        let gone = gone.filter(|fact| !holds(&fact.label, &fact.key));
        let gone = gone.map(|fact| FactChange::Retracted { label: fact.label, key: fact.key });
        changes.changes.splice(0..0, gone);
        self.seen = Some((journal.version, selection.clone()));
        Ok(changes)
    }
}
