//! Fields of a JSON value by their [path](ValuePath): `score`, `author.name`, `items[0].title`.

use std::borrow::Cow;

use serde_json::Value;

use crate::domain::transition::Variables;
use crate::domain::value_path::ValuePath;

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
mod tests {
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
