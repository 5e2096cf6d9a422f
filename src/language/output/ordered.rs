//! JSON in the order in which it is written.
//!
//! A model fills in the fields of a schema in their order. A schema in which the reasons come before the judgement
//! must reach the model in this order.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

/// A JSON value whose objects keep the order of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderedJson {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// An object.
    Object(Vec<(String, Self)>),
}

impl Serialize for OrderedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => {
                let mut sequence = serializer.serialize_seq(Some(list.len()))?;
                for entry in list {
                    sequence.serialize_element(entry)?;
                }
                sequence.end()
            }
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for OrderedJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OrderedVisitor)
    }
}

struct OrderedVisitor;

impl<'de> Visitor<'de> for OrderedVisitor {
    type Value = OrderedJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Null)
    }

    fn visit_none<E: Error>(self) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<OrderedJson, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<OrderedJson, E> {
        let number = Number::from_f64(number).map(OrderedJson::Number);
        number.ok_or_else(|| E::custom("JSON has no such number"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<OrderedJson, E> {
        Ok(OrderedJson::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<OrderedJson, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = sequence.next_element()? {
            list.push(entry);
        }
        Ok(OrderedJson::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedJson, A::Error> {
        let mut fields: Vec<(String, OrderedJson)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if fields.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format!("the key `{key}` is given twice")));
            }
            fields.push((key, map.next_value()?));
        }
        Ok(OrderedJson::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_and_value_types_are_preserved() {
        let text = r#"{"z":1,"a":[true,null,-2,0.5,"x"],"m":{"y":"1","b":{}}}"#;
        let read: OrderedJson = serde_json::from_str(text).expect("JSON");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
        let yaml = "z: 1\na: [true, null, -2, 0.5, x]\nm: { y: \"1\", b: {} }\n";
        let read: OrderedJson =
            crate::language::yaml::read(crate::language::yaml::tree::YamlFileKind::SCHEMA, yaml)
                .expect("YAML");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
    }

    #[test]
    fn duplicate_key_is_error() {
        let read = serde_json::from_str::<OrderedJson>(r#"{"a":1,"a":2}"#).expect_err("twice");
        assert!(read.to_string().starts_with("the key `a` is given twice"), "{read}");
    }
}
