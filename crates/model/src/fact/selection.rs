//! The facts that the programs of a run look at: all others need not be known to the run.

use std::collections::{BTreeMap, BTreeSet};

use super::Fact;

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

    /// Adds facts of a label. Patterns that another one includes are dropped.
    pub fn add(&mut self, label: &str, pattern: FactPattern) {
        let own = self.0.entry(label.to_owned()).or_default();
        if pattern.with_wider().iter().any(|wider| own.contains(wider)) {
            return;
        }
        if pattern.key.is_none() || pattern.value.is_none() {
            own.retain(|known| !pattern.includes_all_of(known));
        }
        own.insert(pattern);
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
        let Some(own) = self.0.get(label) else { return false };
        let exact = FactPattern { key: Some(key.to_owned()), value: Some(value.to_owned()) };
        exact.with_wider().iter().any(|wider| own.contains(wider))
    }

    /// Returns whether any facts of a label are selected.
    pub fn has_label(&self, label: &str) -> bool {
        self.0.contains_key(label)
    }

    /// Returns whether facts with this label and key are selected, whatever their payload.
    pub fn has_key(&self, label: &str, key: &str) -> bool {
        let Some(own) = self.0.get(label) else { return false };
        own.iter().any(|one| one.key.as_deref().is_none_or(|own| own == key))
    }

    /// Returns the keys of the selected facts of a label; `None` if it has none, or if they may have any key.
    pub fn keys_of(&self, label: &str) -> Option<BTreeSet<&str>> {
        self.0.get(label)?.iter().map(|one| one.key.as_deref()).collect()
    }
}

#[cfg(test)]
mod tests {
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
            let own = selection(patterns);
            let facts = [("k", "1"), ("k", "2"), ("j", "1"), ("", "")];
            let selected = facts.map(|(key, value)| {
                let (label, source) = ("l".to_owned(), String::new());
                let (key, value) = (key.to_owned(), value.to_owned());
                own.includes(&Fact { label, key, value, seq: 1, source, at: Timestamp(1) })
            });
            assert_eq!(selected, expected, "{patterns:?}");
            assert!(!own.has("other", "k", "1"));
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
        let own = selection(&[("k", "1"), ("j", "*")]);
        assert!(own.has_key("l", "k") && !own.has_key("l", "i"));
        assert_eq!(own.keys_of("l"), Some(BTreeSet::from(["j", "k"])));
        assert_eq!((own.keys_of("m"), both.keys_of("l")), (None, None));
        assert_eq!(FactSelection::of_labels([&"l".to_owned()]), all);
        assert_eq!(all.labels().collect::<Vec<_>>(), ["l"]);
        assert!(!all.is_empty() && FactSelection::default().is_empty());
    }
}
