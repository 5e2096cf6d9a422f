//! Tests of expressions and templates, by tables and by properties over any text.

use serde_json::{Value, json};

use super::{Error, Expression, Fuel, NameScope};

mod bounds;
mod collections;
mod flaws;
mod functions;
mod methods;
mod statements;
mod templates;
mod values;

/// A scope whose names are the keys of a map.
struct Names(Value);

impl NameScope for Names {
    fn root(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    fn now(&self) -> Option<&Value> {
        self.0.get("now")
    }
}

fn scope() -> Names {
    Names(json!({
        "now": "2026-01-15T14:30:22.123Z",
        "n": 7, "half": 0.5, "name": "raymond", "path": "docs/a b/Übersicht.md", "nothing": null,
        "yes": true, "empty": "", "list": [3, 1, 2], "words": ["b", "a", null],
        "source_type": "git", "arguments": "--force https://example.org/x.git",
        "map": {"b-c": 1, "length": "own", "2": "two", "deep": {"x": [1, {"y": "z"}]}},
        "config": {"sources": [{"id": "react", "type": "git"}, {"id": "vue", "type": "web"}]},
        "computed": {"repo_url": "https://example.org/react.git", "files": ["a.md", "b.txt"]},
        "flags": {"manifest_detected": true},
    }))
}

fn evaluate(text: &str) -> Result<Value, Error> {
    let expression = Expression::parse(text).unwrap_or_else(|flaw| panic!("{text}: {flaw:?}"));
    expression.evaluate(&scope(), &mut Fuel::default())
}

/// Asserts the value of each text.
fn assert_values(table: &[(&str, Value)]) {
    for (text, value) in table {
        assert_eq!(evaluate(text).as_ref(), Ok(value), "{text}");
    }
}

/// Asserts the error of each text.
fn assert_errors(table: &[(&str, &str)]) {
    for (text, why) in table {
        let error = evaluate(text).expect_err(text);
        assert_eq!(error.to_string(), format!("WF403 {why}"), "{text}");
    }
}
