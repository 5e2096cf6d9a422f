//! Sentences about JSON that cannot be read: its place, what is wrong, what belongs there; and paths of values.

use std::fmt;

use serde_json::error::Category;
use serde_json::{Error, Map, Value};

use super::question::raw_part;

/// The mistakes of a text that is not JSON, as the reader names them, and the sentences about them.
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
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
    match error.classify() {
        Category::Eof => {
            "it ends too early; something is cut off, or a bracket or quote is missing".to_owned()
        }
        Category::Syntax => {
            let known = SYNTAX.iter().find(|(beginning, _)| text.starts_with(beginning));
            known.map_or("this is not valid JSON", |(_, sentence)| sentence).to_owned()
        }
        Category::Data => unfitting(text),
        Category::Io => "it could not be read to its end".to_owned(),
    }
}

/// Returns a sentence about JSON that means something else than what is needed.
fn unfitting(text: &str) -> String {
    if let Some(field) = text.strip_prefix("missing field ") {
        return format!("the field {field} is missing; add it");
    }
    if let Some(field) = text.strip_prefix("duplicate field ") {
        return format!("the field {field} is given twice; remove one");
    }
    for (beginning, what) in [
        ("unknown variant ", "is not allowed here"),
        ("unknown field ", "is not a known field here"),
    ] {
        let Some(rest) = text.strip_prefix(beginning) else { continue };
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
            text.strip_prefix(beginning).and_then(|rest| rest.rsplit_once(", expected "))
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
    text.to_owned()
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

// The path of a value in other values: `sources[0].id`, `.history[-1].node`, `a["b-c"]`.
//
// It has names after dots, and in brackets a number or a quoted name. A negative number counts from the end. A
// dot at the beginning means nothing.

/// The path of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePath(Vec<PathSegment>);

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathSegment {
    /// To the entry of a map with this key. A number also leads to an element of a list.
    Key(String),
    /// To an element of a list.
    Index(i64),
}

/// The text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a path: {why}; write names with dots between them, and numbers in brackets, as in `sources[0].id`"
)]
pub struct InvalidValuePath {
    text: String,
    why: String,
}

impl ValuePath {
    /// Reads a path.
    ///
    /// # Errors
    /// [`InvalidValuePath`], with the reason.
    pub fn parse(text: &str) -> Result<Self, InvalidValuePath> {
        let path = text.trim();
        let invalid = |why: String| InvalidValuePath { text: text.to_owned(), why };
        let mut rest = path.strip_prefix('.').unwrap_or(path);
        let mut segments = Vec::new();
        loop {
            if rest.starts_with('[') {
                let (segment, after) = bracket(rest).map_err(invalid)?;
                segments.push(segment);
                rest = after;
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let name = rest[..end].trim();
                if name.is_empty() {
                    return Err(invalid("a name is missing".to_owned()));
                }
                if let Some(sign) = name.chars().find(|sign| "]|(){}".contains(*sign)) {
                    return Err(invalid(format!("`{sign}` cannot stand in it")));
                }
                segments.push(PathSegment::Key(name.to_owned()));
                rest = &rest[end..];
            }
            match rest.strip_prefix('.') {
                Some(after) => {
                    rest = after;
                    if rest.is_empty() {
                        return Err(invalid("a name is missing at its end".to_owned()));
                    }
                }
                None if rest.is_empty() => break,
                None if rest.starts_with('[') => {}
                None => return Err(invalid("a dot is missing after `]`".to_owned())),
            }
        }
        Ok(Self(segments))
    }

    /// Reads a path. A text that is not a path is read as names separated by dots, with any characters.
    pub fn parse_or_names(text: &str) -> Self {
        let names = || text.split('.').map(|name| PathSegment::Key(name.to_owned())).collect();
        Self::parse(text).unwrap_or_else(|_| Self(names()))
    }

    /// Returns the value at the path, which begins in this value.
    pub fn value_in<'value>(&self, value: &'value Value) -> Option<&'value Value> {
        self.0.iter().try_fold(value, step)
    }

    /// Returns its steps; there is at least one.
    pub fn segments(&self) -> &[PathSegment] {
        &self.0
    }

    /// Returns its first name; `None` if it begins with a number.
    pub fn root(&self) -> Option<&str> {
        match self.0.first() {
            Some(PathSegment::Key(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns the path without its first name, if that is this one and more follows.
    pub fn without(&self, root: &str) -> Option<Self> {
        (self.root() == Some(root) && self.0.len() > 1).then(|| Self(self.0[1..].to_vec()))
    }

    /// Returns the path below a name, unless it begins with that name already.
    pub fn below(mut self, root: &str) -> Self {
        if self.root() != Some(root) || self.0.len() == 1 {
            self.0.insert(0, PathSegment::Key(root.to_owned()));
        }
        self
    }

    /// Returns the value at the steps after the first one.
    pub fn rest_of<'value>(&self, root: &'value Value) -> Option<&'value Value> {
        let mut here = root;
        let mut rest = self.0.iter().skip(1).peekable();
        while let Some(segment) = rest.next() {
            here = match (segment, rest.peek()) {
                (PathSegment::Key(raw), Some(PathSegment::Key(part))) if raw == "raw" => {
                    match raw_part(here, part) {
                        Some(found) => {
                            rest.next();
                            found
                        }
                        None => step(here, segment)?,
                    }
                }
                _ => step(here, segment)?,
            };
        }
        Some(here)
    }

    /// Returns the keys that lead to the place of the path in these values, where a value is to be written.
    /// Names may be missing; elements of lists have to be there.
    ///
    /// # Errors
    /// The reason why there is no such place.
    pub fn keys_in(&self, values: &Map<String, Value>) -> Result<Vec<String>, String> {
        let mut keys = Vec::with_capacity(self.0.len());
        let Some((PathSegment::Key(root), rest)) = self.0.split_first() else {
            return Err(format!("`{self}` begins with a number; a path begins with a name"));
        };
        keys.push(root.clone());
        let mut here = values.get(root);
        for (depth, segment) in (1..).zip(rest) {
            let (key, next) = match (segment, here) {
                (PathSegment::Key(key), here) => {
                    (key.clone(), here.and_then(|here| step(here, segment)))
                }
                (PathSegment::Index(index), Some(Value::Array(list))) => {
                    let place = place(*index, list.len()).ok_or_else(|| {
                        let (path, length) = (self.up_to(depth), list.len());
                        format!("`{path}` has {length} elements, and no `[{index}]`")
                    })?;
                    (place.to_string(), list.get(place))
                }
                (PathSegment::Index(index), Some(Value::Object(map))) => {
                    (index.to_string(), map.get(&index.to_string()))
                }
                (PathSegment::Index(index), _) => {
                    let path = self.up_to(depth);
                    return Err(format!("`{path}` is not a list, so it has no `[{index}]`"));
                }
            };
            keys.push(key);
            here = next;
        }
        Ok(keys)
    }

    fn up_to(&self, depth: usize) -> Self {
        Self(self.0[..depth].to_vec())
    }
}

/// Returns the value one step down.
fn step<'value>(here: &'value Value, segment: &PathSegment) -> Option<&'value Value> {
    match (here, segment) {
        (Value::Object(map), PathSegment::Key(key)) => map.get(key),
        (Value::Object(map), PathSegment::Index(index)) => map.get(&index.to_string()),
        (Value::Array(list), PathSegment::Key(key)) => list.get(key.parse::<usize>().ok()?),
        (Value::Array(list), PathSegment::Index(index)) => list.get(place(*index, list.len())?),
        _ => None,
    }
}

/// Returns the place of an index in a list; a negative one counts from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    let from_start =
        if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(from_start).ok().filter(|place| *place < length)
}

/// Reads the bracket that the text begins with, and returns the text after it.
fn bracket(text: &str) -> Result<(PathSegment, &str), String> {
    let inside = text[1..].trim_start();
    if let Some(quote) = inside.chars().next().filter(|char| ['"', '\''].contains(char)) {
        let (name, after) =
            inside[1..].split_once(quote).ok_or("a quote in brackets is not closed")?;
        let after = after.trim_start().strip_prefix(']').ok_or("`]` is missing")?;
        return Ok((PathSegment::Key(name.to_owned()), after));
    }
    let (number, after) = inside.split_once(']').ok_or("`]` is missing")?;
    let index = number.trim().parse().map_err(|_| {
        format!(
            "`[{}]` is not an index; write a number or a quoted name in brackets",
            number.trim()
        )
    })?;
    Ok((PathSegment::Index(index), after))
}

impl fmt::Display for ValuePath {
    /// Writes it so that it can be read again, also as a path of an expression.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, segment) in self.0.iter().enumerate() {
            match segment {
                PathSegment::Index(index) => write!(f, "[{index}]")?,
                PathSegment::Key(key) if place == 0 => f.write_str(key)?,
                PathSegment::Key(key) if is_name(key) => write!(f, ".{key}")?,
                PathSegment::Key(key) if key.bytes().all(|byte| byte.is_ascii_digit()) => {
                    write!(f, "[{key}]")?;
                }
                PathSegment::Key(key) => write!(f, "[\"{key}\"]")?,
            }
        }
        Ok(())
    }
}

fn is_name(key: &str) -> bool {
    let mut chars = key.chars();
    chars.next().is_some_and(|first| first == '_' || first.is_alphabetic())
        && chars.all(|char| char == '_' || char.is_alphanumeric())
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
    fn invalid_json_has_place_and_sentence() {
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
            let message = placed_mistake(&error);
            assert!(message.contains(expected), "{text}: {message}");
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

#[cfg(test)]
mod value_path_tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> ValuePath {
        ValuePath::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn path_reads_dots_brackets_quotes_and_leading_dot() {
        let values = json!({"a": {"b-c": [1, {"d": 2}]}, "0": "zero"});
        let at = |text: &str| {
            let path = path(text);
            path.rest_of(&values[path.root().expect("a name")]).cloned()
        };
        assert_eq!(at("a.b-c[1].d"), Some(json!(2)));
        assert_eq!(at(".a[\"b-c\"][-1]['d']"), Some(json!(2)));
        assert_eq!(at("a.b-c.1.d"), Some(json!(2)));
        assert_eq!(at(" a . b-c [ 0 ]"), Some(json!(1)));
        assert_eq!((at("a.b-c[2]"), at("a.b-c[-3]"), at("a.x.y")), (None, None, None));
        assert_eq!(path("a.b-c[-1].d").to_string(), "a[\"b-c\"][-1].d");
        assert_eq!(path("x").below("computed"), path("computed.x"));
        assert_eq!(path("computed.x").below("computed"), path("computed.x"));
    }

    #[test]
    fn invalid_path_is_error_with_reason() {
        for (text, why) in [
            ("", "a name is missing"),
            ("a..b", "a name is missing"),
            ("a.", "a name is missing at its end"),
            ("a[0", "`]` is missing"),
            ("a[x]", "`[x]` is not an index"),
            ("a[]", "`[]` is not an index"),
            ("a['x]", "a quote in brackets is not closed"),
            ("a[0]b", "a dot is missing after `]`"),
            ("a | b", "`|` cannot stand in it"),
        ] {
            let error = ValuePath::parse(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.contains("as in `sources[0].id`"), "{error}");
        }
    }

    #[test]
    fn place_to_write_needs_existing_element_but_no_existing_name() {
        let values = json!({"list": [1, {"x": 1}], "nothing": null});
        let values = values.as_object().expect("a map");
        assert_eq!(
            path("list[-1].y.z").keys_in(values),
            Ok(vec!["list".into(), "1".into(), "y".into(), "z".into()])
        );
        assert_eq!(path("new.name").keys_in(values), Ok(vec!["new".into(), "name".into()]));
        let why = |text: &str| path(text).keys_in(values).expect_err(text);
        assert_eq!(why("[2]"), "`[2]` begins with a number; a path begins with a name");
        assert_eq!(why("list[2]"), "`list` has 2 elements, and no `[2]`");
        assert_eq!(why("nothing[0].x"), "`nothing` is not a list, so it has no `[0]`");
        assert_eq!(why("new.deep[0]"), "`new.deep` is not a list, so it has no `[0]`");
    }
}
