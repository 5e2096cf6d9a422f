//! YAML as this program reads it: strictly, with a place for every mistake, in words for people.
//!
//! Every file is read into one kind of tree. From there it is read into types, or directly from the tree.

use std::ops::Range;
use std::sync::Arc;

use granit_parser::ScalarStyle;
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use self::deserialize::YamlDeserializer;
pub use self::deserialize::{NotText, PlacedValue, TextOr};
use self::tree::{YamlFault, YamlFileKind};
use super::source::SourcePlace;

mod deserialize;
pub(crate) mod tree;

/// A mistake and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{at}: {message}")]
pub struct Error {
    /// The place in the text that was read.
    pub at: SourcePlace,
    /// The mistake and its fix.
    pub message: String,
}

impl Error {
    /// Returns a mistake at a place.
    pub fn new(at: SourcePlace, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

impl From<YamlFault> for Error {
    fn from(YamlFault { at, message, .. }: YamlFault) -> Self {
        Self { at, message }
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

    /// Returns the value of a text, if it is there and can be read; a mistake in it has its place.
    pub fn value<T>(
        &mut self,
        text: Option<PlacedValue<String>>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.keep(value(text, read)).flatten()
    }

    /// Adds a mistake.
    pub fn wrong(&mut self, at: SourcePlace, message: impl Into<String>) {
        self.0.push(Error::new(at, message));
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

    /// Returns the value that was read, unless there are mistakes.
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
    from_tree(&sound_tree(kind, text)?)
}

/// Reads a text into a tree.
///
/// # Errors
/// The first [`Error`].
pub(crate) fn sound_tree(kind: YamlFileKind, text: &str) -> Result<YamlValue, Error> {
    let mut errors = YamlErrors::default();
    let root = parse(kind, text, &mut errors);
    let missing = || Error::new(SourcePlace::START, "a value is missing here");
    errors.or_else_first(root)?.ok_or_else(missing)
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
        .map_err(|error| Error { at: error.at.unwrap_or(root.at), message: error.message })
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
        let at = error.at;
        // A mistake of what a value was taken out of follows from that.
        if !changed.contains(&at) {
            errors.0.push(error);
        }
        let path = rest.path_to(at)?;
        changed.extend(rest.places(&path));
        rest.remove(&path);
        if let Some(path) = right.path_to(at) {
            right.remove(right.item_of(&path));
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
    text.map(|text| read(&text.value).map_err(|why| Error::new(text.at, why))).transpose()
}

// The tree of a YAML text: values in which every key and every value has its place.

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct YamlValue {
    pub(crate) at: SourcePlace,
    pub(crate) value: YamlContent,
    /// The text of a number or a boolean as it is written: `0.50`, `True`.
    pub(crate) written: Option<Arc<str>>,
}

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum YamlContent {
    Null,
    Bool(bool),
    Number(Number),
    Text(YamlScalar),
    List(Arc<Vec<YamlValue>>),
    Map(Arc<Vec<YamlEntry>>),
}

/// A text and its style.
#[derive(Debug, Clone)]
pub(crate) struct YamlScalar {
    pub(crate) text: Arc<str>,
    pub(crate) style: ScalarStyle,
    /// Its range in the whole text, in bytes.
    pub(crate) range: Range<usize>,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct YamlEntry {
    pub(crate) key: Arc<str>,
    pub(crate) at: SourcePlace,
    pub(crate) value: YamlValue,
}

impl YamlValue {
    /// Returns the value as JSON.
    pub(crate) fn json(&self) -> Value {
        match &self.value {
            YamlContent::Null => Value::Null,
            YamlContent::Bool(value) => Value::Bool(*value),
            YamlContent::Number(number) => Value::Number(number.clone()),
            YamlContent::Text(text) => Value::String(text.text.to_string()),
            YamlContent::List(list) => Value::Array(list.iter().map(Self::json).collect()),
            YamlContent::Map(map) => {
                let entry = |entry: &YamlEntry| (entry.key.to_string(), entry.value.json());
                Value::Object(map.iter().map(entry).collect::<Map<_, _>>())
            }
        }
    }

    /// Returns the value as JSON text, numbers and booleans as they are written, for a reader that may take them as
    /// texts.
    pub(crate) fn written_json(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        match (&self.value, &self.written) {
            (YamlContent::List(list), _) => {
                let items: Vec<String> = list.iter().map(Self::written_json).collect();
                format!("[{}]", items.join(", "))
            }
            (YamlContent::Map(entries), _) => {
                let entry = |entry: &YamlEntry| {
                    format!("{}: {}", quoted(&entry.key), entry.value.written_json())
                };
                let entries: Vec<String> = entries.iter().map(entry).collect();
                format!("{{{}}}", entries.join(", "))
            }
            (_, Some(written)) => written.to_string(),
            (YamlContent::Text(text), None) => quoted(&text.text),
            (_, None) => "null".to_owned(),
        }
    }

    /// Returns the values in this list or mapping, each with the place of its key if it has one.
    fn parts(&self) -> Vec<(Option<SourcePlace>, &Self)> {
        match &self.value {
            YamlContent::List(list) => list.iter().map(|item| (None, item)).collect(),
            YamlContent::Map(map) => map.iter().map(|item| (Some(item.at), &item.value)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the way to the innermost entry or item below this value that begins at a place: the number of the part
    /// at each level.
    pub(crate) fn path_to(&self, at: SourcePlace) -> Option<Vec<usize>> {
        let parts = self.parts();
        for (number, (_, part)) in parts.iter().enumerate() {
            if let Some(mut path) = part.path_to(at) {
                path.insert(0, number);
                return Some(path);
            }
        }
        let is_there =
            |(key, part): &(Option<SourcePlace>, &Self)| *key == Some(at) || part.at == at;
        parts.iter().position(is_there).map(|number| vec![number])
    }

    /// Returns the places of all values that a way leads through, and of what it leads to.
    pub(crate) fn places(&self, path: &[usize]) -> Vec<SourcePlace> {
        let mut places = vec![self.at];
        let mut parts = self.parts();
        for &number in path {
            let Some(&(key, part)) = parts.get(number) else { break };
            places.extend(key);
            places.push(part.at);
            parts = part.parts();
        }
        places
    }

    /// Returns the beginning of a way up to the first item of a list, or all of it.
    pub(crate) fn item_of<'path>(&self, path: &'path [usize]) -> &'path [usize] {
        let mut value = self;
        for (depth, &number) in path.iter().enumerate() {
            if matches!(value.value, YamlContent::List(_)) {
                return &path[..=depth];
            }
            match value.parts().get(number) {
                Some(&(_, part)) => value = part,
                None => break,
            }
        }
        path
    }

    /// Removes what a way leads to. Only the values on the way are copied, if they are shared.
    pub(crate) fn remove(&mut self, path: &[usize]) {
        let Some((&number, below)) = path.split_first() else { return };
        match &mut self.value {
            YamlContent::List(list) if below.is_empty() => {
                Arc::make_mut(list).remove(number);
            }
            YamlContent::Map(map) if below.is_empty() => {
                Arc::make_mut(map).remove(number);
            }
            YamlContent::List(list) => Arc::make_mut(list)[number].remove(below),
            YamlContent::Map(map) => Arc::make_mut(map)[number].value.remove(below),
            _ => {}
        }
    }

    /// Returns the entries of a mapping; any other value has none.
    pub(crate) fn entries(&self) -> &[YamlEntry] {
        match &self.value {
            YamlContent::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the entry of a key, if this is a mapping that has it.
    pub(crate) fn entry(&self, key: &str) -> Option<&YamlEntry> {
        self.entries().iter().find(|entry| &*entry.key == key)
    }

    /// Returns whether nothing is written here.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.value, YamlContent::Null)
    }

    /// Returns the text, if it is one.
    pub(crate) fn text(&self) -> Option<&YamlScalar> {
        match &self.value {
            YamlContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of a scalar as it is written; None for null, a list or a mapping.
    pub(crate) fn as_written(&self) -> Option<&str> {
        match &self.value {
            YamlContent::Text(text) => Some(&text.text),
            YamlContent::Bool(_) | YamlContent::Number(_) => self.written.as_deref(),
            YamlContent::Null | YamlContent::List(_) | YamlContent::Map(_) => None,
        }
    }

    /// Returns its kind in words, for a message.
    pub(crate) fn sort(&self) -> &'static str {
        match &self.value {
            YamlContent::Null => "nothing",
            YamlContent::Bool(_) => "a boolean",
            YamlContent::Number(_) => "a number",
            YamlContent::Text(_) => "a text",
            YamlContent::List(_) => "a list",
            YamlContent::Map(_) => "a mapping",
        }
    }

    /// Returns all texts in it, at any depth.
    pub(crate) fn texts(&self) -> Vec<(SourcePlace, &YamlScalar)> {
        match &self.value {
            YamlContent::Text(text) => vec![(self.at, text)],
            YamlContent::List(list) => list.iter().flat_map(Self::texts).collect(),
            YamlContent::Map(map) => map.iter().flat_map(|entry| entry.value.texts()).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
