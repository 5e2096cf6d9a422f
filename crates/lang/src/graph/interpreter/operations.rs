//! Fills the parameters of operations, and converts them to the kinds that the operations take.
//!
//! A text that is one `${…}` has the type of its value. Where a text is wanted, a number or a boolean becomes one;
//! where a number or a boolean is wanted, it is read from a text.

use serde_json::{Map, Number, Value};

use super::GraphInterpreter;
use crate::expression::{ValueTemplate, as_text, truth};
use crate::graph::checked_graph::OperationTemplate;
use crate::graph::vocabulary::parameter_kind;
use raymond_model::graph_types::{PACKS, ParameterKind};
use raymond_model::operation::Operation;

/// The parameters of a command that say what a repetition of it means.
const REPETITION: [&str; 3] = ["unless", "idempotent", "once"];

impl GraphInterpreter<'_> {
    /// Returns the operation with its parameters filled in.
    pub(super) fn operation(&mut self, work: &OperationTemplate) -> Result<Operation, String> {
        let Value::Object(mut parameters) = self.fill(&work.parameters)? else {
            return Err("its parameters are not a map".to_owned());
        };
        if let Some(class) = work.own {
            return Ok(Operation::Own { name: work.kind.clone(), parameters, class });
        }
        let empty = |key: &&&str| {
            parameters.get(**key).is_some_and(|value| {
                value.is_null() || as_text(value).is_some_and(|text| text.trim().is_empty())
            })
        };
        if let Some(key) = PACKS.iter().flat_map(|pack| pack.filled).find(empty) {
            return Err(format!("`{key}` is empty"));
        }
        for (name, value) in &mut parameters {
            let kind = parameter_kind(&work.kind, name).unwrap_or(ParameterKind::Text);
            convert(name, value, kind)?;
        }
        said_once(&parameters)?;
        parameters.insert("type".to_owned(), work.kind.as_str().into());
        serde_json::from_value(Value::Object(parameters))
            .map_err(|_| "its parameters do not fit together".to_owned())
    }

    /// Returns a boolean parameter with its value filled in.
    pub(super) fn boolean(&mut self, name: &str, template: &ValueTemplate) -> Result<bool, String> {
        let mut value = self.fill(template)?;
        convert(name, &mut value, ParameterKind::Boolean)?;
        Ok(value == Value::Bool(true))
    }
}

/// Checks that a command says in one way only what makes it repeatable.
fn said_once(parameters: &Map<String, Value>) -> Result<(), String> {
    let says = |name: &&&str| match parameters.get(**name) {
        None | Some(Value::Bool(false)) => false,
        Some(_) => true,
    };
    let said: Vec<&str> = REPETITION.iter().filter(says).copied().collect();
    match said[..] {
        [first, second, ..] => Err(format!(
            "WF403 it has `{first}` and `{second}`; keep the key that says what a repetition means"
        )),
        _ => Ok(()),
    }
}

/// Converts a value to the kind that a parameter takes.
fn convert(name: &str, value: &mut Value, kind: ParameterKind) -> Result<(), String> {
    let takes = match kind {
        ParameterKind::Text | ParameterKind::Filled | ParameterKind::Path => {
            if let Some(said) = as_text(value) {
                *value = said.into();
                return Ok(());
            }
            let is_word = !value.is_array() && !value.is_object();
            if value.is_null() {
                "a text; where it may be null, write `${… ?? ''}`"
            } else if is_word || kind == ParameterKind::Text {
                if !value.is_string() {
                    *value = value.to_string().into();
                }
                return Ok(());
            } else {
                "a text"
            }
        }
        ParameterKind::Boolean => match boolean(value) {
            Some(read) => {
                *value = read.into();
                return Ok(());
            }
            None => "`true` or `false`",
        },
        ParameterKind::Number => {
            let whole = number(value).as_ref().and_then(whole);
            match whole {
                Some(read) => {
                    *value = read.into();
                    return Ok(());
                }
                None => "a whole number from 0",
            }
        }
        ParameterKind::List if !value.is_array() => "a list",
        ParameterKind::Map if !value.is_object() => "a mapping",
        ParameterKind::List
        | ParameterKind::Map
        | ParameterKind::Any
        | ParameterKind::Expression
        | ParameterKind::Conditions
        | ParameterKind::Actions
        | ParameterKind::Word => return Ok(()),
    };
    Err(format!("WF403 `{name}` takes {takes}, but got {}", shown(value)))
}

/// Returns a whole number that an operation can take.
fn whole(number: &Number) -> Option<u32> {
    let exact = number.as_u64().or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole")]
        Some(float as u64)
    });
    exact.and_then(|exact| u32::try_from(exact).ok())
}

/// Returns a boolean, also from its text; `None` for another value.
fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        other => match as_text(other)?.trim().to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        },
    }
}

/// Returns the boolean that a flag is set to: that of a text which says it, else the truth of the value.
pub(super) fn is_true(value: &Value) -> bool {
    boolean(value).unwrap_or_else(|| truth(value))
}

/// Returns a number, also from its text; `None` for another value.
pub(in crate::graph) fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Number(number) => Some(number.clone()),
        other => as_text(other)?.trim().parse().ok(),
    }
}

/// Returns a value for an error: its beginning, or its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
        Value::String(text) => format!("the text `{}`", text.chars().take(40).collect::<String>()),
        other => other.to_string(),
    }
}
