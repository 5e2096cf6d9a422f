//! Documents whose texts are bounded. Pure.

use serde_json::Value;

use crate::domain::printable::beginning;

/// Returns a value with each of its texts cut to that many bytes.
pub fn bounded(value: Value, longest: usize) -> Value {
    match value {
        Value::String(text) => Value::String(beginning(text, longest)),
        Value::Array(all) => all.into_iter().map(|one| bounded(one, longest)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, one)| (name, bounded(one, longest))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_text_is_cut() {
        let cut = bounded(json!({ "a": "xyz", "b": ["xyz", 1, null] }), 2);
        assert_eq!(cut, json!({ "a": "xy…", "b": ["xy…", 1, null] }));
    }
}
