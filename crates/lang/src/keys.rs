//! The keys of a YAML mapping that can also have the options of turns.
//!
//! They are listed, so that unknown ones are found without hiding other mistakes.

use super::hint::for_unknown_key;
use super::schema::shape::KeySpec;
use super::turn_options::{KEYS, canonical};
use super::yaml::{Error, YamlEntry, YamlValue};

/// Defines a mapping by its keys: the type that it is read into, and the list of them for messages and editors.
/// A type that does not deny unknown keys ignores them when it is read, so that one mistake does not hide the
/// others; [`unknown_keys`] finds them.
macro_rules! listed_keys {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[doc = $doc:literal])+ $of_key:vis $key:ident: $kind:ty => $shape:expr,)*
    }) => {
        #[derive(serde::Deserialize)]
        $(#[$meta])*
        $vis struct $name { $($(#[doc = $doc])+ $of_key $key: $kind,)* }

        impl $name {
            /// Its keys.
            pub(crate) const KEYS: &[crate::schema::shape::KeySpec] = &[
                $(crate::schema::shape::KeySpec {
                    name: stringify!($key),
                    doc: concat!($($doc),+),
                    shape: $shape,
                }),*
            ];
        }
    };
}

/// Makes types be read from the texts that their `parse` takes.
macro_rules! read_from_text {
    ($($name:ty),*) => {
        $(impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        })*
    };
}

/// Returns the unknown keys of a YAML mapping that has its own keys besides the keys of turn options, each with its
/// place. `place_of` returns the other place of the workflow that a key belongs in.
pub(crate) fn unknown_keys(
    root: &YamlValue,
    self_keys: &[KeySpec],
    place_of: impl Fn(&str) -> Option<&'static str>,
) -> Vec<Error> {
    let self_names = || self_keys.iter().map(|key| key.name);
    let options = || KEYS.into_iter().filter(|key| !self_names().any(|known| known == *key));
    let known = || self_names().chain(options());
    let unknown =
        root.entries().iter().filter(|entry| !known().any(|key| key == canonical(&entry.key)));
    let fault = |entry: &YamlEntry| {
        let name = &*entry.key;
        let below = self_keys.iter().find(|key| (key.shape)()["properties"].get(name).is_some());
        // The prompt itself, unless it is a file of an evaluator.
        let is_prompt =
            name == "prompt" && entry.value.text().is_some_and(|text| text.text.contains(' '));
        let below = below.filter(|_| !is_prompt);
        let message = match (below, place_of(name)) {
            (Some(below), _) => {
                format!("`{name}` belongs below `{}:`; indent it there", below.name)
            }
            (None, Some(place)) => format!("`{name}` belongs in {place}"),
            (None, None) => {
                let known: Vec<&str> = known().collect();
                format!("unknown key `{name}`; {}", for_unknown_key(name, &known))
            }
        };
        Error { at: entry.at, message }
    };
    unknown.map(fault).collect()
}
