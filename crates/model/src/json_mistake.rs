//! Sentences about JSON that cannot be read: its place, what is wrong there, and what belongs there.

use serde_json::Error;
use serde_json::error::Category;

/// The mistakes of a text that is no JSON, as the reader names them, and the sentences about them.
const SYNTAX: [(&str, &str); 14] = [
    ("expected `:`", "a `:` is missing after a key"),
    ("expected `,` or `]`", "a `,` or the `]` of a list is missing"),
    ("expected `,` or `}`", "a `,` or the `}` of an object is missing"),
    ("expected ident", "expected a JSON value: a quoted string, a number, true, false or null"),
    ("expected value", "expected a JSON value: a quoted string, a number, true, false or null"),
    ("expected `\"`", "expected a quoted string"),
    ("invalid escape", "a `\\` is followed by a character that cannot be escaped; double it"),
    ("invalid number", "this is not a number"),
    ("number out of range", "this number is too large"),
    ("key must be a string", "a key must be in double quotes"),
    ("control character", "a string contains a line break or control character; write it as \\n"),
    ("trailing comma", "trailing `,` before the end of a list or object; remove it"),
    ("trailing characters", "trailing characters after the end of the JSON; remove them"),
    ("recursion limit exceeded", "this is nested too deeply"),
];

/// Returns the place of a mistake and a sentence about it: `line 2, column 5: this is not a number`.
pub fn placed_mistake(error: &Error) -> String {
    match error.line() {
        0 => mistake(error),
        line => format!("line {line}, column {}: {}", error.column(), mistake(error)),
    }
}

/// Returns a sentence about a mistake, without its place.
pub fn mistake(error: &Error) -> String {
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(&*said, |(said, _)| said);
    match error.classify() {
        Category::Eof => {
            "it ends too early; something is cut off, or a bracket or quote is missing".to_owned()
        }
        Category::Syntax => {
            let known = SYNTAX.iter().find(|(beginning, _)| said.starts_with(beginning));
            known.map_or("this is not valid JSON", |(_, sentence)| sentence).to_owned()
        }
        Category::Data => unfitting(said),
        Category::Io => "it could not be read to its end".to_owned(),
    }
}

/// Returns a sentence about JSON that means something else than what is needed.
fn unfitting(said: &str) -> String {
    if let Some(field) = said.strip_prefix("missing field ") {
        return format!("the field {field} is missing; add it");
    }
    if let Some(field) = said.strip_prefix("duplicate field ") {
        return format!("the field {field} is given twice; remove one");
    }
    for (beginning, what) in [
        ("unknown variant ", "is not allowed here"),
        ("unknown field ", "is not a known field here"),
    ] {
        let Some(rest) = said.strip_prefix(beginning) else { continue };
        return match rest.split_once(", expected ") {
            Some((found, known)) => {
                let known = known.strip_prefix("one of ").unwrap_or(known);
                format!("{found} {what}; known here: {known}")
            }
            None => format!("{} {what}", rest.split(", there ").next().unwrap_or(rest)),
        };
    }
    for beginning in ["invalid type: ", "invalid value: ", "invalid length "] {
        let Some((found, wanted)) =
            said.strip_prefix(beginning).and_then(|rest| rest.rsplit_once(", expected "))
        else {
            continue;
        };
        return match (beginning, wanted_words(wanted)) {
            ("invalid length ", wanted) => {
                format!("it has {found} entries, but {wanted} is needed")
            }
            (_, wanted) => format!("expected {wanted}, found {}", found_words(found)),
        };
    }
    // The sentence of a type of this program.
    said.to_owned()
}

/// Returns the kind of a value that was found.
fn found_words(found: &str) -> String {
    let kinds = [
        ("null", "nothing"),
        ("map", "an object"),
        ("sequence", "a list"),
        ("boolean", "a truth value"),
        ("integer", "a number"),
        ("floating point", "a number"),
        ("string", "the text"),
    ];
    let Some((word, kind)) = kinds.iter().find(|(word, _)| found.starts_with(word)) else {
        return found.to_owned();
    };
    match found[word.len()..].trim() {
        "" => (*kind).to_owned(),
        value => format!(
            "{} {value}",
            kind.replace("a truth value", "the truth value").replace("a number", "the number")
        ),
    }
}

/// Returns the kind of a value that is needed.
fn wanted_words(wanted: &str) -> String {
    match wanted {
        "a map" => "an object".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a string" | "a borrowed string" => "a text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        named if named.starts_with("struct ") || named.starts_with("internally tagged enum ") => {
            "an object".to_owned()
        }
        named if named.starts_with("enum ") || named.starts_with("adjacently tagged enum ") => {
            "a word or an object".to_owned()
        }
        named if named.starts_with("tuple struct ") || named.starts_with("a tuple ") => {
            "a list".to_owned()
        }
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::{Map, Value};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    struct Example {
        #[serde(rename = "n")]
        _n: u32,
        #[serde(default, rename = "kind")]
        _kind: Option<ExampleKind>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum ExampleKind {
        Small,
        Large,
    }

    #[test]
    fn text_that_is_no_json_has_place_and_sentence() {
        for (text, expected) in [
            ("", "line 1, column 0: it ends too early"),
            ("[1,\n 2", "line 2, column 2: it ends too early"),
            ("[1,\n  oops]", "line 2, column 3: expected a JSON value: a quoted string"),
            ("{\"a\" 1}", "line 1, column 6: a `:` is missing after a key"),
            ("{\"a\": 1 \"b\": 2}", "a `,` or the `}` of an object is missing"),
            ("[1 2]", "a `,` or the `]` of a list is missing"),
            ("{a: 1}", "a key must be in double quotes"),
            ("[1,]", "trailing `,` before the end"),
            ("{} more", "trailing characters after the end"),
            ("\"a\nb\"", "a string contains a line break"),
            ("\"\\x\"", "a `\\` is followed by"),
            ("1e999", "this number is too large"),
            ("trux", "expected a JSON value"),
        ] {
            let error = serde_json::from_str::<Value>(text).expect_err(text);
            let told = placed_mistake(&error);
            assert!(told.contains(expected), "{text}: {told}");
        }
        let deep = "[".repeat(500);
        let error = serde_json::from_str::<Value>(&deep).expect_err("too deep");
        assert_eq!(mistake(&error), "this is nested too deeply");
    }

    #[test]
    fn json_of_another_form_has_sentence_about_field_and_kind() {
        for (text, expected) in [
            ("{}", "the field `n` is missing; add it"),
            ("{\"n\": 1, \"n\": 2}", "the field `n` is given twice; remove one"),
            ("{\"n\": 1, \"m\": 2}", "`m` is not a known field here; known here: `n` or `kind`"),
            ("{\"n\": \"x\"}", "expected a whole number from 0, found the text \"x\""),
            ("{\"n\": null}", "expected a whole number from 0, found nothing"),
            ("{\"n\": -1}", "expected a whole number from 0, found the number `-1`"),
            (
                "{\"n\": 1, \"kind\": \"tiny\"}",
                "`tiny` is not allowed here; known here: `small` or `large`",
            ),
            ("true", "expected an object, found the truth value `true`"),
        ] {
            let error = serde_json::from_str::<Example>(text).expect_err(text);
            assert_eq!(mistake(&error), expected, "{text}");
        }
        let error = serde_json::from_str::<Map<String, Value>>("[1]").expect_err("a list");
        assert_eq!(mistake(&error), "expected an object, found a list");
        let error = serde_json::from_str::<BTreeMap<String, bool>>("{\"a\": {}}").expect_err("no");
        assert_eq!(
            placed_mistake(&error),
            "line 1, column 6: expected true or false, found an object"
        );
    }
}
