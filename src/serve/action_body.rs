//! The check of an action's body against its description. Pure.

use serde_json::Value;

use super::openapi::DOCUMENT;

/// The reason why a body does not fit its action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyMisfit {
    /// It is no object.
    #[error("the body of the action is not a JSON object")]
    NoObject,
    /// A field that the action needs is not there.
    #[error("the body of the action has no `{0}`")]
    Missing(String),
    /// The action has no such field.
    #[error("the action has no field `{field}`; it has {known}")]
    Unknown {
        /// The field.
        field: String,
        /// The fields that it has.
        known: String,
    },
    /// A value is of another type.
    #[error("`{field}` has to be of the type {wanted}")]
    Type {
        /// The field.
        field: String,
        /// The type.
        wanted: String,
    },
}

impl BodyMisfit {
    /// Returns the field that does not fit; `None` if it is the whole body.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::NoObject => None,
            Self::Missing(field) | Self::Unknown { field, .. } | Self::Type { field, .. } => {
                Some(field)
            }
        }
    }
}

/// Checks the body of an action. An action that is not described has no rule.
///
/// # Errors
/// [`BodyMisfit`], about the first field that does not fit.
pub fn check(action: &str, body: &Value) -> Result<(), BodyMisfit> {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap_or_default();
    let described = &document["paths"][format!("/api/actions/{action}")]["post"];
    let schema = &described["requestBody"]["content"]["application/json"]["schema"];
    let Some(fields) = schema["properties"].as_object() else { return Ok(()) };
    let body = body.as_object().ok_or(BodyMisfit::NoObject)?;
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if body.get(name).is_none_or(Value::is_null) {
            return Err(BodyMisfit::Missing(name.to_owned()));
        }
    }
    for (name, value) in body {
        let Some(field) = fields.get(name) else {
            let known: Vec<&str> = fields.keys().map(String::as_str).collect();
            return Err(BodyMisfit::Unknown { field: name.clone(), known: known.join(", ") });
        };
        check_type(name, field, value)?;
    }
    Ok(())
}

fn check_type(name: &str, described: &Value, value: &Value) -> Result<(), BodyMisfit> {
    // A field that may be left out may also be `null`.
    let types = described["type"].as_array().and_then(|types| types.first());
    let wanted = types.unwrap_or(&described["type"]).as_str().unwrap_or_default();
    let is_fitting = match value {
        // As if the field were not there.
        Value::Null => true,
        Value::Bool(_) => wanted == "boolean",
        Value::Number(_) => wanted == "number",
        Value::String(_) => wanted == "string",
        Value::Array(_) => wanted == "array",
        Value::Object(_) => wanted == "object",
    };
    if is_fitting {
        Ok(())
    } else {
        Err(BodyMisfit::Type { field: name.to_owned(), wanted: wanted.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn body_has_the_described_fields_and_no_others() {
        let wrong = |action: &str, body: Value| check(action, &body).map_err(|why| why.to_string());
        let whole = json!({ "run": "r", "node": "n", "text": "t", "agent": null });
        assert_eq!(wrong("answer", whole), Ok(()));
        assert_eq!(
            wrong("answer", json!([])),
            Err("the body of the action is not a JSON object".into())
        );
        let missing = Err("the body of the action has no `run`".to_owned());
        assert_eq!(wrong("stop", json!({})), missing);
        assert_eq!(wrong("stop", json!({ "run": null })), missing);
        let unknown = Err("the action has no field `agnet`; it has run, agent, dry_run".to_owned());
        assert_eq!(wrong("retry", json!({ "run": "r", "agnet": "main" })), unknown);
        let number = Err("`dry_run` has to be of the type boolean".to_owned());
        assert_eq!(wrong("retry", json!({ "run": "r", "dry_run": 1 })), number);
        assert_eq!(
            wrong("none", json!(1)),
            Ok(()),
            "the commands say that there is no such action"
        );
    }
}
