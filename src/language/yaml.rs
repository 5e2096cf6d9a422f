//! YAML as this program reads it: strictly, with a place for every mistake, in words for people.

use serde::de::DeserializeOwned;
use serde_yaml::{Location, Spanned};

use super::hint::closest;
use super::turn_options::OptionFault;

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
    #[must_use]
    pub fn at(location: Location, message: String) -> Self {
        Self { line: location.line(), column: location.column(), message }
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

    /// Adds the mistakes in the options of turns.
    pub fn add_options(&mut self, faults: Vec<OptionFault>) {
        let error =
            |OptionFault { at, message }| Error { line: at.line, column: at.column, message };
        self.0.extend(faults.into_iter().map(error));
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all mistakes, in the order in which they were found.
    #[must_use]
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

/// Reads a text.
///
/// # Errors
/// [`Error`].
pub fn read<T: DeserializeOwned>(yaml: &str) -> Result<T, Error> {
    let options = serde_yaml::options! { strict_booleans: true, with_snippet: false };
    serde_yaml::from_str_with_options(yaml, options).map_err(|error| {
        let place = error.location().unwrap_or(Location::UNKNOWN);
        let said = error.without_snippet().to_string();
        let said = said.split(" at line ").next().unwrap_or(&said);
        Error::at(place, in_words(said))
    })
}

/// Returns the meaning of a text in the YAML, if it is there; a mistake in it has its place.
///
/// # Errors
/// [`Error`], with the words of `read`.
pub fn value<T>(
    text: Option<Spanned<String>>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Error> {
    text.map(|text| read(&text.value).map_err(|why| Error::at(text.referenced, why))).transpose()
}

/// Returns the library's message in words for people; an unknown message stays as it is.
fn in_words(said: &str) -> String {
    let quoted = |start: &str, end: char| said.split_once(start)?.1.split(end).next();
    if let Some(key) = quoted("unknown field `", '`') {
        let keys = said.split_once("expected ").map_or("", |(_, keys)| keys);
        let keys = keys.strip_prefix("one of ").unwrap_or(keys).replace('`', "");
        let meant = closest(key, keys.split(", ")).map(|key| format!("did you mean `{key}`?"));
        let known = || format!("known here: {keys}");
        return format!("unknown key `{key}`; {}", meant.unwrap_or_else(known));
    }
    if let Some(key) = quoted("duplicate mapping key: ", ',') {
        return format!("the key `{key}` stands here twice");
    }
    let table = [
        ("expected sequence start", "a list is expected here: put `- ` before each entry"),
        ("expected mapping start", "a mapping is expected here, such as { key: value }"),
        ("expected string scalar", "a text is expected here"),
        ("cannot deserialize null", "something is missing here"),
        ("invalid floating point", "a number is expected here"),
        ("missing field", "something is missing here"),
    ];
    let known = table.into_iter().find(|(technical, _)| said.contains(technical));
    match known {
        Some(("missing field", words)) => format!("{words}: {said}"),
        Some((_, words)) => words.to_owned(),
        None => said.to_owned(),
    }
}
