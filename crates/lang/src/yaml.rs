//! YAML as this program reads it: strictly, with a place for every mistake, in words for people.
//!
//! Every file is read into one kind of tree. From there it is read into types, or directly from the tree.

pub(crate) mod content;
mod deserialize;
pub(crate) mod tree;

use serde::Deserialize;

use self::content::YamlValue;
pub use self::deserialize::PlacedValue;
use self::deserialize::YamlDeserializer;
use self::tree::{YamlFault, YamlFileKind};
use super::position::SourcePlace;

/// A mistake and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct Error {
    /// The line in the text that was read, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// The mistake and its fix.
    pub message: String,
}

impl Error {
    /// Returns a mistake at a place.
    pub fn at(SourcePlace { line, column }: SourcePlace, message: String) -> Self {
        Self { line, column, message }
    }
}

impl From<YamlFault> for Error {
    fn from(YamlFault { at, message, .. }: YamlFault) -> Self {
        Self::at(at, message)
    }
}

/// The mistakes in a file that is read to its end all the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct YamlErrors(Vec<Error>);

impl YamlErrors {
    /// Returns the value that was read, or keeps the error.
    pub fn keep<T>(&mut self, read: Result<T, Error>) -> Option<T> {
        read.map_err(|error| self.0.push(error)).ok()
    }

    /// Adds mistakes.
    pub fn add(&mut self, errors: impl IntoIterator<Item = impl Into<Error>>) {
        self.0.extend(errors.into_iter().map(Into::into));
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all mistakes, in the order in which they were found.
    pub fn all(&self) -> &[Error] {
        &self.0
    }

    /// Returns the value that was read, if there are no mistakes.
    ///
    /// # Errors
    /// The first [`Error`].
    pub fn or_else_first<T>(self, read: T) -> Result<T, Error> {
        self.0.into_iter().next().map_or(Ok(read), Err)
    }
}

/// Reads a text into a type.
///
/// # Errors
/// The first [`Error`].
pub(crate) fn read<T: for<'tree> Deserialize<'tree>>(
    kind: YamlFileKind,
    text: &str,
) -> Result<T, Error> {
    let mut errors = YamlErrors::default();
    let read = parse(kind, text, &mut errors).and_then(|root| errors.keep(from_tree(&root)));
    match (read, errors.0.into_iter().next()) {
        (_, Some(error)) => Err(error),
        (Some(read), None) => Ok(read),
        (None, None) => Err(Error::at(SourcePlace::START, "a value is missing here".to_owned())),
    }
}

/// Reads a text into a tree. A tree in which a key stands twice is usable all the same, besides the mistake.
pub(crate) fn parse(kind: YamlFileKind, text: &str, errors: &mut YamlErrors) -> Option<YamlValue> {
    let (root, faults) = tree::parse(kind, text);
    errors.add(faults);
    root
}

/// Reads a tree into a type.
///
/// # Errors
/// [`Error`] with the place of the first value that the type does not take.
pub(crate) fn from_tree<T: for<'tree> Deserialize<'tree>>(root: &YamlValue) -> Result<T, Error> {
    T::deserialize(YamlDeserializer(root))
        .map_err(|error| Error::at(error.place_or(root.at), error.message))
}

/// The most mistakes of one tree that are reported.
const MAX_MISTAKES: usize = 100;

/// Reads a tree into a type, and keeps the mistake of each value that the type does not take. In what is returned, the
/// items of lists with such a value are left out.
pub(crate) fn examine_tree<T: for<'tree> Deserialize<'tree>>(
    root: &YamlValue,
    errors: &mut YamlErrors,
) -> Option<T> {
    let (mut rest, mut right) = (root.clone(), root.clone());
    let mut changed = Vec::new();
    for found in 0..=MAX_MISTAKES {
        let error = match from_tree(&rest) {
            Ok(read) if found == 0 => return Some(read),
            Ok(_) => return from_tree(&right).ok(),
            Err(error) => error,
        };
        let at = SourcePlace { line: error.line, column: error.column };
        // A mistake of what a value was taken out of follows from that.
        if !changed.contains(&at) {
            errors.0.push(error);
        }
        let way = rest.way_to(at)?;
        changed.extend(rest.places(&way));
        rest.remove(&way);
        if let Some(way) = right.way_to(at) {
            right.remove(right.item_of(&way));
        }
    }
    None
}

/// Returns the meaning of a text in the YAML, if it is there; a mistake in it has its place.
///
/// # Errors
/// [`Error`], with the words of `read`.
pub fn value<T>(
    text: Option<PlacedValue<String>>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Error> {
    text.map(|text| read(&text.value).map_err(|why| Error::at(text.at, why))).transpose()
}

#[cfg(test)]
mod tests;
