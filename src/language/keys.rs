//! The keys of a YAML mapping that can also have the options of turns: listed, so that unknown ones are found
//! without hiding other mistakes.

use super::graph::tree::{self, YamlContent, YamlEntry};
use super::hint::closest;
use super::turn_options::{KEYS, OptionFault};

/// Defines the keys of a mapping, and lists them. Keys that are not among them are passed over when it is read,
/// so that one mistake does not hide the others; [`unknown_keys`] finds them.
macro_rules! listed_keys {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$of_key:meta])* $key:ident: $kind:ty,)* }) => {
        $(#[$meta])*
        #[derive(serde::Deserialize)]
        struct $name { $($(#[$of_key])* $key: $kind,)* }

        impl $name {
            const KEYS: &[&str] = &[$(stringify!($key)),*];
        }
    };
}

/// Returns the mistakes in the keys of a YAML mapping that has keys of its own beside those of turn options:
/// the unknown ones, each with its place.
#[must_use]
pub fn unknown_keys(yaml: &str, own: &[&str]) -> Vec<OptionFault> {
    let Some(YamlContent::Map(entries)) = tree::parse(yaml).0.map(|root| root.value) else {
        return Vec::new();
    };
    let options = || KEYS.into_iter().filter(|key| !own.contains(key));
    let known = || own.iter().copied().chain(options());
    let unknown = entries.iter().filter(|entry| !known().any(|key| key == &*entry.key));
    let fault = |entry: &YamlEntry| {
        let meant = closest(&entry.key, known()).map(|key| format!("did you mean `{key}`?"));
        let all = || format!("known here: {}", known().collect::<Vec<_>>().join(", "));
        let hint = meant.unwrap_or_else(all);
        OptionFault { at: entry.at, message: format!("unknown key `{}`; {hint}", entry.key) }
    };
    unknown.map(fault).collect()
}
