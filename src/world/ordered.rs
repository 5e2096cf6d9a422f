//! Writes a value that replaces a text with its keys in the order of the text; new keys come last, in the order of the value.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The order of the keys in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyOrder {
    /// A map: its keys, each with the order below it.
    Map(Vec<(String, KeyOrder)>),
    /// A list: the orders in its elements.
    List(Vec<KeyOrder>),
    /// A value without keys, or one whose order is not known.
    Leaf,
}

impl KeyOrder {
    /// Returns the order of a YAML text; none is known of a text that cannot be read.
    pub(super) fn of_yaml(text: &str) -> Self {
        serde_yaml::from_str(text).unwrap_or(Self::Leaf)
    }

    fn below(&self, key: &str) -> &Self {
        match self {
            Self::Map(keys) => {
                keys.iter().find(|(own, _)| own == key).map_or(&Self::Leaf, |it| &it.1)
            }
            Self::List(_) | Self::Leaf => &Self::Leaf,
        }
    }

    fn at(&self, place: usize) -> &Self {
        match self {
            Self::List(list) => list.get(place).unwrap_or(&Self::Leaf),
            Self::Map(_) | Self::Leaf => &Self::Leaf,
        }
    }
}

impl<'de> Deserialize<'de> for KeyOrder {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(KeyOrderVisitor)
    }
}

struct KeyOrderVisitor;

impl<'de> Visitor<'de> for KeyOrderVisitor {
    type Value = KeyOrder;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeyOrder, A::Error> {
        let mut keys = Vec::new();
        while let Some(entry) = map.next_entry::<String, KeyOrder>()? {
            keys.push(entry);
        }
        Ok(KeyOrder::Map(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<KeyOrder, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(KeyOrder::List(elements))
    }

    fn visit_bool<E>(self, _: bool) -> Result<KeyOrder, E> {
        Ok(KeyOrder::Leaf)
    }

    fn visit_i64<E>(self, _: i64) -> Result<KeyOrder, E> {
        Ok(KeyOrder::Leaf)
    }

    fn visit_u64<E>(self, _: u64) -> Result<KeyOrder, E> {
        Ok(KeyOrder::Leaf)
    }

    fn visit_f64<E>(self, _: f64) -> Result<KeyOrder, E> {
        Ok(KeyOrder::Leaf)
    }

    fn visit_str<E>(self, _: &str) -> Result<KeyOrder, E> {
        Ok(KeyOrder::Leaf)
    }

    fn visit_unit<E>(self) -> Result<KeyOrder, E> {
        Ok(KeyOrder::Leaf)
    }

    fn visit_none<E>(self) -> Result<KeyOrder, E> {
        Ok(KeyOrder::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<KeyOrder, D::Error> {
        KeyOrder::deserialize(inner)
    }
}

/// A value that is written in an order.
pub(super) struct OrderedValue<'value> {
    pub(super) value: &'value Value,
    pub(super) order: &'value KeyOrder,
}

impl Serialize for OrderedValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { value, order } = self;
        match value {
            Value::Object(map) => {
                let known: Vec<&String> = match order {
                    KeyOrder::Map(keys) => keys.iter().map(|(key, _)| key).collect(),
                    KeyOrder::List(_) | KeyOrder::Leaf => Vec::new(),
                };
                let first = known.iter().filter_map(|key| Some((*key, map.get(*key)?)));
                let rest = map.iter().filter(|(key, _)| !known.contains(key));
                let mut written = to.serialize_map(Some(map.len()))?;
                for (key, value) in first.chain(rest) {
                    let order = order.below(key);
                    written.serialize_entry(key, &OrderedValue { value, order })?;
                }
                written.end()
            }
            Value::Array(list) => {
                let mut written = to.serialize_seq(Some(list.len()))?;
                for (place, value) in list.iter().enumerate() {
                    written.serialize_element(&OrderedValue { value, order: order.at(place) })?;
                }
                written.end()
            }
            scalar => scalar.serialize(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_stay_where_they_stood_and_new_ones_come_last() {
        let text = r#"{"z": 1, "a": {"y": true, "b": null}, "list": [{"q": 1.5, "c": -2}]}"#;
        let value = json!({
            "a": {"b": 2, "new": 1, "y": 3}, "to": 1, "also": 0, "list": [{"c": 1, "q": 2}, {"b": 1}], "z": 2,
        });
        let order = KeyOrder::of_yaml(text);
        let ordered = OrderedValue { value: &value, order: &order };
        let written = serde_json::to_string(&ordered).expect("JSON");
        let expected =
            r#"{"z":2,"a":{"y":3,"b":2,"new":1},"list":[{"q":2,"c":1},{"b":1}],"to":1,"also":0}"#;
        assert_eq!(written, expected);
        let yaml = serde_yaml::to_string(&ordered).expect("YAML");
        assert!(yaml.starts_with("z: 2\na:\n"), "{yaml}");
    }

    #[test]
    fn text_that_cannot_be_read_has_no_order() {
        assert_eq!(KeyOrder::of_yaml("a: ["), KeyOrder::Leaf);
    }
}
