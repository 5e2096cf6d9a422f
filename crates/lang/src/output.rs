//! The form of a state's answer: a JSON schema, and the transition that follows from an answer's fields.
//!
//! ```yaml
//! output: verdict.schema.json
//! allowed_transitions:
//!   - { tag: goto, target: FIX.md, when: { verdict: revise } }
//!   - { tag: result, when: { verdict: approve } }
//! ```
//!
//! In a state with `output`, the answer is a JSON object, and tags mean nothing in it. The schema is a file beside the
//! prompt, JSON or YAML, or is in the frontmatter itself. Claude Code gets the schema, and the model answers by its
//! tool. The answer is checked here once more; an agent whose answer breaks the schema gets a reminder, as for any
//! other mistake. A scripted or plain text counts if it is only that object, or has it in the only fenced block.
//!
//! The first of the `allowed_transitions` whose `when` holds is taken; without any, the answer is the state's
//! result. The next state has the answer as `{{result}}` and its fields as `{{result.score}}`. A join has the
//! object in `{{results}}`.

mod coverage;
mod key;
mod rule;
mod schema;

use serde_json::Value;

pub use self::coverage::RuleGaps;
pub(crate) use self::key::schema_of;
pub use self::rule::{FieldTest, OutputRule, RuleComparison, ValueTest};
pub use self::rule::{divisions, field, placeholder};
pub use self::schema::OrderedJson;
pub use self::schema::{OutputSchema, SchemaField};
use super::position::SourcePlace;
use super::source::WorkflowSource;
use super::yaml::{self, tree::YamlFileKind};
use raymond_model::id::StateName;
use raymond_model::json_mistake::{mistake, placed_mistake};
use raymond_model::policy::ProtocolViolation;
use raymond_model::transition::{Transition, Variables};

/// The number of characters that are shown of an answer that is no object. Claude Code's own message about such an
/// answer names the path and the rule.
const MAX_SHOWN_CHARS: usize = 400;

/// The variable that has the answer in the state that is entered.
pub const RESULT: &str = "result";

/// A state's output as its frontmatter gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputKey {
    /// The schema.
    pub schema: SchemaOrigin,
    /// The place of that key.
    pub place: SourcePlace,
    /// The rules; the first that holds decides what follows.
    pub rules: Vec<OutputRule>,
}

/// The origin of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaOrigin {
    /// In a file of the workflow's folder.
    File(StateName),
    /// In the frontmatter itself.
    Inline(OrderedJson),
}

/// The required form of a state's answer, and the rules for what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputContract {
    /// The form.
    pub schema: OutputSchema,
    /// The rules; the first that holds decides what follows.
    pub rules: Vec<OutputRule>,
}

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// The file with the mistake, if it is not the prompt.
    pub file: Option<StateName>,
    /// The mistake.
    pub error: yaml::Error,
}

impl OutputKey {
    /// Reads the schema.
    ///
    /// # Errors
    /// [`SchemaError`] if its file cannot be read, or is no schema of an object.
    pub fn load(&self, source: &dyn WorkflowSource) -> Result<OutputContract, SchemaError> {
        let schema = self.schema.load(self.place, source)?;
        Ok(OutputContract { schema, rules: self.rules.clone() })
    }
}

impl SchemaOrigin {
    /// Reads the schema, which is named at a place.
    ///
    /// # Errors
    /// [`SchemaError`] if its file cannot be read, or is no schema of an object.
    pub fn load(
        &self,
        at: SourcePlace,
        source: &dyn WorkflowSource,
    ) -> Result<OutputSchema, SchemaError> {
        let here =
            |message: String| SchemaError { file: None, error: yaml::Error::at(at, message) };
        match self {
            Self::Inline(written) => OutputSchema::new(written.clone()).map_err(here),
            Self::File(name) => {
                let text = source.read(name).map_err(|error| here(error.to_string()))?;
                let read = read(name, &text).and_then(|written| {
                    let wrong = |message| yaml::Error::at(SourcePlace::START, message);
                    OutputSchema::new(written).map_err(wrong)
                });
                read.map_err(|error| SchemaError { file: Some(name.clone()), error })
            }
        }
    }
}

/// Reads a file as JSON or YAML, by its name.
fn read(name: &StateName, text: &str) -> Result<OrderedJson, yaml::Error> {
    if !is_json(name) {
        return yaml::read(YamlFileKind::SCHEMA, text);
    }
    serde_json::from_str(text).map_err(|error| yaml::Error {
        line: error.line() as u64,
        column: error.column() as u64,
        message: format!("this is not valid JSON: {}", mistake(&error)),
    })
}

fn ending(name: &StateName) -> Option<&str> {
    name.as_str().rsplit_once('.').map(|(_, ending)| ending)
}

fn is_json(name: &StateName) -> bool {
    ending(name) == Some("json")
}

/// Checks that a file's name is one that a schema can have.
///
/// # Errors
/// The names that are possible.
pub fn schema_file(name: &str) -> Result<StateName, String> {
    let name = StateName::parse(name).map_err(|error| error.to_string())?;
    if matches!(ending(&name), Some("json" | "yaml" | "yml")) {
        Ok(name)
    } else {
        Err(format!("{name}: a schema is a file NAME.json or NAME.yaml beside the prompt"))
    }
}

impl OutputContract {
    /// Returns the contract of a task: the answer is its result.
    ///
    /// # Errors
    /// The mistake in the schema, which is JSON.
    pub fn of_task(schema: &str) -> Result<Self, String> {
        let written = serde_json::from_str(schema).map_err(|error| placed_mistake(&error))?;
        let transition = Transition::Result {
            payload: String::new(),
            variables: Variables::new(),
            structured: true,
        };
        let rules = vec![OutputRule { when: Vec::new(), transition }];
        Ok(Self { schema: OutputSchema::new(written)?, rules })
    }

    /// Returns the transition that an answer leads to. `structured` is the object that Claude Code has checked, if
    /// it has one; else the object is looked for in the text.
    ///
    /// # Errors
    /// The [`ProtocolViolation`] that the agent may be asked to repair.
    pub fn read(
        &self,
        structured: Option<&str>,
        text: &str,
    ) -> Result<Transition, ProtocolViolation> {
        let wrong = |why: String| ProtocolViolation::Output { why };
        let written = structured.unwrap_or_else(|| object_in(text));
        let answer: Value = serde_json::from_str(written).map_err(|_| {
            let begin: String = written.trim().chars().take(MAX_SHOWN_CHARS).collect();
            wrong(format!("the answer is not one JSON object, it is: {begin:?}"))
        })?;
        self.schema.check(&answer).map_err(|mistakes| {
            wrong(format!("the answer does not match the schema: {mistakes}"))
        })?;
        let rule = self.rules.iter().find(|rule| rule.holds(&answer));
        let rule =
            rule.ok_or_else(|| wrong("no transition of this state is for this answer".into()))?;
        Ok(with_answer(&rule.transition, written))
    }
}

/// Returns the JSON in a text: the only fenced block, if there is one, or the whole text.
fn object_in(text: &str) -> &str {
    const FENCE: &str = "```";
    let text = text.trim();
    let parts: Vec<&str> = text.split(FENCE).collect();
    match parts.as_slice() {
        [_, block, _] if !text.starts_with('{') => {
            block.strip_prefix("json").unwrap_or(block).trim()
        }
        _ => text,
    }
}

/// Returns the transition with the answer: as the payload of a result, or as a variable of the next state.
fn with_answer(transition: &Transition, answer: &str) -> Transition {
    let answer = answer.trim();
    let mut taken = transition.clone();
    match &mut taken {
        Transition::Result { payload, structured, .. } => {
            answer.clone_into(payload);
            *structured = true;
        }
        Transition::Goto { variables, .. }
        | Transition::Reset { variables, .. }
        | Transition::Call { variables, .. }
        | Transition::Function { variables, .. }
        | Transition::Fork { variables, .. }
        | Transition::Ask { variables, .. } => give(variables, answer),
    }
    taken
}

fn give(variables: &mut Variables, answer: &str) {
    variables.insert(RESULT.to_owned(), answer.to_owned());
}

#[cfg(test)]
mod tests;
