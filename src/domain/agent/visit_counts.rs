//! The number of turns that an agent has had in each state.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::domain::id::StateName;

/// The numbers of turns, sorted by state. There are few states, and thousands of agents: a list of the exact length takes
/// a third of the memory of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisitCounts(Vec<(StateName, u32)>);

impl VisitCounts {
    /// Returns the number of turns in a state.
    pub fn of(&self, state: &StateName) -> u32 {
        self.place(state).map_or(0, |place| self.0[place].1)
    }

    /// Returns the states, sorted.
    pub fn states(&self) -> impl Iterator<Item = &StateName> {
        self.0.iter().map(|(state, _)| state)
    }

    /// Counts one more turn in a state.
    pub(in crate::domain) fn add(&mut self, state: &StateName) {
        match self.place(state) {
            Ok(place) => self.0[place].1 = self.0[place].1.saturating_add(1),
            Err(place) => {
                self.0.reserve_exact(1);
                self.0.insert(place, (state.clone(), 1));
            }
        }
    }

    /// Returns whether there was no turn.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn place(&self, state: &StateName) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(state))
    }
}

impl Serialize for VisitCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(state, count)| (state, count)))
    }
}

impl<'de> Deserialize<'de> for VisitCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VisitCountsVisitor;

        impl<'de> Visitor<'de> for VisitCountsVisitor {
            type Value = VisitCounts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of states to numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<VisitCounts, A::Error> {
                let mut counts = Vec::new();
                while let Some(entry) = map.next_entry::<StateName, u32>()? {
                    counts.push(entry);
                }
                counts.sort();
                counts.dedup_by(|one, other| one.0 == other.0);
                counts.shrink_to_fit();
                Ok(VisitCounts(counts))
            }
        }

        deserializer.deserialize_map(VisitCountsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_by_state_and_read_back() {
        let state = |name: &str| StateName::parse(name).expect("a state");
        let mut counts = VisitCounts::default();
        assert!(counts.is_empty());
        for name in ["C.md", "A.md", "B.md", "A.md"] {
            counts.add(&state(name));
        }
        let of = |name: &str| counts.of(&state(name));
        assert_eq!([of("A.md"), of("B.md"), of("C.md"), of("D.md")], [2, 1, 1, 0]);
        let json = serde_json::to_string(&counts).expect("JSON");
        assert_eq!(json, r#"{"A.md":2,"B.md":1,"C.md":1}"#);
        assert_eq!(serde_json::from_str::<VisitCounts>(&json).expect("read"), counts);
    }
}
