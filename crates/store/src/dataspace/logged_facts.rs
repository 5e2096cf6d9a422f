//! The facts as the change log has them, so that no reader has to open all of their files.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::entry::ProvenFact;
use super::redo::is_blocked;
use super::{Dataspace, MAX_FACT_LENGTH, entries, is_absent, is_unusable};
use crate::Error;
use crate::dataspace::fact_file;
use crate::dataspace::write::ChangeLogContent;
use crate::plain_file;
use raymond_model::fact::FactSelection;

/// The longest fact that a change log begins with, in bytes. The files of longer ones are read.
const MAX_SNAPSHOT_LINE: usize = 16 * 1024;

/// The length of the line of a fact with a short value, in bytes: a guess at how many facts a log has.
const SHORT_LINE: usize = 256;

/// The facts in the directory of a label, by the names of their files without the ending. `None` says that the file has
/// to be read.
pub(super) type LoggedFacts<'log> = HashMap<Cow<'log, str>, Option<LoggedFact<'log>>>;

/// A fact in the change log. Nobody has checked its proof.
#[derive(Debug)]
pub(super) struct LoggedFact<'log> {
    /// The fact with its proof, as in its file.
    pub(super) text: &'log [u8],
    /// False if nobody asks for it.
    pub(super) is_selected: bool,
}

/// The names in a fact.
#[derive(Deserialize)]
struct FactName<'log> {
    #[serde(borrow)]
    label: Cow<'log, str>,
    #[serde(borrow)]
    key: Cow<'log, str>,
    #[serde(borrow)]
    value: Cow<'log, str>,
}

/// A change, as far as it is needed here.
#[derive(Deserialize)]
struct ChangeLine<'log>(
    serde::de::IgnoredAny,
    #[serde(borrow)] Cow<'log, str>,
    #[serde(borrow)] Cow<'log, str>,
    #[serde(borrow, default)] Option<ChangeKind<'log>>,
);

/// The kind of a change; all but assertions are alike.
#[derive(Deserialize)]
struct ChangeKind<'log> {
    #[serde(borrow, default)]
    asserted: Option<AssertionLine<'log>>,
}

#[derive(Deserialize)]
struct AssertionLine<'log> {
    #[serde(borrow)]
    fact: &'log RawValue,
}

impl ChangeLogContent {
    /// Returns what is known of the facts of one label, and which of them are selected.
    pub(super) fn facts_of(
        &self,
        label: &str,
        selection: Option<&FactSelection>,
    ) -> LoggedFacts<'_> {
        let mut facts = LoggedFacts::with_capacity(self.lines.len() / SHORT_LINE);
        let is_whole = self.each_fact(Some(label), selection, |own, key, fact| {
            if own == label
                && let Ok(name) = fact_file::of_borrowed_key(key)
            {
                facts.insert(name, fact);
            }
        });
        if is_whole { facts } else { LoggedFacts::new() }
    }

    /// Returns what is known of all facts, by the directories of their labels.
    fn all_facts(&self) -> HashMap<String, LoggedFacts<'_>> {
        let mut facts: HashMap<String, LoggedFacts<'_>> = HashMap::new();
        let is_whole = self.each_fact(None, None, |label, key, fact| {
            if let (Ok(folder), Ok(name)) =
                (fact_file::of_label(label), fact_file::of_borrowed_key(key))
            {
                facts.entry(folder).or_default().insert(name, fact);
            }
        });
        if is_whole { facts } else { HashMap::new() }
    }

    /// Goes through the facts of a label, or of all, from earlier to later; `note` gets the label and the key of each.
    /// Returns false if nobody knows what has changed. The last change may not have been made yet, so the file of its
    /// fact has to be read.
    fn each_fact<'log>(
        &'log self,
        label: Option<&str>,
        selection: Option<&FactSelection>,
        mut note: impl FnMut(&str, Cow<'log, str>, Option<LoggedFact<'log>>),
    ) -> bool {
        let snapshot = usize::try_from(self.header.snapshot).unwrap_or(usize::MAX);
        let Some((snapshot, changes)) = self.lines.split_at_checked(snapshot) else {
            return false;
        };
        let mut prefix = label.map_or(Ok(Vec::new()), serde_json::to_vec);
        if let Ok(label) = prefix.as_mut() {
            label.splice(0..0, *b"{\"label\":");
        }
        let prefix = prefix.unwrap_or_default();
        for text in snapshot.split(|&byte| byte == b'\n') {
            if text.starts_with(&prefix)
                && let Some((name, fact)) = logged(text, selection)
            {
                note(&name.label, name.key, Some(fact));
            }
        }
        let mut last = None;
        for line in changes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let Ok(ChangeLine(_, label, key, kind)) = serde_json::from_slice(line) else {
                return false;
            };
            let asserted = kind.and_then(|kind| kind.asserted);
            let text = asserted.map(|asserted| asserted.fact.get().as_bytes());
            let fact = text.and_then(|text| logged(text, selection));
            let fact = fact.filter(|(name, _)| (&name.label, &name.key) == (&label, &key));
            let fact = fact.map(|(_, fact)| fact);
            note(&label, key.clone(), fact);
            last = Some((label, key));
        }
        if let Some((label, key)) = last {
            note(&label, key, None);
        }
        true
    }
}

fn logged<'log>(
    text: &'log [u8],
    selection: Option<&FactSelection>,
) -> Option<(FactName<'log>, LoggedFact<'log>)> {
    let name: FactName<'_> = serde_json::from_slice(text).ok()?;
    let FactName { label, key, value } = &name;
    let is_selected = selection.is_none_or(|own| own.has(label, key, value));
    Some((name, LoggedFact { text, is_selected }))
}

impl Dataspace {
    /// Returns the facts that hold, as they are in their files, without those that are too long to begin a log with.
    /// Files that an old log tells the content of are not read. Readers check the proofs.
    pub(super) fn snapshot<'log>(
        &self,
        old: Option<&'log ChangeLogContent>,
    ) -> Result<Vec<Cow<'log, [u8]>>, Error> {
        let mut logged = old.map(ChangeLogContent::all_facts).unwrap_or_default();
        let mut facts = Vec::new();
        for folder in entries(&self.path.join("facts"))? {
            if folder.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                continue;
            }
            let name = folder.file_name().and_then(|name| name.to_str());
            let mut known = name.and_then(|name| logged.remove(name)).unwrap_or_default();
            let files = match entries(&folder) {
                Err(Error::Io { error, .. }) if is_blocked(&error) => continue,
                files => files?,
            };
            for path in files {
                let name =
                    path.file_name().and_then(|name| name.to_str()).and_then(fact_file::stem);
                let fact = match name.and_then(|name| known.remove(name)).flatten() {
                    Some(fact) if plain_file::is_there(&path) => Some(Cow::Borrowed(fact.text)),
                    _ => self.text_of(&path)?.map(Cow::Owned),
                };
                facts.extend(fact.filter(|text| text.len() <= MAX_SNAPSHOT_LINE));
            }
        }
        Ok(facts)
    }

    /// Returns the text of the fact in a file; `None` if there is no fact, or one that belongs elsewhere.
    fn text_of(&self, path: &std::path::Path) -> Result<Option<Vec<u8>>, Error> {
        let bytes = match plain_file::read(path, MAX_FACT_LENGTH) {
            Ok(bytes) => bytes,
            Err(error) if is_absent(&error) || is_unusable(&error) => return Ok(None),
            Err(error) => return Err(Error::io("read", path)(error)),
        };
        let fact = serde_json::from_slice::<ProvenFact>(&bytes).ok();
        let in_place = fact.filter(|fact| {
            self.fact(&fact.value.label, &fact.value.key).is_ok_and(|place| place == path)
        });
        Ok(in_place.and_then(|fact| serde_json::to_vec(&fact).ok()))
    }
}
