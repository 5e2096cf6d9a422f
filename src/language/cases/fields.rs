//! Reads the values of a case from a tree, and keeps every mistake with its place.

use crate::language::hint::closest;
use crate::language::keys::KeySpec;
use crate::language::position::SourcePlace;
use crate::language::replies::FilePath;
use crate::language::yaml::content::{YamlContent, YamlEntry, YamlValue};
use crate::language::yaml::{Error, YamlErrors};

/// A reader of the values of a file of cases.
#[derive(Debug, Default)]
pub(super) struct FieldReader {
    pub(super) errors: YamlErrors,
}

impl FieldReader {
    /// Keeps a mistake.
    pub(super) fn wrong(&mut self, at: SourcePlace, message: impl Into<String>) {
        self.errors.add([Error::at(at, message.into())]);
    }

    /// Returns the value, or keeps the mistake at its place.
    pub(super) fn keep<T>(&mut self, at: SourcePlace, read: Result<T, String>) -> Option<T> {
        read.map_err(|why| self.wrong(at, why)).ok()
    }

    /// Returns the entries of a mapping. Unknown keys are mistakes, if the known ones are given.
    pub(super) fn entries<'tree>(
        &mut self,
        value: &'tree YamlValue,
        known: Option<&[KeySpec]>,
    ) -> &'tree [YamlEntry] {
        let YamlContent::Map(entries) = &value.value else {
            let example = known.and_then(|known| known.first()).map_or("key", |key| key.name);
            let sort = value.sort();
            self.wrong(
                value.at,
                format!("a mapping is expected here, such as `{example}: …`, not {sort}"),
            );
            return &[];
        };
        for entry in entries.iter() {
            let Some(known) = known else { continue };
            let names = || known.iter().map(|key| key.name);
            if names().any(|name| name == &*entry.key) {
                continue;
            }
            let meant = closest(&entry.key, names()).map(|name| format!("did you mean `{name}`?"));
            let all = || format!("known here: {}", names().collect::<Vec<_>>().join(", "));
            let hint = meant.unwrap_or_else(all);
            self.wrong(entry.at, format!("unknown key `{}`; {hint}", entry.key));
        }
        entries
    }

    /// Returns a text; a number or a boolean is one as it is written.
    pub(super) fn text(&mut self, value: &YamlValue) -> Option<String> {
        let text = value.as_written().map(str::to_owned);
        if text.is_none() {
            self.wrong(value.at, format!("a text is expected here, not {}", value.sort()));
        }
        text
    }

    /// Returns a text that has a meaning.
    pub(super) fn read<T>(
        &mut self,
        value: &YamlValue,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(value)?;
        self.keep(value.at, read(&text))
    }

    /// Returns true or false.
    pub(super) fn boolean(&mut self, value: &YamlValue) -> Option<bool> {
        let YamlContent::Bool(value) = value.value else {
            self.wrong(value.at, "true or false is expected here");
            return None;
        };
        Some(value)
    }

    /// Returns a whole number that is not negative.
    pub(super) fn count(&mut self, value: &YamlValue) -> Option<u64> {
        self.read(value, |text| {
            text.parse()
                .map_err(|_| format!("`{text}` is not a whole number; write a number such as 3"))
        })
    }
}

/// Returns the values of a list; any other value is a list of one.
pub(super) fn items(value: &YamlValue) -> &[YamlValue] {
    match &value.value {
        YamlContent::List(list) => list,
        _ => std::slice::from_ref(value),
    }
}

/// Reads the path of a file or a folder beside the file of cases.
pub(super) fn below_the_case(text: &str) -> Result<FilePath, String> {
    FilePath::parse_below(text, "the folder of this file")
}
