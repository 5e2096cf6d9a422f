//! The facts of a played program: those that hold, and those that the run looks up before each advance.

use super::super::super::selected_facts;
use super::Play;
use raymond_model::event::Event;
use raymond_model::fact::{Fact, FactChange, FactSelection};
use raymond_model::time::Timestamp;

impl Play {
    /// Asserts a fact, and advances the program.
    pub(crate) fn fact(&mut self, label: &str, key: &str, value: &str) -> &mut Self {
        self.assert(label, key, value);
        self.go()
    }

    /// Asserts a fact without advancing the program.
    pub(crate) fn assert(&mut self, label: &str, key: &str, value: &str) {
        let fact = Fact {
            label: label.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
            seq: self.world.values().map(|fact| fact.seq + 1).fold(self.scene.next(), u64::max),
            source: "someone".to_owned(),
            at: Timestamp(self.now),
        };
        self.world.insert((label.to_owned(), key.to_owned()), fact);
    }

    /// Retracts a fact, and advances the program.
    pub(crate) fn retract(&mut self, label: &str, key: &str) -> &mut Self {
        self.world.remove(&(label.to_owned(), key.to_owned()));
        self.go()
    }

    /// Returns the facts that the program can match at its position.
    pub(crate) fn selection(&self) -> FactSelection {
        selected_facts(&self.scene.run, |_| Some(&self.program))
    }

    /// Returns the facts that the run knows, as `label key`.
    pub(crate) fn known(&self) -> Vec<String> {
        self.scene.run.facts.all().map(|fact| format!("{} {}", fact.label, fact.key)).collect()
    }

    /// Has the run see the facts that the program can match.
    pub(crate) fn look_at_facts(&mut self) {
        let selection = self.selection();
        let known = &self.scene.run.facts;
        let here = |fact: &Fact| {
            let now = self.world.get(&(fact.label.clone(), fact.key.clone()));
            now.is_some_and(|now| selection.includes(now))
        };
        let left = known.all().filter(|fact| !here(fact));
        let retracted = left.map(|Fact { label, key, .. }| FactChange::Retracted { label, key });
        let held = self.world.values().filter(|fact| selection.includes(fact)).cloned();
        let mut changes: Vec<FactChange> =
            retracted.chain(held.map(FactChange::Asserted)).collect();
        changes.retain(|change| known.is_news(change));
        if !changes.is_empty() {
            self.scene.happens(Event::FactsSeen { changes });
        }
    }
}
