//! The expectations of a case, as they are written, and the reader of the values in a file of cases.

use std::ffi::OsStr;
use std::path::{Component, Path};

use serde_json::Value;
use strum::VariantArray;

use crate::cases::keys::{EXPECT, ExpectedStatus, FAILURE, TEXT_RULE, cause_names};
use crate::hint::{for_unknown_key, instead_of};
use crate::manifest::dollars;
use crate::replies::FilePath;
use crate::schema::shape::KeySpec;
use crate::source::SourcePlace;
use crate::text_pattern::TextPattern;
use crate::yaml::{YamlContent, YamlEntry, YamlErrors, YamlValue};
use raymond_model::id::AgentId;
use raymond_model::money::Usd;
use raymond_model::turn::FailureCause;

/// An expectation and its place in the file.
pub type PlacedExpectation = (SourcePlace, Expectation);

/// Something that is expected of a run.
#[derive(Debug, Clone)]
pub enum Expectation {
    /// The states that an agent passes, or all agents together.
    Path(Option<AgentId>, PathOrder, Vec<(SourcePlace, String)>),
    /// The result of an agent.
    Result(AgentId, TextRule),
    /// The number of agents that were ever there.
    Agents(u64),
    /// The most that the run may cost.
    CostAtMost(Usd),
    /// The most turns.
    TurnsAtMost(u64),
    /// A file at the end: whether it is there.
    FileExists(FilePath, bool),
    /// The text of a file at the end.
    FileText(FilePath, TextRule),
    /// The value of a fact; `None` if it does not hold.
    Fact(String, Option<TextPattern>),
    /// An agent fails.
    Failure(ExpectedFailure),
    /// The run ends so.
    Status(ExpectedStatus),
    /// The exit code.
    Exit(u64),
    /// No warning, and no reminder.
    NoWarning,
}

/// An expected failure. What is not said may be anything.
#[derive(Debug, Clone, Default)]
pub struct ExpectedFailure {
    pub agent: Option<AgentId>,
    pub cause: Option<FailureCause>,
    /// The text in its message.
    pub message: Option<TextPattern>,
}

/// The order in which states are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathOrder {
    /// As they are listed.
    Listed,
    /// In any order, and any number of times.
    Any,
}

/// A rule about a text.
#[derive(Debug, Clone)]
pub enum TextRule {
    /// It is this text, or the expression is found in it.
    Is(TextPattern),
    /// This is somewhere in it.
    Contains(TextPattern),
    /// It is JSON that matches a schema.
    Schema(Value),
    /// It is a JSON object with this value at a path.
    Field(String, Value),
    /// It equals the text of a file beside the case.
    Golden(FilePath),
}

/// Reads the expectations of a case.
pub(super) fn read(value: &YamlValue, fields: &mut YamlErrors) -> Vec<PlacedExpectation> {
    let mut found = Vec::new();
    let entries = fields.entries(value, Ok(EXPECT));
    for entry in entries {
        of_key(entry, fields, &mut found);
    }
    let says_end = |(_, expectation): &PlacedExpectation| {
        matches!(
            expectation,
            Expectation::Status(_) | Expectation::Exit(_) | Expectation::Failure(_)
        )
    };
    if !found.iter().any(says_end) {
        found.push((value.at, Expectation::Status(ExpectedStatus::Completed)));
    }
    found
}

fn of_key(entry: &YamlEntry, fields: &mut YamlErrors, found: &mut Vec<PlacedExpectation>) {
    let value = &entry.value;
    let mut add = |read: Option<Expectation>| found.extend(read.map(|read| (value.at, read)));
    match &*entry.key {
        "path" => paths(value, fields, found),
        "result" => {
            let rules = text_rules(value, fields).into_iter();
            found.extend(rules.map(|(at, rule)| (at, Expectation::Result(AgentId::main(), rule))));
        }
        "results" => {
            for entry in fields.entries(value, Err("main")) {
                let Some(agent) = agent(entry, fields) else { continue };
                let rules = text_rules(&entry.value, fields).into_iter();
                found
                    .extend(rules.map(|(at, rule)| (at, Expectation::Result(agent.clone(), rule))));
            }
        }
        "agents" => add(fields.count(value).map(Expectation::Agents)),
        "turns_at_most" => add(fields.count(value).map(Expectation::TurnsAtMost)),
        "cost_at_most" => add(fields.read(value, dollars).map(Expectation::CostAtMost)),
        "exit" => {
            let code = fields.count(value);
            if code.is_some_and(|code| code > u64::from(u8::MAX)) {
                fields.wrong(value.at, "an exit code is at most 255");
            }
            add(code.map(Expectation::Exit));
        }
        "status" => add(fields.read(value, status).map(Expectation::Status)),
        "no_warning" => {
            let wanted = fields.boolean(value).unwrap_or_default();
            add(wanted.then_some(Expectation::NoWarning));
        }
        "failure" => add(failure(value, fields).map(Expectation::Failure)),
        "files" => files(value, fields, found),
        "facts" => {
            for entry in fields.entries(value, Err("LABEL")) {
                let pattern =
                    (!entry.value.is_null()).then(|| fields.read(&entry.value, TextPattern::parse));
                if let Some(None) = pattern {
                    continue;
                }
                let fact = Expectation::Fact(entry.key.to_string(), pattern.flatten());
                found.push((entry.at, fact));
            }
        }
        _ => {}
    }
}

fn agent(entry: &YamlEntry, fields: &mut YamlErrors) -> Option<AgentId> {
    fields.keep_at(entry.at, AgentId::parse(&entry.key).map_err(|error| error.to_string()))
}

/// Reads a list of states, `set` and a list, or either for each of several agents.
fn paths(value: &YamlValue, fields: &mut YamlErrors, found: &mut Vec<PlacedExpectation>) {
    if let YamlContent::Map(entries) = &value.value
        && !entries.iter().any(|entry| &*entry.key == "set")
    {
        for entry in entries.iter() {
            let Some(agent) = agent(entry, fields) else { continue };
            if let Some((order, states)) = path(&entry.value, fields) {
                found.push((entry.value.at, Expectation::Path(Some(agent), order, states)));
            }
        }
        return;
    }
    if let Some((order, states)) = path(value, fields) {
        // A set without an agent is that of all.
        let agent = (order == PathOrder::Listed).then(AgentId::main);
        found.push((value.at, Expectation::Path(agent, order, states)));
    }
}

type ReadPath = (PathOrder, Vec<(SourcePlace, String)>);

fn path(value: &YamlValue, fields: &mut YamlErrors) -> Option<ReadPath> {
    let (order, list) = match &value.value {
        YamlContent::List(_) => (PathOrder::Listed, value),
        YamlContent::Map(entries) if entries.len() == 1 && &*entries[0].key == "set" => {
            (PathOrder::Any, &entries[0].value)
        }
        _ => {
            fields.wrong(
                value.at,
                format!(
                    "a list of states is expected here, or `set:` and a list, not {}",
                    value.sort()
                ),
            );
            return None;
        }
    };
    let mut states = Vec::new();
    for state in items(list) {
        states.push((state.at, fields.text(state)?));
    }
    Some((order, states))
}

fn text_rules(value: &YamlValue, fields: &mut YamlErrors) -> Vec<(SourcePlace, TextRule)> {
    if !matches!(value.value, YamlContent::Map(_)) {
        let pattern = fields.read(value, TextPattern::parse);
        return pattern.map(|pattern| (value.at, TextRule::Is(pattern))).into_iter().collect();
    }
    let mut rules = Vec::new();
    for entry in fields.entries(value, Ok(TEXT_RULE)) {
        let (at, value) = (entry.value.at, &entry.value);
        let rule = match &*entry.key {
            "contains" => fields.read(value, TextPattern::parse).map(TextRule::Contains),
            "golden" => fields.read(value, golden).map(TextRule::Golden),
            "schema" => {
                let schema = value.json();
                let checked = jsonschema::draft7::new(&schema).map(drop);
                let checked =
                    checked.map_err(|error| format!("this is not a JSON schema: {error}"));
                fields.keep_at(at, checked).map(|()| TextRule::Schema(schema))
            }
            "fields" => {
                for field in fields.entries(value, Err("NAME")) {
                    let rule = TextRule::Field(field.key.to_string(), field.value.json());
                    rules.push((field.at, rule));
                }
                None
            }
            _ => None,
        };
        rules.extend(rule.map(|rule| (at, rule)));
    }
    rules
}

fn files(value: &YamlValue, fields: &mut YamlErrors, found: &mut Vec<PlacedExpectation>) {
    for entry in fields.entries(value, Err("notes.txt")) {
        let Some(path) = fields.keep_at(entry.at, FilePath::parse(&entry.key)) else { continue };
        if let YamlContent::Bool(exists) = entry.value.value {
            found.push((entry.at, Expectation::FileExists(path, exists)));
            continue;
        }
        let rules = text_rules(&entry.value, fields).into_iter();
        found.extend(rules.map(|(at, rule)| (at, Expectation::FileText(path.clone(), rule))));
    }
}

fn failure(value: &YamlValue, fields: &mut YamlErrors) -> Option<ExpectedFailure> {
    if !matches!(value.value, YamlContent::Map(_)) {
        let cause = Some(fields.read(value, cause)?);
        return Some(ExpectedFailure { cause, ..ExpectedFailure::default() });
    }
    let mut failure = ExpectedFailure::default();
    for entry in fields.entries(value, Ok(FAILURE)) {
        match &*entry.key {
            "agent" => {
                let parse = |text: &str| AgentId::parse(text).map_err(|error| error.to_string());
                failure.agent = fields.read(&entry.value, parse);
            }
            "cause" => failure.cause = fields.read(&entry.value, cause),
            "message" => failure.message = fields.read(&entry.value, TextPattern::parse),
            _ => {}
        }
    }
    Some(failure)
}

fn cause(text: &str) -> Result<FailureCause, String> {
    let names = cause_names();
    serde_json::from_value(Value::from(text))
        .map_err(|_| unknown(text, "cause of a failure", names.iter().map(String::as_str)))
}

fn status(text: &str) -> Result<ExpectedStatus, String> {
    let names = ExpectedStatus::VARIANTS.iter().map(<&str>::from);
    let mut statuses = ExpectedStatus::VARIANTS.iter().zip(names.clone());
    let status = statuses.find(|(_, name)| *name == text).map(|(status, _)| *status);
    status.ok_or_else(|| unknown(text, "status", names))
}

fn unknown<'names>(
    text: &str,
    what: &str,
    names: impl Iterator<Item = &'names str> + Clone,
) -> String {
    format!("`{text}` is not a known {what}; {}", instead_of(text, names, "write one of"))
}

/// Reads the path of a golden: no file of cases, which it would replace.
fn golden(text: &str) -> Result<FilePath, String> {
    let path = below_the_case(text)?;
    let is_name = |part: &Component| matches!(part, Component::Normal(_));
    let is_in_folder = Path::new(text).components().filter(is_name).count() == 1;
    let ending = Path::new(text).extension().and_then(OsStr::to_str);
    if is_in_folder && ending.is_some_and(|ending| ["yaml", "yml"].contains(&ending)) {
        return Err(format!(
            "`{text}` would be a file of cases; put the golden in a separate folder, such as goldens/{text}"
        ));
    }
    Ok(path)
}

/// Reads the values of a file of cases from a tree, and keeps every mistake with its place.
impl YamlErrors {
    /// Returns the value, or keeps the mistake at its place.
    pub(super) fn keep_at<T>(&mut self, at: SourcePlace, read: Result<T, String>) -> Option<T> {
        read.map_err(|why| self.wrong(at, why)).ok()
    }

    /// Returns the entries of a mapping. Unknown keys are mistakes, if the known ones are given, and not an example of
    /// a key.
    pub(super) fn entries<'tree>(
        &mut self,
        value: &'tree YamlValue,
        known: Result<&[KeySpec], &str>,
    ) -> &'tree [YamlEntry] {
        let YamlContent::Map(entries) = &value.value else {
            let example = known.map_or_else(|example| example, |known| known[0].name);
            let sort = value.sort();
            self.wrong(
                value.at,
                format!("a mapping is expected here, such as `{example}: …`, not {sort}"),
            );
            return &[];
        };
        for entry in entries.iter() {
            let Ok(known) = known else { continue };
            let names = || known.iter().map(|key| key.name);
            if names().any(|name| name == &*entry.key) {
                continue;
            }
            let known: Vec<&str> = names().collect();
            let hint = for_unknown_key(&entry.key, &known);
            self.wrong(entry.at, format!("unknown key `{}`; {hint}", entry.key));
        }
        entries
    }

    /// Returns a text; a number or a boolean is one as it is written.
    pub(super) fn text(&mut self, value: &YamlValue) -> Option<String> {
        let text = value.as_written().map(str::to_owned);
        if text.is_none() {
            self.wrong(value.at, format!("expected text here, not {}", value.sort()));
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
        self.keep_at(value.at, read(&text))
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
