//! Test cases of workflows: what a run is given, and what is expected of it. Pure.
//!
//! A file holds one case, or a list of them below `cases`. Every expectation keeps its place, so that a failure
//! names the line that it breaks.

use std::collections::BTreeMap;

use raymond_model::time::millis;
use serde_json::Value;

pub use self::compare::{CaseMismatch, PathDifference, mismatches};
pub use self::expectation::{Expectation, PathOrder, PlacedExpectation, TextRule};
pub(crate) use self::keys::file_shape;
pub use self::keys::{CasePermission, ExpectedStatus};
use crate::cases::expectation::{below_the_case, items};
use crate::cases::keys::{CASE, FACT, SETTINGS};
use crate::replies::{FilePath, ScriptedReplies};
use crate::schema::shape::KeySpec;
use crate::source::SourcePlace;
use crate::yaml::tree::YamlFileKind;
use crate::yaml::{Error, YamlContent, YamlEntry, YamlErrors, YamlValue, parse};

mod compare;
mod expectation;
mod keys;

/// The time after which a case fails, in milliseconds, if it does not say.
const TIME_LIMIT_MS: u64 = 60_000;

/// A case.
#[derive(Debug, Clone)]
pub struct TestCase {
    pub name: String,
    /// Its place.
    pub at: SourcePlace,
    /// The state that the run begins with, with its place; `None` for the workflow's first.
    pub entry: Option<(SourcePlace, String)>,
    /// The text of `{{input}}`.
    pub input: Option<String>,
    /// Values for placeholders.
    pub variables: Vec<(String, String)>,
    /// Answers to questions, in their order.
    pub answers: Vec<(String, String)>,
    /// Facts that hold when the run begins.
    pub facts: Vec<CaseFact>,
    /// The files in the working directory.
    pub files: Vec<(FilePath, String)>,
    /// True if the working directory is a git repository.
    pub git: bool,
    pub replies: CaseReplies,
    /// The options of the run.
    pub settings: Vec<CaseSetting>,
    /// The time after which the case fails, in milliseconds.
    pub time_limit_ms: u64,
    /// The expectations.
    pub expected: Vec<PlacedExpectation>,
}

/// A fact that holds when the run of a case begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFact {
    pub label: String,
    /// The key; `None` for that of the run.
    pub key: Option<String>,
    pub value: String,
}

/// The replies of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseReplies {
    /// Those of the workflow.
    Workflow,
    /// Those of a file beside the case.
    File(SourcePlace, FilePath),
    /// Keys of the case, each with its place and its list as JSON, in place of those of the workflow.
    Keys(Vec<(SourcePlace, String, String)>),
    /// Those of a cassette.
    Cassette(CaseCassette),
}

/// A cassette that answers the prompts of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseCassette {
    /// The place of its path.
    pub at: SourcePlace,
    /// Its directory, beside the case.
    pub dir: FilePath,
    /// True if the agent fails whose prompt is not the recorded one.
    pub is_strict: bool,
}

/// Reads a file of cases. `stem` names a case that has no name.
///
/// # Errors
/// All mistakes, in the order of their places.
pub fn read(stem: &str, text: &str) -> Result<Vec<TestCase>, Vec<Error>> {
    let mut fields = YamlErrors::default();
    let mut cases = Vec::new();
    match parse(YamlFileKind::CASES, text, &mut fields).filter(|root| !root.is_null()) {
        Some(root) => of_root(stem, &root, &mut fields, &mut cases),
        None if fields.is_empty() => {
            fields.wrong(
                SourcePlace::START,
                "this file has no case; write what it expects: `expect:`",
            );
        }
        None => {}
    }
    let mut names: Vec<&str> = Vec::new();
    for TestCase { name, at, .. } in &cases {
        if names.contains(&name.as_str()) {
            fields.wrong(*at, format!("a second case has the name `{name}`; give each its own"));
        }
        names.push(name);
    }
    if fields.is_empty() {
        return Ok(cases);
    }
    let mut errors = fields.all().to_vec();
    errors.sort_by_key(|error| error.at);
    Err(errors)
}

fn of_root(stem: &str, root: &YamlValue, fields: &mut YamlErrors, cases: &mut Vec<TestCase>) {
    const LIST: KeySpec =
        KeySpec { name: "cases", doc: "Several cases.", shape: || Value::Bool(true) };
    let listed = match &root.value {
        YamlContent::Map(entries) => {
            entries.iter().find(|entry| ["cases", "tests"].contains(&&*entry.key))
        }
        YamlContent::List(_) => {
            return fields.wrong(root.at, "write `cases:` above this list, and indent it");
        }
        _ => None,
    };
    let Some(listed) = listed else {
        cases.push(case(stem, root, fields));
        return;
    };
    fields.entries(root, Ok(&[LIST]));
    let items = items(&listed.value);
    if items.is_empty() {
        fields.wrong(listed.at, "this list has no case; write what it expects: `expect:`");
    }
    for (item, number) in items.iter().zip(1..) {
        let name = if items.len() == 1 { stem.to_owned() } else { format!("{stem} {number}") };
        cases.push(case(&name, item, fields));
    }
}

fn case(name: &str, value: &YamlValue, fields: &mut YamlErrors) -> TestCase {
    let mut case = TestCase {
        name: name.to_owned(),
        at: value.at,
        entry: None,
        input: None,
        variables: Vec::new(),
        answers: Vec::new(),
        facts: Vec::new(),
        files: Vec::new(),
        git: false,
        replies: CaseReplies::Workflow,
        settings: Vec::new(),
        time_limit_ms: TIME_LIMIT_MS,
        expected: Vec::new(),
    };
    let mut expects = false;
    let mut written = WrittenAnswers::default();
    for entry in fields.entries(value, Ok(CASE)) {
        let value = &entry.value;
        match &*entry.key {
            "name" => case.name = fields.text(value).unwrap_or_default(),
            "entry" => {
                let entry = fields.read(value, |text| {
                    FilePath::parse_below(text, "the workflow's folder").map(|_| text.to_owned())
                });
                case.entry = entry.map(|entry| (value.at, entry));
            }
            "input" => case.input = fields.text(value),
            "variables" => case.variables = texts(value, fields),
            "answers" => case.answers = lists(value, fields),
            "facts" => case.facts = facts(value, fields),
            "files" => case.files = files(value, fields),
            "git" => case.git = fields.boolean(value).unwrap_or_default(),
            "replies" => written.replies = Some((entry.at, replies(value, fields))),
            "cassette" => {
                let dir = fields.read(value, below_the_case);
                written.cassette = dir.map(|dir| (entry.at, value.at, dir));
            }
            "strict_replay" => {
                written.strict = fields.boolean(value).map(|is_strict| (entry.at, is_strict));
            }
            "settings" => case.settings = settings(value, fields),
            "time_limit" => case.time_limit_ms = fields.read(value, millis).unwrap_or_default(),
            "expect" => {
                expects = true;
                case.expected = expectation::read(value, fields);
            }
            _ => {}
        }
    }
    case.replies = written.chosen(fields);
    if !expects && matches!(value.value, YamlContent::Map(_)) {
        fields.wrong(
            value.at,
            "the key `expect` is missing here; a case without it does not test anything",
        );
    }
    case
}

/// The keys of a case that say where its answers come from, with their places.
#[derive(Debug, Default)]
struct WrittenAnswers {
    replies: Option<(SourcePlace, CaseReplies)>,
    /// The place of the key, that of the path, and the path.
    cassette: Option<(SourcePlace, SourcePlace, FilePath)>,
    strict: Option<(SourcePlace, bool)>,
}

impl WrittenAnswers {
    /// Returns the one source of the answers. Keys that contradict each other are mistakes.
    fn chosen(self, fields: &mut YamlErrors) -> CaseReplies {
        let Some((key_at, at, dir)) = self.cassette else {
            if let Some((at, _)) = self.strict {
                fields.wrong(
                    at,
                    "`strict_replay` is about a cassette; write `cassette: DIR` beside it, or leave it out",
                );
            }
            return self.replies.map_or(CaseReplies::Workflow, |(_, replies)| replies);
        };
        if self.replies.is_some() {
            fields.wrong(
                key_at,
                "a case has `replies` or a `cassette`, not both; leave one of them out",
            );
        }
        let is_strict = self.strict.is_some_and(|(_, is_strict)| is_strict);
        CaseReplies::Cassette(CaseCassette { at, dir, is_strict })
    }
}

fn texts(value: &YamlValue, fields: &mut YamlErrors) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for entry in fields.entries(value, Err("NAME")) {
        texts.extend(fields.text(&entry.value).map(|text| (entry.key.to_string(), text)));
    }
    texts
}

fn lists(value: &YamlValue, fields: &mut YamlErrors) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for entry in fields.entries(value, Err("NAME")) {
        for item in items(&entry.value) {
            texts.extend(fields.text(item).map(|text| (entry.key.to_string(), text)));
        }
    }
    texts
}

fn files(value: &YamlValue, fields: &mut YamlErrors) -> Vec<(FilePath, String)> {
    let mut files = Vec::new();
    for entry in fields.entries(value, Err("notes.txt")) {
        let path = fields.keep_at(entry.at, FilePath::parse(&entry.key));
        let text = fields.text(&entry.value);
        files.extend(path.zip(text));
    }
    files
}

fn facts(value: &YamlValue, fields: &mut YamlErrors) -> Vec<CaseFact> {
    let mut facts = Vec::new();
    for entry in fields.entries(value, Err("LABEL")) {
        let label = entry.key.to_string();
        for item in items(&entry.value) {
            let mut fact = CaseFact { label: label.clone(), key: None, value: String::new() };
            if let YamlContent::Map(_) = &item.value {
                for part in fields.entries(item, Ok(FACT)) {
                    let text = fields.text(&part.value);
                    match &*part.key {
                        "key" => fact.key = text,
                        _ => fact.value = text.unwrap_or_default(),
                    }
                }
            } else {
                fact.value = fields.text(item).unwrap_or_default();
            }
            facts.push(fact);
        }
    }
    facts
}

fn replies(value: &YamlValue, fields: &mut YamlErrors) -> CaseReplies {
    let YamlContent::Map(entries) = &value.value else {
        let file = fields.read(value, below_the_case);
        return file.map_or(CaseReplies::Workflow, |file| CaseReplies::File(value.at, file));
    };
    ScriptedReplies::of_tree(value, fields);
    let list = |entry: &YamlEntry| (entry.at, entry.key.to_string(), entry.value.written_json());
    let keys = entries.iter().map(list);
    CaseReplies::Keys(keys.collect())
}

fn settings(value: &YamlValue, fields: &mut YamlErrors) -> Vec<CaseSetting> {
    let known: Vec<KeySpec> = SETTINGS
        .iter()
        .map(|(name, _)| KeySpec { name, doc: "", shape: || Value::Bool(true) })
        .collect();
    let mut settings = Vec::new();
    for entry in fields.entries(value, Ok(&known)) {
        for item in items(&entry.value) {
            let (name, at) = (entry.key.to_string(), item.at);
            if let YamlContent::Bool(is_on) = item.value {
                settings.extend(is_on.then_some(CaseSetting { name, at, value: None }));
            } else {
                let text = fields.text(item);
                settings.extend(text.map(|text| CaseSetting { name, at, value: Some(text) }));
            }
        }
    }
    settings
}

/// A setting of a case: an option of `raymond run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseSetting {
    /// Its name, with underscores.
    pub name: String,
    /// The place of its value.
    pub at: SourcePlace,
    /// Its value; `None` for a switch.
    pub value: Option<String>,
}

impl CaseSetting {
    /// Returns what the setting permits, if it is a permission.
    pub fn permission(&self) -> Option<CasePermission> {
        SETTINGS.iter().find(|(name, _)| *name == self.name).and_then(|(_, permission)| *permission)
    }
}

/// The texts of files that expectations are about, by path: of the working directory at the end, and of the files
/// beside the case.
#[derive(Debug, Clone, Default)]
pub struct CaseTexts {
    /// The files of the working directory that are there.
    pub files: BTreeMap<String, String>,
    /// The files beside the case that are there.
    pub goldens: BTreeMap<String, String>,
    /// The facts at the end, by label.
    pub facts: BTreeMap<String, Vec<String>>,
}
