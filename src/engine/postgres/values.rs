//! The values of statements: parameters with their types, and columns of rows.

use tokio_postgres::types::{ToSql, Type};

/// A parameter of a statement.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Returns a parameter that is a text, or none.
pub(super) fn text(value: &(impl ToSql + Sync)) -> Parameter<'_> {
    (value, Type::TEXT)
}

/// Returns a parameter that is a list of texts.
pub(super) fn texts(value: &(impl ToSql + Sync)) -> Parameter<'_> {
    (value, Type::TEXT_ARRAY)
}

/// Returns a parameter that is a number.
pub(super) fn number(value: &i64) -> Parameter<'_> {
    (value, Type::INT8)
}

/// Returns a parameter that is a list of numbers.
pub(super) fn numbers(value: &Vec<i64>) -> Parameter<'_> {
    (value, Type::INT8_ARRAY)
}

/// Returns a parameter that is a number of seconds.
pub(super) fn seconds(value: &f64) -> Parameter<'_> {
    (value, Type::FLOAT8)
}

/// Returns a parameter that is a truth value.
pub(super) fn flag(value: &bool) -> Parameter<'_> {
    (value, Type::BOOL)
}

/// Returns a parameter that is a content.
pub(super) fn content(value: &(impl ToSql + Sync)) -> Parameter<'_> {
    (value, Type::BYTEA)
}

/// Returns a number as the database stores it. One that is too large becomes the largest, which no row has.
pub(super) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a limit of rows as the database takes it.
pub(super) fn stored_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
