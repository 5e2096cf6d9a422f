//! Reads a tree into a type, so that each mistake has its place and words for people.
//!
//! A number or a boolean is a text where the type wants one, just as it is written.

use std::marker::PhantomData;
use std::{fmt, slice};

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use crate::hint::{closest, for_unknown_key};
use crate::source::SourcePlace;
use crate::yaml::{YamlContent, YamlEntry, YamlValue};

/// A value that its type does not take.
#[derive(Debug)]
pub(super) struct TypeMismatch {
    pub(super) at: Option<SourcePlace>,
    pub(super) message: String,
}

impl TypeMismatch {
    fn at(at: SourcePlace, message: &str) -> Self {
        Self { at: Some(at), message: message.to_owned() }
    }

    /// Returns the mistake at a place, if it has none yet.
    fn or_at(mut self, at: SourcePlace) -> Self {
        self.at.get_or_insert(at);
        self
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TypeMismatch {}

impl de::Error for TypeMismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { at: None, message: message.to_string() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let sort = match found {
            Unexpected::Bool(_) => "a boolean",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
            Unexpected::Str(_) => "a text",
            Unexpected::Unit => "nothing",
            Unexpected::Seq => "a list",
            Unexpected::Map => "a mapping",
            _ => return Self::custom(format!("{expected} is expected here, not {found}")),
        };
        Self::custom(format!("{expected} is expected here, not {sort}"))
    }

    fn unknown_field(key: &str, keys: &'static [&'static str]) -> Self {
        let is_text = key.contains(['{', ' ']) || key.starts_with('<') && key.contains('>');
        let meant = closest(key, keys.iter().copied());
        if is_text && meant.is_none() {
            return Self::custom(format!(
                "`{key}: …` is read as a key and its value; put a text with `: ` in it in quotes"
            ));
        }
        Self::custom(format!("unknown key `{key}`; {}", for_unknown_key(key, keys)))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::custom(format!("the key `{key}` is missing here"))
    }
}

/// Reads a value.
#[derive(Clone, Copy)]
pub(super) struct YamlDeserializer<'tree>(pub(super) &'tree YamlValue);

impl<'tree> YamlDeserializer<'tree> {
    fn wrong<T>(self, message: &str) -> Result<T, TypeMismatch> {
        Err(TypeMismatch::at(self.0.at, message))
    }

    /// Returns the text as it is written.
    fn text(self) -> Result<&'tree str, TypeMismatch> {
        match self.0.as_written() {
            Some(text) => Ok(text),
            None if matches!(self.0.value, YamlContent::Null) => {
                self.wrong("a value is missing here")
            }
            None => self.wrong("expected text here"),
        }
    }
}

impl<'de> Deserializer<'de> for YamlDeserializer<'de> {
    type Error = TypeMismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeMismatch> {
        match &self.0.value {
            YamlContent::Null => visitor.visit_unit(),
            YamlContent::Bool(value) => visitor.visit_bool(*value),
            YamlContent::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            YamlContent::Text(text) => visitor.visit_borrowed_str(&text.text),
            YamlContent::List(list) => visitor.visit_seq(ListItems(list.iter())),
            YamlContent::Map(entries) => {
                visitor.visit_map(MapEntries { rest: entries.iter(), value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeMismatch> {
        match self.0.value {
            YamlContent::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeMismatch> {
        visitor.visit_borrowed_str(self.text()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeMismatch> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeMismatch> {
        match self.0.value {
            YamlContent::Bool(value) => visitor.visit_bool(value),
            _ => self.wrong("true or false is expected here"),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeMismatch> {
        match &self.0.value {
            YamlContent::List(list) => visitor.visit_seq(ListItems(list.iter())),
            YamlContent::Text(_) => {
                // What is wrong with it as an entry matters more.
                visitor.visit_seq(ListItems(slice::from_ref(self.0).iter()))?;
                self.wrong("a list is expected here: put `- ` before each entry")
            }
            _ => self.wrong("a list is expected here: put `- ` before each entry"),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TypeMismatch> {
        match &self.0.value {
            YamlContent::Map(_) => self.deserialize_any(visitor),
            YamlContent::Text(text) if text.text.contains(':') => self
                .wrong("a mapping is expected here: put a space after the colon of `key: value`"),
            _ => self.wrong("a mapping is expected here, such as { key: value }"),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TypeMismatch> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TypeMismatch> {
        if name == PLACED {
            return visitor.visit_seq(PlacedParts { node: self.0, next: 0 });
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, TypeMismatch> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum
        identifier
    }
}

/// The items of a list.
struct ListItems<'tree>(slice::Iter<'tree, YamlValue>);

impl<'tree> SeqAccess<'tree> for ListItems<'tree> {
    type Error = TypeMismatch;

    fn next_element_seed<S: DeserializeSeed<'tree>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, TypeMismatch> {
        let Some(item) = self.0.next() else { return Ok(None) };
        let read = seed.deserialize(YamlDeserializer(item)).map(Some);
        read.map_err(|error| error.or_at(item.at))
    }
}

/// The entries of a mapping.
struct MapEntries<'tree> {
    rest: slice::Iter<'tree, YamlEntry>,
    value: Option<&'tree YamlValue>,
}

impl<'tree> MapAccess<'tree> for MapEntries<'tree> {
    type Error = TypeMismatch;

    fn next_key_seed<S: DeserializeSeed<'tree>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, TypeMismatch> {
        let Some(entry) = self.rest.next() else { return Ok(None) };
        self.value = Some(&entry.value);
        let key: BorrowedStrDeserializer<'_, TypeMismatch> =
            BorrowedStrDeserializer::new(&entry.key);
        seed.deserialize(key).map(Some).map_err(|error| error.or_at(entry.at))
    }

    fn next_value_seed<S: DeserializeSeed<'tree>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, TypeMismatch> {
        let value = self.value.take().ok_or_else(|| de::Error::custom("a value has a key"))?;
        seed.deserialize(YamlDeserializer(value)).map_err(|error| error.or_at(value.at))
    }
}

/// The line, the column and the value, as [`PlacedValue`] reads them.
struct PlacedParts<'tree> {
    node: &'tree YamlValue,
    next: u8,
}

impl<'tree> SeqAccess<'tree> for PlacedParts<'tree> {
    type Error = TypeMismatch;

    fn next_element_seed<S: DeserializeSeed<'tree>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, TypeMismatch> {
        let SourcePlace { line, column } = self.node.at;
        self.next += 1;
        match self.next {
            1 => seed.deserialize(line.into_deserializer()).map(Some),
            2 => seed.deserialize(column.into_deserializer()).map(Some),
            3 => {
                let read = seed.deserialize(YamlDeserializer(self.node)).map(Some);
                read.map_err(|error| error.or_at(self.node.at))
            }
            _ => Ok(None),
        }
    }
}

/// The name that asks the reader of a tree for the place as well.
pub(super) const PLACED: &str = "raymond::PlacedValue";

/// A value with its place in the file, for types that are read from a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedValue<T> {
    pub value: T,
    /// Its place; for an alias, the place of what it stands for.
    pub at: SourcePlace,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PlacedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(PLACED, PlacedVisitor(PhantomData))
    }
}

struct PlacedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PlacedVisitor<T> {
    type Value = PlacedValue<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value with its place")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<PlacedValue<T>, A::Error> {
        let absent = || A::Error::custom("a place has a line and a column");
        let line = parts.next_element()?.ok_or_else(absent)?;
        let column = parts.next_element()?.ok_or_else(absent)?;
        let value = parts.next_element()?.ok_or_else(absent)?;
        Ok(PlacedValue { value, at: SourcePlace { line, column } })
    }
}

/// A text, or a value of another form.
#[derive(Debug)]
pub enum TextOr<T> {
    Text(String),
    Other(T),
}

/// The other form of a value that may be a text.
pub trait NotText {
    /// Both forms, for the message that a value is neither.
    const EXPECTED: &str;
    /// Whether it is a list rather than a mapping.
    const IS_LIST: bool = false;
}

impl<'de, T: NotText + Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrVisitor(PhantomData))
    }
}

/// A visitor instead of an untagged enum, so that a mistake keeps its own message and place.
struct TextOrVisitor<T>(PhantomData<T>);

impl<'de, T: NotText + Deserialize<'de>> Visitor<'de> for TextOrVisitor<T> {
    type Value = TextOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E>(self, text: &str) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<TextOr<T>, A::Error> {
        if !T::IS_LIST {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        T::deserialize(SeqAccessDeserializer::new(list)).map(TextOr::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<T>, A::Error> {
        if T::IS_LIST {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        }
        T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Other)
    }
}
