//! The keys of a YAML mapping that can also have the options of turns.
//!
//! They are listed, so that unknown ones are found without hiding other mistakes.

use serde_json::Value;

use super::hint::closest;
use super::turn_options::{KEYS, OptionFault};
use super::yaml::content::{YamlContent, YamlEntry, YamlValue};

/// A key of a mapping, for editors.
#[derive(Debug, Clone, Copy)]
pub(in crate::language) struct KeySpec {
    pub(in crate::language) name: &'static str,
    /// The sentences about it.
    pub(in crate::language) doc: &'static str,
    /// Its values, as JSON Schema.
    pub(in crate::language) shape: fn() -> Value,
}

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
            pub(in crate::language) const KEYS: &[crate::language::keys::KeySpec] = &[
                $(crate::language::keys::KeySpec {
                    name: stringify!($key),
                    doc: concat!($($doc),+),
                    shape: $shape,
                }),*
            ];
        }
    };
}

/// Returns the unknown keys of a YAML mapping that has keys of its own besides the keys of turn options, each with its
/// place.
pub(in crate::language) fn unknown_keys(root: &YamlValue, own: &[KeySpec]) -> Vec<OptionFault> {
    let YamlContent::Map(entries) = &root.value else { return Vec::new() };
    let own = || own.iter().map(|key| key.name);
    let options = || KEYS.into_iter().filter(|key| !own().any(|known| known == *key));
    let known = || own().chain(options());
    let unknown = entries.iter().filter(|entry| !known().any(|key| key == &*entry.key));
    let fault = |entry: &YamlEntry| {
        let meant = closest(&entry.key, known()).map(|key| format!("did you mean `{key}`?"));
        let all = || format!("known here: {}", known().collect::<Vec<_>>().join(", "));
        let hint = meant.unwrap_or_else(all);
        OptionFault { at: entry.at, message: format!("unknown key `{}`; {hint}", entry.key) }
    };
    unknown.map(fault).collect()
}
