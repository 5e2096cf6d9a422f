//! Facts: what agents, people and programs assert to each other across all runs of a directory.
//!
//! A fact is a level, not an edge: it holds from when it is asserted until it is retracted or taken. Each
//! run keeps in its own state what it has seen of those its programs look at, so that a replay needs
//! nothing else.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// What it is about: `plan/ready`.
    pub label: String,
    /// Whom it concerns, often a run's id; empty, if nothing was said.
    pub key: String,
    /// Its payload; empty, if nothing was said.
    pub value: String,
    /// Its number in the dataspace: a later assertion has a higher one.
    pub seq: u64,
    /// Who asserted it: a run and an agent, or a person.
    pub source: String,
}

/// What became of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactChange {
    /// It holds from now on, with this payload.
    Asserted(Fact),
    /// It holds no longer.
    Retracted {
        /// Its label.
        label: String,
        /// Its key.
        key: String,
    },
}

impl FactChange {
    /// The label of the fact.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Asserted(Fact { label, .. }) | Self::Retracted { label, .. } => label,
        }
    }
}

/// The facts a run has seen, by label and key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Facts(BTreeMap<String, BTreeMap<String, Held>>);

/// A fact without its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    value: String,
    seq: u64,
    source: String,
}

impl Facts {
    /// The fact with a label and a key; without a key the one that was asserted last.
    #[must_use]
    pub fn get(&self, label: &str, key: Option<&str>) -> Option<Fact> {
        let keys = self.0.get(label)?;
        let (key, held) = match key {
            Some(key) => keys.get_key_value(key)?,
            None => keys.iter().max_by_key(|(_, held)| held.seq)?,
        };
        Some(held.named(label, key))
    }

    /// The fact with a label, a key, or any, and a payload; of several the one that was asserted last.
    #[must_use]
    pub fn find(&self, label: &str, key: Option<&str>, value: &str) -> Option<Fact> {
        let keys = self.0.get(label)?;
        let wanted = keys
            .iter()
            .filter(|(own, held)| key.is_none_or(|key| key == own.as_str()) && held.value == value);
        let (key, held) = wanted.max_by_key(|(_, held)| held.seq)?;
        Some(held.named(label, key))
    }

    /// All facts, by label and key.
    pub fn all(&self) -> impl Iterator<Item = Fact> {
        self.0
            .iter()
            .flat_map(|(label, keys)| keys.iter().map(move |(key, held)| held.named(label, key)))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a change is news.
    #[must_use]
    pub fn is_news(&self, change: &FactChange) -> bool {
        match change {
            FactChange::Asserted(fact) => {
                self.get(&fact.label, Some(&fact.key)).as_ref() != Some(fact)
            }
            FactChange::Retracted { label, key } => self.get(label, Some(key)).is_some(),
        }
    }

    /// Lets a change happen.
    pub(super) fn change(&mut self, change: &FactChange) {
        match change {
            FactChange::Asserted(Fact { label, key, value, seq, source }) => {
                let held = Held { value: value.clone(), seq: *seq, source: source.clone() };
                self.0.entry(label.clone()).or_default().insert(key.clone(), held);
            }
            FactChange::Retracted { label, key } => {
                if let Some(keys) = self.0.get_mut(label) {
                    keys.remove(key);
                    if keys.is_empty() {
                        self.0.remove(label);
                    }
                }
            }
        }
    }
}

impl Held {
    fn named(&self, label: &str, key: &str) -> Fact {
        Fact {
            label: label.to_owned(),
            key: key.to_owned(),
            value: self.value.clone(),
            seq: self.seq,
            source: self.source.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(key: &str, value: &str, seq: u64) -> Fact {
        Fact {
            label: "a/b".into(),
            key: key.into(),
            value: value.into(),
            seq,
            source: "someone".into(),
        }
    }

    #[test]
    fn the_last_assertion_wins_until_it_is_retracted() {
        let mut facts = Facts::default();
        let first = FactChange::Asserted(fact("k", "1", 1));
        assert!(facts.is_news(&first));
        facts.change(&first);
        assert!(!facts.is_news(&first));
        facts.change(&FactChange::Asserted(fact("k", "2", 2)));
        facts.change(&FactChange::Asserted(fact("other", "3", 3)));
        assert_eq!(facts.get("a/b", Some("k")), Some(fact("k", "2", 2)));
        assert_eq!(facts.get("a/b", None), Some(fact("other", "3", 3)), "any: the latest");
        assert_eq!(facts.find("a/b", None, "2"), Some(fact("k", "2", 2)));
        assert_eq!(facts.get("a/c", None), None);
        for key in ["k", "other"] {
            let change = FactChange::Retracted { label: "a/b".into(), key: key.into() };
            assert!(facts.is_news(&change));
            facts.change(&change);
            assert!(!facts.is_news(&change));
        }
        assert!(facts.is_empty());
    }
}
