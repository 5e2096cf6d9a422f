//! A value with its place in the file, for types that are read from a tree.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::language::position::SourcePlace;

/// The name that asks the reader of a tree for the place as well.
pub(super) const PLACED: &str = "raymond::PlacedValue";

/// A value and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedValue<T> {
    /// The value.
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
