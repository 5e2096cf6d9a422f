//! Variables: named texts, in the order of their names.
//!
//! Thousands of agents have a few variables each, and an agent, its spec and its turns have the same ones. So they are
//! a list that all of them share until one of them changes it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The number of variables up to which a list has no spare room.
const FEW: usize = 4;

/// Texts by their names.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variables(Option<Arc<Vec<(String, String)>>>);

impl Variables {
    /// Returns no variables.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list().is_empty()
    }

    /// Returns their number.
    pub fn len(&self) -> usize {
        self.list().len()
    }

    /// Returns the value of a variable, if there is one of that name.
    pub fn get(&self, name: &str) -> Option<&String> {
        let place = self.place(name).ok()?;
        self.list().get(place).map(|(_, value)| value)
    }

    /// Returns whether there is a variable of that name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.place(name).is_ok()
    }

    /// Sets a variable; returns the value that it had before.
    pub fn insert(&mut self, name: String, value: String) -> Option<String> {
        match self.place(&name) {
            Ok(place) => Some(std::mem::replace(&mut self.list_mut()[place].1, value)),
            Err(place) => {
                let list = self.list_mut();
                // Most agents have one variable or two, and there are thousands of agents.
                if list.len() < FEW {
                    list.reserve_exact(1);
                }
                list.insert(place, (name, value));
                None
            }
        }
    }

    /// Removes a variable; returns its value.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        let place = self.place(name).ok()?;
        let value = self.list_mut().remove(place).1;
        if self.is_empty() {
            self.0 = None;
        }
        Some(value)
    }

    /// Returns the names and values.
    pub fn iter(&self) -> VariablesIter<'_> {
        self.list().iter().map(|(name, value)| (name, value))
    }

    /// Returns the names.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &String> + Clone {
        self.list().iter().map(|(name, _)| name)
    }

    /// Returns the values.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &String> + Clone {
        self.list().iter().map(|(_, value)| value)
    }

    /// Returns the values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.0.iter_mut().flat_map(Arc::make_mut).map(|(_, value)| value)
    }

    fn list(&self) -> &[(String, String)] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    fn list_mut(&mut self) -> &mut Vec<(String, String)> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// Returns the place of a variable, or the place where it belongs.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.list().binary_search_by(|(other, _)| other.as_str().cmp(name))
    }
}

/// The names and values of variables.
pub type VariablesIter<'a> = std::iter::Map<
    std::slice::Iter<'a, (String, String)>,
    fn(&'a (String, String)) -> (&'a String, &'a String),
>;

impl<'a> IntoIterator for &'a Variables {
    type Item = (&'a String, &'a String);
    type IntoIter = VariablesIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Variables {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map(Arc::unwrap_or_clone).unwrap_or_default().into_iter()
    }
}

impl Extend<(String, String)> for Variables {
    fn extend<T: IntoIterator<Item = (String, String)>>(&mut self, others: T) {
        for (name, value) in others {
            self.insert(name, value);
        }
    }
}

impl FromIterator<(String, String)> for Variables {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(all: T) -> Self {
        let mut variables = Self::new();
        variables.extend(all);
        variables
    }
}

impl<const N: usize> From<[(String, String); N]> for Variables {
    fn from(all: [(String, String); N]) -> Self {
        all.into_iter().collect()
    }
}

impl From<BTreeMap<String, String>> for Variables {
    fn from(map: BTreeMap<String, String>) -> Self {
        let list: Vec<_> = map.into_iter().collect();
        Self((!list.is_empty()).then(|| Arc::new(list)))
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self).finish()
    }
}

impl Serialize for Variables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de> Deserialize<'de> for Variables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for Variables {
    fn inline_schema() -> bool {
        BTreeMap::<String, String>::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        BTreeMap::<String, String>::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        BTreeMap::<String, String>::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, String>::json_schema(generator)
    }
}

#[cfg(any(test, feature = "test-fakes"))]
impl std::ops::Index<&str> for Variables {
    type Output = String;

    #[allow(clippy::expect_used, reason = "only tests use it")]
    fn index(&self, name: &str) -> &String {
        self.get(name).expect("there is such a variable")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum VariableChange {
        Insert(String, String),
        Remove(String),
    }

    fn change() -> impl Strategy<Value = VariableChange> {
        let name = "[a-d]{1,2}";
        prop_oneof![
            (name, "[x-z]?").prop_map(|(name, value)| VariableChange::Insert(name, value)),
            name.prop_map(VariableChange::Remove),
        ]
    }

    proptest! {
        #[test]
        fn variables_behave_as_a_map(changes in prop::collection::vec(change(), 0..40)) {
            let (mut variables, mut map) = (Variables::new(), BTreeMap::new());
            for change in changes {
                let before = (variables.clone(), map.clone());
                match change {
                    VariableChange::Insert(name, value) => prop_assert_eq!(
                        variables.insert(name.clone(), value.clone()),
                        map.insert(name, value)
                    ),
                    VariableChange::Remove(name) => {
                        prop_assert_eq!(variables.remove(&name), map.remove(&name));
                    }
                }
                prop_assert_eq!(Variables::from(before.1), before.0, "what was shared is as it was");
            }
            prop_assert_eq!(variables.len(), map.len());
            prop_assert!(variables.iter().eq(map.iter()));
            let written = serde_json::to_string(&variables).expect("JSON");
            prop_assert_eq!(&written, &serde_json::to_string(&map).expect("JSON"));
            let read: Variables = serde_json::from_str(&written).expect("read");
            prop_assert_eq!(&read, &variables);
            prop_assert_eq!(variables == Variables::new(), map.is_empty());
        }
    }
}
