//! Facts: assertions that agents, people and programs share across all runs of a directory.
//!
//! A fact holds from its assertion until it is retracted or taken. Each run keeps in its own state the facts
//! that its programs look at, as it has seen them. A replay needs nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::time::Timestamp;

/// A fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// The subject: `plan/ready`.
    pub label: String,
    /// The thing it concerns, often a run's id; empty if none was given.
    pub key: String,
    /// The payload; empty if none was given.
    pub value: String,
    /// The number in the dataspace. A later assertion has a higher one.
    pub seq: u64,
    /// The source of the assertion: a run and an agent, or a person.
    pub source: String,
    /// The time of the assertion.
    #[serde(default)]
    pub at: Timestamp,
}

/// A change of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactChange {
    /// The fact holds from now on, with this payload.
    Asserted(Fact),
    /// The fact holds no longer.
    Retracted {
        /// The label of the fact.
        label: String,
        /// The key of the fact.
        key: String,
    },
}

impl FactChange {
    /// Returns the label of the fact.
    pub fn label(&self) -> &str {
        match self {
            Self::Asserted(Fact { label, .. }) | Self::Retracted { label, .. } => label,
        }
    }
}

// The facts a run has seen, indexed by label, and within a label by key, by assertion order and by payload.
// The cost of a lookup does not depend on their number.

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
    /// Returns the fact with a label and a key, or without a key the last asserted fact with that label.
    pub fn get(&self, label: &str, key: Option<&str>) -> Option<Fact> {
        self.find(FactQuery { label, key, ..FactQuery::default() })
    }

    /// Returns the matching fact that was asserted last, or the oldest match if the query asks for that.
    pub fn find(&self, query: FactQuery<'_>) -> Option<Fact> {
        let label = self.0.get(query.label)?;
        let fits = |held: &FactEntry| {
            query.value.is_none_or(|wanted| *wanted == *held.value)
                && query.by.is_none_or(|by| held.at <= by)
        };
        if let Some(key) = query.key {
            let held = label.keys.get(key).filter(|held| fits(held))?;
            return Some(held.named(query.label, key));
        }
        let order = match query.value {
            Some(value) => label.values.get(value)?,
            None => &label.order,
        };
        let found = |(_, key): &(u64, Arc<str>)| {
            let held = label.keys.get(key).filter(|held| fits(held))?;
            Some(held.named(query.label, key))
        };
        if query.oldest { order.iter().find_map(found) } else { order.iter().rev().find_map(found) }
    }

    /// Iterates over all facts, by label and key.
    pub fn all(&self) -> impl Iterator<Item = Fact> {
        self.0.iter().flat_map(|(name, label)| {
            label.keys.iter().map(move |(key, held)| held.named(name, key))
        })
    }

    /// Returns whether it has no facts.
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

// The facts that the programs of a run look at: all others need not be known to the run.

/// A selection of facts, by label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactSelection(BTreeMap<String, BTreeSet<FactPattern>>);

/// The facts of a label that one place of a program can match.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FactPattern {
    /// The key, if it is written in the program; `None` for any.
    pub key: Option<String>,
    /// The payload, if it is written in the program; `None` for any.
    pub value: Option<String>,
}

impl FactPattern {
    /// Returns the patterns that include this one: itself, and those without its key or its payload.
    fn with_wider(&self) -> [Self; 4] {
        let any = Self::default();
        let (key, value) = (self.key.clone(), self.value.clone());
        [self.clone(), Self { key, ..any.clone() }, Self { value, ..any.clone() }, any]
    }

    fn includes_all_of(&self, other: &Self) -> bool {
        (self.key.is_none() || self.key == other.key)
            && (self.value.is_none() || self.value == other.value)
    }
}

impl FactSelection {
    /// Returns the selection of all facts of some labels.
    pub fn of_labels<'label>(labels: impl IntoIterator<Item = &'label String>) -> Self {
        let mut all = Self::default();
        for label in labels {
            all.add(label, FactPattern::default());
        }
        all
    }

    /// Adds facts of a label. Patterns that another pattern includes are dropped.
    pub fn add(&mut self, label: &str, pattern: FactPattern) {
        let patterns = self.0.entry(label.to_owned()).or_default();
        if pattern.with_wider().iter().any(|wider| patterns.contains(wider)) {
            return;
        }
        if pattern.key.is_none() || pattern.value.is_none() {
            patterns.retain(|known| !pattern.includes_all_of(known));
        }
        patterns.insert(pattern);
    }

    /// Adds all facts of another selection.
    pub fn extend(&mut self, other: &Self) {
        for (label, patterns) in &other.0 {
            for pattern in patterns {
                self.add(label, pattern.clone());
            }
        }
    }

    /// Iterates over the labels.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns whether no facts are selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a fact is selected.
    pub fn includes(&self, fact: &Fact) -> bool {
        self.has(&fact.label, &fact.key, &fact.value)
    }

    /// Returns whether a fact with these texts is selected.
    pub fn has(&self, label: &str, key: &str, value: &str) -> bool {
        let Some(patterns) = self.0.get(label) else { return false };
        let exact = FactPattern { key: Some(key.to_owned()), value: Some(value.to_owned()) };
        exact.with_wider().iter().any(|wider| patterns.contains(wider))
    }

    /// Returns whether any facts of a label are selected.
    pub fn has_label(&self, label: &str) -> bool {
        self.0.contains_key(label)
    }

    /// Returns whether facts with this label and key are selected, regardless of their payload.
    pub fn has_key(&self, label: &str, key: &str) -> bool {
        let Some(patterns) = self.0.get(label) else { return false };
        patterns.iter().any(|pattern| pattern.key.as_deref().is_none_or(|patterns| patterns == key))
    }

    /// Returns the keys of the selected facts of a label; `None` if it has none, or if they may have any key.
    pub fn keys_of(&self, label: &str) -> Option<BTreeSet<&str>> {
        self.0.get(label)?.iter().map(|pattern| pattern.key.as_deref()).collect()
    }
}

#[cfg(test)]
mod known_tests {
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
        let query = FactQuery { label: "a/b", ..FactQuery::default() };
        let find = |query| facts.find(query);
        assert_eq!(find(FactQuery { value: Some("2"), ..query }), Some(fact("k", "2", 2)));
        assert_eq!(find(FactQuery { oldest: true, ..query }), Some(fact("k", "2", 2)));
        assert_eq!(find(FactQuery { by: Some(Timestamp(2500)), ..query }), Some(fact("k", "2", 2)));
        assert_eq!(find(FactQuery { by: Some(Timestamp(1500)), ..query }), None);
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
        let query = FactQuery { label: "a/b", value: Some("2"), ..FactQuery::default() };
        assert_eq!(again.find(query), Some(fact("b", "2", 4)));
        assert_eq!(again.find(FactQuery { oldest: true, ..query }), Some(fact("c", "2", 3)));
        assert_eq!(again.find(FactQuery { value: Some("1"), ..query }), Some(fact("a", "1", 2)));
    }
}

#[cfg(test)]
mod selection_tests {
    use super::*;
    use crate::time::Timestamp;

    fn pattern(key: &str, value: &str) -> FactPattern {
        let text = |text: &str| (text != "*").then(|| text.to_owned());
        FactPattern { key: text(key), value: text(value) }
    }

    fn selection(patterns: &[(&str, &str)]) -> FactSelection {
        let mut all = FactSelection::default();
        for (key, value) in patterns {
            all.add("l", pattern(key, value));
        }
        all
    }

    #[test]
    fn fact_is_selected_if_any_pattern_of_its_label_includes_it() {
        type Row = (&'static [(&'static str, &'static str)], [bool; 4]);
        // The facts k=1, k=2, j=1 and the empty one.
        let table: [Row; 7] = [
            (&[], [false; 4]),
            (&[("*", "*")], [true; 4]),
            (&[("k", "*")], [true, true, false, false]),
            (&[("*", "1")], [true, false, true, false]),
            (&[("k", "1")], [true, false, false, false]),
            (&[("k", "2"), ("*", "1")], [true, true, true, false]),
            (&[("", "")], [false, false, false, true]),
        ];
        for (patterns, expected) in table {
            let filter = selection(patterns);
            let facts = [("k", "1"), ("k", "2"), ("j", "1"), ("", "")];
            let selected = facts.map(|(key, value)| {
                let (label, source) = ("l".to_owned(), String::new());
                let (key, value) = (key.to_owned(), value.to_owned());
                filter.includes(&Fact { label, key, value, seq: 1, source, at: Timestamp(1) })
            });
            assert_eq!(selected, expected, "{patterns:?}");
            assert!(!filter.has("other", "k", "1"));
        }
    }

    #[test]
    fn pattern_that_another_includes_is_dropped() {
        let all = selection(&[("*", "*")]);
        assert_eq!(selection(&[("k", "1"), ("*", "*"), ("*", "1")]), all);
        assert_eq!(selection(&[("*", "*"), ("k", "1")]), all);
        let mut both = selection(&[("k", "*")]);
        both.extend(&selection(&[("k", "1"), ("*", "1")]));
        assert_eq!(both, selection(&[("*", "1"), ("k", "*")]));
        assert!(both.has_key("l", "j") && all.has_key("l", "j") && !both.has_key("m", "k"));
        let selected = selection(&[("k", "1"), ("j", "*")]);
        assert!(selected.has_key("l", "k") && !selected.has_key("l", "i"));
        assert_eq!(selected.keys_of("l"), Some(BTreeSet::from(["j", "k"])));
        assert_eq!((selected.keys_of("m"), both.keys_of("l")), (None, None));
        assert_eq!(FactSelection::of_labels([&"l".to_owned()]), all);
        assert_eq!(all.labels().collect::<Vec<_>>(), ["l"]);
        assert!(!all.is_empty() && FactSelection::default().is_empty());
    }
}
