//! The tree of a YAML text: values in which every key and every value has its place.

use std::ops::Range;
use std::sync::Arc;

use granit_parser::ScalarStyle;
use serde_json::{Map, Number, Value};

use crate::language::position::SourcePlace;

/// A value and its place.
#[derive(Debug, Clone)]
pub(in crate::language) struct YamlValue {
    pub(in crate::language) at: SourcePlace,
    pub(in crate::language) value: YamlContent,
    /// The text of a number or a boolean as it is written: `0.50`, `True`.
    pub(in crate::language) written: Option<Arc<str>>,
}

/// A value.
#[derive(Debug, Clone)]
pub(in crate::language) enum YamlContent {
    Null,
    Bool(bool),
    Number(Number),
    Text(YamlScalar),
    List(Arc<Vec<YamlValue>>),
    Map(Arc<Vec<YamlEntry>>),
}

/// A text and its style.
#[derive(Debug, Clone)]
pub(in crate::language) struct YamlScalar {
    pub(in crate::language) text: Arc<str>,
    pub(in crate::language) style: ScalarStyle,
    /// Its range in the whole text, in bytes.
    pub(in crate::language) range: Range<usize>,
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(in crate::language) struct YamlEntry {
    pub(in crate::language) key: Arc<str>,
    pub(in crate::language) at: SourcePlace,
    pub(in crate::language) value: YamlValue,
}

impl YamlValue {
    /// Returns the value as JSON.
    pub(in crate::language) fn json(&self) -> Value {
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
    pub(in crate::language) fn written_json(&self) -> String {
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

    /// Removes the innermost entry or item below this value that begins at a place; returns whether there is one.
    pub(in crate::language) fn remove(&mut self, at: SourcePlace) -> bool {
        match &mut self.value {
            YamlContent::List(list) => {
                let list = Arc::make_mut(list);
                let place = list.iter().position(|one| one.at == at);
                list.iter_mut().any(|one| one.remove(at))
                    || place.map(|place| list.remove(place)).is_some()
            }
            YamlContent::Map(entries) => {
                let entries = Arc::make_mut(entries);
                let place = entries.iter().position(|one| one.at == at || one.value.at == at);
                entries.iter_mut().any(|one| one.value.remove(at))
                    || place.map(|place| entries.remove(place)).is_some()
            }
            _ => false,
        }
    }

    /// Returns whether nothing is written here.
    pub(in crate::language) fn is_null(&self) -> bool {
        matches!(self.value, YamlContent::Null)
    }

    /// Returns the text, if it is one.
    pub(in crate::language) fn text(&self) -> Option<&YamlScalar> {
        match &self.value {
            YamlContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text of a scalar as it is written; None for null, a list or a mapping.
    pub(in crate::language) fn as_written(&self) -> Option<&str> {
        match &self.value {
            YamlContent::Text(text) => Some(&text.text),
            YamlContent::Bool(_) | YamlContent::Number(_) => self.written.as_deref(),
            YamlContent::Null | YamlContent::List(_) | YamlContent::Map(_) => None,
        }
    }

    /// Returns its kind in words, for a message.
    pub(in crate::language) fn sort(&self) -> &'static str {
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
    pub(in crate::language) fn texts(&self) -> Vec<(SourcePlace, &YamlScalar)> {
        match &self.value {
            YamlContent::Text(text) => vec![(self.at, text)],
            YamlContent::List(list) => list.iter().flat_map(Self::texts).collect(),
            YamlContent::Map(map) => map.iter().flat_map(|entry| entry.value.texts()).collect(),
            _ => Vec::new(),
        }
    }
}
