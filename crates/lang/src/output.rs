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

use std::borrow::Cow;
use std::fmt;

use raymond_model::id::StateName;
use raymond_model::json_mistake::{ValuePath, mistake, placed_mistake};
use raymond_model::policy::ProtocolViolation;
use raymond_model::transition::{Transition, Variables};
use serde_json::{Number, Value};

pub use self::schema::{OrderedJson, OutputSchema, SchemaField};
use super::source::{SourcePlace, WorkflowSource};
use super::yaml;
use super::yaml::tree::YamlFileKind;
pub use crate::output::schema::RuleGaps;
use crate::yaml::{YamlContent, YamlValue};

mod schema;

/// The number of characters shown of an answer that is not an object. Claude Code's own message about such an answer
/// names the path and the rule.
const MAX_SHOWN_CHARS: usize = 400;

/// The variable that has the answer in the state that is entered.
pub const RESULT: &str = "result";

/// A state's output as its frontmatter gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputKey {
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
    /// [`SchemaError`] if its file cannot be read, or is not a schema of an object.
    pub fn load(&self, source: &dyn WorkflowSource) -> Result<OutputContract, SchemaError> {
        let schema = self.schema.load(self.place, source)?;
        Ok(OutputContract { schema, rules: self.rules.clone() })
    }
}

impl SchemaOrigin {
    /// Reads an `output` key: the name of a file, or the schema itself.
    ///
    /// # Errors
    /// [`yaml::Error`] if it is neither.
    pub(crate) fn of_tree(output: &YamlValue) -> Result<Self, yaml::Error> {
        match &output.value {
            YamlContent::Text(name) => schema_file(&name.text).map(Self::File),
            YamlContent::Map(_) => return yaml::from_tree(output).map(Self::Inline),
            _ => Err(format!(
                "`output` is a JSON schema: a file such as verdict.schema.json, or a mapping with `type: object`, not {}",
                output.sort()
            )),
        }
        .map_err(|why| yaml::Error::new(output.at, why))
    }

    /// Reads the schema, which is named at a place.
    ///
    /// # Errors
    /// [`SchemaError`] if its file cannot be read, or is not a schema of an object.
    pub fn load(
        &self,
        at: SourcePlace,
        source: &dyn WorkflowSource,
    ) -> Result<OutputSchema, SchemaError> {
        let here =
            |message: String| SchemaError { file: None, error: yaml::Error::new(at, message) };
        match self {
            Self::Inline(written) => OutputSchema::new(written.clone()).map_err(here),
            Self::File(name) => {
                let text = source.read(name).map_err(|error| here(error.to_string()))?;
                let read = read(name, &text).and_then(|written| {
                    let wrong = |message| yaml::Error::new(SourcePlace::START, message);
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
    serde_json::from_str(text).map_err(|error| {
        let at = SourcePlace { line: error.line() as u64, column: error.column() as u64 };
        yaml::Error::new(at, format!("this is not valid JSON: {}", mistake(&error)))
    })
}

fn ending(name: &StateName) -> Option<&str> {
    name.as_str().rsplit_once('.').map(|(_, ending)| ending)
}

fn is_json(name: &StateName) -> bool {
    ending(name) == Some("json")
}

/// Checks that a schema can have a file of this name.
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
        let wrong = |why: String| ProtocolViolation::Answer { why };
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
    if let Transition::Result { payload, structured, .. } = &mut taken {
        answer.clone_into(payload);
        *structured = true;
    } else {
        taken.variables_mut().insert(RESULT.to_owned(), answer.to_owned());
    }
    taken
}

// Reads an `output` key from a tree that knows its places: that of a graph's node, or of a program's role.

/// Reads the schema that stands in a node or is named there.
///
/// # Errors
/// The mistake, with the file and the place in it if it is not where the schema is named.
pub(crate) fn schema_of(
    node: &YamlValue,
    source: &dyn WorkflowSource,
) -> Result<OutputSchema, String> {
    let origin = SchemaOrigin::of_tree(node).map_err(|error| error.message)?;
    origin.load(node.at, source).map_err(|SchemaError { file, error }| match file {
        Some(file) => format!("{}:{error}", source.path(&file)),
        None => error.message,
    })
}

// The rules by which an answer's fields decide what follows: `when: { verdict: approve, score: ">= 7" }`.
//
// All conditions of a rule have to hold. A value has to be equal, a list has to contain it, and a text such as `>= 7`
// compares numbers; a missing field meets no condition. The first rule that holds is taken, and one without `when`
// always holds.

/// A rule: the conditions on an answer, and the transition that follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputRule {
    /// The conditions, all of which have to hold; empty if the rule always holds.
    pub when: Vec<FieldTest>,
    pub transition: Transition,
}

/// A condition on a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldTest {
    /// The path of the field in the answer.
    pub path: String,
    /// The accepted values.
    pub accepts: ValueTest,
}

/// The values that a test accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueTest {
    /// One of these values.
    OneOf(Vec<Value>),
    /// A number that compares so with another.
    Compares(RuleComparison, Number),
}

/// A comparison of a number with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleComparison {
    /// The number is less.
    Less,
    /// The number is less, or equal.
    AtMost,
    /// The number is greater, or equal.
    AtLeast,
    /// The number is greater.
    Greater,
}

impl RuleComparison {
    /// The operators; the longer ones first, because the shorter ones are their prefixes.
    const WRITTEN: [(&'static str, Self); 4] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("<", Self::Less), (">", Self::Greater)];

    fn holds(self, value: f64, other: f64) -> bool {
        match self {
            Self::Less => value < other,
            Self::AtMost => value <= other,
            Self::AtLeast => value >= other,
            Self::Greater => value > other,
        }
    }
}

impl OutputRule {
    /// Reads the value of `when`.
    ///
    /// # Errors
    /// The mistake in it.
    pub fn tests(when: &Value) -> Result<Vec<FieldTest>, String> {
        let Value::Object(fields) = when else {
            return Err("`when` names fields of the answer: { when: { verdict: approve } }".into());
        };
        let test = |(path, value): (&String, &Value)| {
            Ok(FieldTest { path: path.clone(), accepts: ValueTest::read(path, value)? })
        };
        fields.iter().map(test).collect()
    }

    /// Returns whether the rule holds for an answer.
    pub fn holds(&self, answer: &Value) -> bool {
        let holds = |test: &FieldTest| {
            field(answer, &test.path).is_some_and(|value| test.accepts.accepts(value))
        };
        self.when.iter().all(holds)
    }
}

impl ValueTest {
    fn read(path: &str, value: &Value) -> Result<Self, String> {
        match value {
            Value::Object(_) => Err(format!(
                "a field of a field is named by its path, such as `{path}.name`, and compared with a value or a list of them"
            )),
            Value::Array(list) if list.is_empty() => {
                Err(format!("this list is empty, so `{path}` is never in it"))
            }
            Value::Array(list) => Ok(Self::OneOf(list.clone())),
            Value::String(text) => match Self::comparison(text) {
                Some(comparison) => Ok(comparison),
                None if is_like_comparison(text) => Err(format!(
                    "`{text}` is not a comparison; write a value that the field is equal to, a list of them, or a number after one of <, <=, >, >="
                )),
                None => Ok(Self::OneOf(vec![Value::String(text.clone())])),
            },
            other => Ok(Self::OneOf(vec![other.clone()])),
        }
    }

    fn comparison(text: &str) -> Option<Self> {
        let (written, comparison) =
            RuleComparison::WRITTEN.into_iter().find(|(written, _)| text.starts_with(written))?;
        let number = serde_json::from_str(text[written.len()..].trim()).ok()?;
        Some(Self::Compares(comparison, number))
    }

    /// Returns whether the test accepts a value.
    pub fn accepts(&self, value: &Value) -> bool {
        match self {
            Self::OneOf(values) => values.iter().any(|known| is_same(known, value)),
            Self::Compares(comparison, number) => match (value.as_f64(), number.as_f64()) {
                (Some(value), Some(other)) => comparison.holds(value, other),
                _ => false,
            },
        }
    }
}

/// Returns whether a text was probably meant to compare a number: signs, and a number behind them.
fn is_like_comparison(text: &str) -> bool {
    let rest = text.trim_start_matches(['=', '<', '>', '!']).trim();
    let is_operator = rest.len() < text.trim().len();
    is_operator
        && (rest.parse::<f64>().is_ok()
            || text.trim().starts_with("!=")
            || text.trim().starts_with("=="))
}

/// Returns whether two values are the same; 1 and 1.0 are.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.total_cmp(&right).is_eq(),
        _ => left == right,
    }
}

impl fmt::Display for FieldTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.accepts {
            ValueTest::OneOf(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                write!(f, "{}: {}", self.path, values.join(" or "))
            }
            ValueTest::Compares(comparison, number) => {
                let written =
                    RuleComparison::WRITTEN.into_iter().find(|(_, known)| known == comparison);
                let written = written.map_or("", |(written, _)| written);
                write!(f, "{} {written} {number}", self.path)
            }
        }
    }
}

// Fields of a JSON value by their path: `score`, `author.name`, `items[0].title`.

/// Returns the field of a value at a path; a number is an index of a list.
pub fn field<'value>(value: &'value Value, path: &str) -> Option<&'value Value> {
    ValuePath::parse_or_names(path).value_in(value)
}

/// Returns the ways to divide the name of a placeholder into a variable and a path in its value, the longest variable
/// first.
pub fn divisions(name: &str) -> impl DoubleEndedIterator<Item = (&str, &str)> {
    let ends = name.rmatch_indices(['.', '[']);
    ends.map(|(at, sign)| (&name[..at], &name[if sign == "." { at + 1 } else { at }..]))
}

/// Returns the value of a placeholder: the variable of that name, or else the field of a variable that is JSON. A
/// text is inserted as it is, anything else as JSON.
pub fn placeholder<'values>(values: &'values Variables, name: &str) -> Option<Cow<'values, str>> {
    if let Some(value) = values.get(name) {
        return Some(Cow::Borrowed(value));
    }
    divisions(name).find_map(|(variable, path)| {
        let value: Value = serde_json::from_str(values.get(variable)?).ok()?;
        match field(&value, path)? {
            Value::String(text) => Some(Cow::Owned(text.clone())),
            other => Some(Cow::Owned(other.to_string())),
        }
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod rule_tests {
    use serde_json::json;

    use super::*;
    use raymond_model::transition::Variables;

    fn rule(when: &Value) -> Result<OutputRule, String> {
        let transition = Transition::Result {
            payload: String::new(),
            variables: Variables::new(),
            structured: true,
        };
        Ok(OutputRule { when: OutputRule::tests(when)?, transition })
    }

    #[test]
    fn rule_holds_if_all_its_fields_match() {
        let answer = json!({"verdict": "approve", "score": 7, "sure": true, "by": {"name": "A"}, "none": null});
        let table = [
            (json!({}), true),
            (json!({"verdict": "approve"}), true),
            (json!({"verdict": "revise"}), false),
            (json!({"verdict": ["revise", "approve"]}), true),
            (json!({"verdict": "approve", "sure": false}), false),
            (json!({"by.name": "A", "sure": true}), true),
            (json!({"score": 7.0}), true),
            (json!({"score": "7"}), false),
            (json!({"score": ">= 7"}), true),
            (json!({"score": ">7"}), false),
            (json!({"score": "<= 7"}), true),
            (json!({"score": "< 7.5"}), true),
            (json!({"verdict": ">= 7"}), false),
            (json!({"none": null}), true),
            (json!({"absent": null}), false),
        ];
        for (when, holds) in table {
            assert_eq!(rule(&when).expect("a rule").holds(&answer), holds, "{when}");
        }
    }

    #[test]
    fn invalid_when_is_error_with_reason() {
        let table = [
            (json!("approve"), "`when` names fields of the answer"),
            (json!({"by": {"name": "A"}}), "such as `by.name`"),
            (json!({"verdict": []}), "so `verdict` is never in it"),
            (json!({"score": "=> 7"}), "or a number after one of <, <=, >, >="),
            (json!({"score": "==7"}), "`==7` is not a comparison"),
        ];
        for (when, words) in table {
            let why = rule(&when).expect_err("wrong");
            assert!(why.contains(words), "{why}");
        }
    }
}

#[cfg(test)]
mod path_tests {
    use super::*;

    #[test]
    fn placeholder_resolves_to_variable_or_its_json_field() {
        let result = r#"{"score":7,"why":"a \"b\"","at":{"line":3},"tags":["x",{"y":true}]}"#;
        let values: Variables = [
            ("result", result),
            ("plain", "7"),
            ("text", "no JSON"),
            ("a.b", "own"),
            ("a", r#"{"b":"field","c":1,"d.e":["x"],"a b|":2}"#),
            ("results", r#"[{"status":"ok"},{"status":"last"}]"#),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        let table = [
            ("result", Some(result)),
            ("result.score", Some("7")),
            ("result.why", Some("a \"b\"")),
            ("result.at", Some("{\"line\":3}")),
            ("result.at.line", Some("3")),
            ("result.tags.0", Some("x")),
            ("result.tags.1.y", Some("true")),
            ("result.tags.2", None),
            ("result.nothing", None),
            ("result.score.deeper", None),
            ("result.", None),
            ("plain.x", None),
            ("text.x", None),
            ("nobody.x", None),
            ("a.b", Some("own")),
            ("a.c", Some("1")),
            ("result.tags[0]", Some("x")),
            ("result.tags[-1].y", Some("true")),
            ("result.tags[-3]", None),
            ("result[\"at\"]['line']", Some("3")),
            ("results[-1].status", Some("last")),
            ("results.0.status", Some("ok")),
            ("a[\"d.e\"][0]", Some("x")),
            ("a.a b|", Some("2")),
            ("result.tags[x]", None),
        ];
        for (name, value) in table {
            assert_eq!(placeholder(&values, name).as_deref(), value, "{name}");
        }
    }
}
