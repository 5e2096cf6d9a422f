//! The facts a run has seen, indexed by label, and within a label by key, by assertion order and by payload.
//! The cost of a lookup does not depend on their number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use super::{Fact, FactChange};
use crate::time::Timestamp;

/// The facts a run has seen, by label and key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownFacts(BTreeMap<String, LabelIndex>);

/// The facts of a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "FactsByKey")]
struct LabelIndex {
    keys: FactsByKey,
    order: AssertionOrder,
    values: BTreeMap<Arc<str>, AssertionOrder>,
}

type FactsByKey = BTreeMap<Arc<str>, FactEntry>;

/// Keys in the order in which their facts were asserted.
type AssertionOrder = BTreeSet<(u64, Arc<str>)>;

/// A fact without its label and key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FactEntry {
    value: Arc<str>,
    seq: u64,
    source: String,
    #[serde(default)]
    at: Timestamp,
}

/// A query for one fact.
#[derive(Debug, Clone, Copy, Default)]
pub struct FactQuery<'text> {
    /// The label.
    pub label: &'text str,
    /// The key; `None` for any.
    pub key: Option<&'text str>,
    /// The payload; `None` for any.
    pub value: Option<&'text str>,
    /// The latest time of the assertion; `None` for any time.
    pub by: Option<Timestamp>,
    /// True to find the oldest match instead of the latest.
    pub oldest: bool,
}

impl KnownFacts {
    /// Returns the fact with a label and a key, or without a key the one that was asserted last.
    pub fn get(&self, label: &str, key: Option<&str>) -> Option<Fact> {
        self.find(FactQuery { label, key, ..FactQuery::default() })
    }

    /// Returns the matching fact that was asserted last, or the oldest match if the query asks for that.
    pub fn find(&self, sought: FactQuery<'_>) -> Option<Fact> {
        let label = self.0.get(sought.label)?;
        let fits = |held: &FactEntry| {
            sought.value.is_none_or(|wanted| *wanted == *held.value)
                && sought.by.is_none_or(|by| held.at <= by)
        };
        if let Some(key) = sought.key {
            let held = label.keys.get(key).filter(|held| fits(held))?;
            return Some(held.named(sought.label, key));
        }
        let order = match sought.value {
            Some(value) => label.values.get(value)?,
            None => &label.order,
        };
        let found = |(_, key): &(u64, Arc<str>)| {
            let held = label.keys.get(key).filter(|held| fits(held))?;
            Some(held.named(sought.label, key))
        };
        if sought.oldest {
            order.iter().find_map(found)
        } else {
            order.iter().rev().find_map(found)
        }
    }

    /// Iterates over all facts, by label and key.
    pub fn all(&self) -> impl Iterator<Item = Fact> {
        self.0.iter().flat_map(|(name, label)| {
            label.keys.iter().map(move |(key, held)| held.named(name, key))
        })
    }

    /// Returns whether there are no facts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a change differs from the facts seen so far.
    pub fn is_news(&self, change: &FactChange) -> bool {
        match change {
            FactChange::Asserted(fact) => {
                self.get(&fact.label, Some(&fact.key)).as_ref() != Some(fact)
            }
            FactChange::Retracted { label, key } => self.get(label, Some(key)).is_some(),
        }
    }

    /// Returns these facts without one of them.
    pub fn without(&self, label: &str, key: &str) -> Self {
        let mut others = self.clone();
        let (label, key) = (label.to_owned(), key.to_owned());
        others.change(&FactChange::Retracted { label, key });
        others
    }

    /// Applies a change.
    pub(crate) fn change(&mut self, change: &FactChange) {
        match change {
            FactChange::Asserted(Fact { label, key, value, seq, source, at }) => {
                let held = FactEntry {
                    value: value.as_str().into(),
                    seq: *seq,
                    source: source.clone(),
                    at: *at,
                };
                self.0.entry(label.clone()).or_default().put(key.as_str().into(), held);
            }
            FactChange::Retracted { label: name, key } => {
                if let Some(label) = self.0.get_mut(name) {
                    label.remove(key);
                    if label.keys.is_empty() {
                        self.0.remove(name);
                    }
                }
            }
        }
    }
}

impl LabelIndex {
    fn put(&mut self, key: Arc<str>, held: FactEntry) {
        self.remove(&key);
        let place = (held.seq, Arc::clone(&key));
        self.values.entry(Arc::clone(&held.value)).or_default().insert(place.clone());
        self.order.insert(place);
        self.keys.insert(key, held);
    }

    fn remove(&mut self, key: &str) {
        let Some((key, held)) = self.keys.remove_entry(key) else { return };
        let place = (held.seq, key);
        self.order.remove(&place);
        if let Some(same) = self.values.get_mut(&held.value) {
            same.remove(&place);
            if same.is_empty() {
                self.values.remove(&held.value);
            }
        }
    }
}

impl From<FactsByKey> for LabelIndex {
    fn from(keys: FactsByKey) -> Self {
        let mut label = Self::default();
        for (key, held) in keys {
            label.put(key, held);
        }
        label
    }
}

impl Serialize for LabelIndex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.keys.serialize(serializer)
    }
}

impl FactEntry {
    fn named(&self, label: &str, key: &str) -> Fact {
        Fact {
            label: label.to_owned(),
            key: key.to_owned(),
            value: self.value.to_string(),
            seq: self.seq,
            source: self.source.clone(),
            at: self.at,
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
            at: Timestamp(seq * 1000),
        }
    }

    #[test]
    fn last_assertion_wins_until_retracted() {
        let mut facts = KnownFacts::default();
        let first = FactChange::Asserted(fact("k", "1", 1));
        assert!(facts.is_news(&first));
        facts.change(&first);
        assert!(!facts.is_news(&first));
        facts.change(&FactChange::Asserted(fact("k", "2", 2)));
        facts.change(&FactChange::Asserted(fact("other", "3", 3)));
        assert_eq!(facts.get("a/b", Some("k")), Some(fact("k", "2", 2)));
        assert_eq!(facts.get("a/b", None), Some(fact("other", "3", 3)), "any: the latest");
        let sought = FactQuery { label: "a/b", ..FactQuery::default() };
        let find = |sought| facts.find(sought);
        assert_eq!(find(FactQuery { value: Some("2"), ..sought }), Some(fact("k", "2", 2)));
        assert_eq!(find(FactQuery { oldest: true, ..sought }), Some(fact("k", "2", 2)));
        assert_eq!(
            find(FactQuery { by: Some(Timestamp(2500)), ..sought }),
            Some(fact("k", "2", 2))
        );
        assert_eq!(find(FactQuery { by: Some(Timestamp(1500)), ..sought }), None);
        assert_eq!(facts.get("a/c", None), None);
        for key in ["k", "other"] {
            let change = FactChange::Retracted { label: "a/b".into(), key: key.into() };
            assert!(facts.is_news(&change));
            facts.change(&change);
            assert!(!facts.is_news(&change));
        }
        assert!(facts.is_empty());
    }

    #[test]
    fn deserialized_facts_give_same_query_results() {
        let mut facts = KnownFacts::default();
        for (key, value, seq) in [("b", "1", 1), ("a", "1", 2), ("c", "2", 3), ("b", "2", 4)] {
            facts.change(&FactChange::Asserted(fact(key, value, seq)));
        }
        let text = serde_json::to_string(&facts).expect("written");
        let again: KnownFacts = serde_json::from_str(&text).expect("read");
        assert_eq!(again, facts);
        let sought = FactQuery { label: "a/b", value: Some("2"), ..FactQuery::default() };
        assert_eq!(again.find(sought), Some(fact("b", "2", 4)));
        assert_eq!(again.find(FactQuery { oldest: true, ..sought }), Some(fact("c", "2", 3)));
        assert_eq!(again.find(FactQuery { value: Some("1"), ..sought }), Some(fact("a", "1", 2)));
    }
}
