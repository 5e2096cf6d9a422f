//! The list of a fan-out: an entry for each agent, and the variables of each entry.
//!
//! Only the name of a file decides how it is read: `.json` is a JSON list, `.jsonl` and `.ndjson` have a JSON
//! value on each line; in any other file each line that is not blank is an entry. A list in the tag itself is
//! JSON. A text is shown as it is, any other value as JSON. The fields of an object become variables too; they
//! override those of the tag.

use serde_json::Value;

use crate::domain::json_mistake::mistake;
use crate::domain::transition::{ForkList, Variables};

/// The largest list, in bytes.
pub const MAX_LIST_BYTES: u64 = 4 * 1024 * 1024;

/// The format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListFormat {
    List,
    Lines,
    Texts,
}

/// Returns the variables of each agent: the tag's own `variables`, overridden by those of its list entry. A list without
/// entries forks no agent.
///
/// # Errors
/// The mistake in the list, its place, and the fix.
pub fn entries(
    each: &ForkList,
    text: &str,
    variables: &Variables,
) -> Result<Vec<Variables>, String> {
    let name = if each.is_inline() { "the list in the tag" } else { &each.list };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let values = match form(each) {
        ListFormat::List => list(name, text)?,
        ListFormat::Lines => lines(name, text)?,
        ListFormat::Texts => texts(text),
    };
    Ok(values.into_iter().map(|value| seen(value, &each.name, variables)).collect())
}

fn form(each: &ForkList) -> ListFormat {
    let ending = each.list.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        _ if each.is_inline() => ListFormat::List,
        "json" => ListFormat::List,
        "jsonl" | "ndjson" => ListFormat::Lines,
        _ => ListFormat::Texts,
    }
}

fn list(name: &str, text: &str) -> Result<Vec<Value>, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| format!("{name} is not valid JSON: {}", placed(&error, 0)))?;
    match value {
        Value::Array(values) => Ok(values),
        other => Err(format!(
            "{name} holds {}, where a list is needed, such as [\"a\", \"b\"] or [{{\"file\": \"a\"}}]",
            kind(&other)
        )),
    }
}

fn lines(name: &str, text: &str) -> Result<Vec<Value>, String> {
    let filled = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    filled
        .map(|(before, line)| {
            serde_json::from_str(line).map_err(|error| {
                format!(
                    "{name} is not valid JSON Lines: {}; use a .txt file for plain text",
                    placed(&error, before)
                )
            })
        })
        .collect()
}

fn texts(text: &str) -> Vec<Value> {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
    lines.map(Value::from).collect()
}

/// Returns the message with its place in the file; `before` lines of the file come before the parsed text.
fn placed(error: &serde_json::Error, before: usize) -> String {
    format!("{}:{}: {}", error.line() + before, error.column(), mistake(error))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the variables that an agent sees for its entry.
fn seen(value: Value, name: &str, variables: &Variables) -> Variables {
    let mut seen = variables.clone();
    let whole = shown(&value);
    if let Value::Object(fields) = value {
        seen.extend(fields.into_iter().map(|(field, value)| {
            let shown = shown(&value);
            (field, shown)
        }));
    }
    seen.insert(name.to_owned(), whole);
    seen
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(list: &str) -> ForkList {
        ForkList { list: list.to_owned(), name: "item".to_owned() }
    }

    fn read(list: &str, text: &str) -> Vec<Vec<(String, String)>> {
        let read = entries(&each(list), text, &Variables::new()).expect("a list");
        read.into_iter().map(|one| one.into_iter().collect()).collect()
    }

    fn items(list: &str, text: &str) -> Vec<String> {
        read(list, text).into_iter().map(|one| one[0].1.clone()).collect()
    }

    fn wrong(list: &str, text: &str) -> String {
        entries(&each(list), text, &Variables::new()).expect_err("wrong")
    }

    #[test]
    fn file_extension_selects_list_format() {
        assert_eq!(items("a.json", " [\"a\", 1, [2, 3], null]\n"), ["a", "1", "[2,3]", "null"]);
        assert_eq!(items("a.JSONL", "\"a\"\n\n[1]\n"), ["a", "[1]"]);
        assert_eq!(items("a.txt", "one\r\n\n  two \n[\"three\"]"), ["one", "  two", "[\"three\"]"]);
        assert_eq!(items("list", "\u{feff}x"), ["x"]);
        assert_eq!(items("[\"x.txt\"]", "[\"x.txt\"]"), ["x.txt"]);
    }

    #[test]
    fn list_without_entries_forks_nobody() {
        for (list, text) in [
            ("a.json", "[]"),
            ("a.json", "\u{feff} [\n]\n"),
            ("a.txt", " \n\n"),
            ("a.txt", ""),
            ("a.jsonl", ""),
            ("[ ]", "[ ]"),
        ] {
            assert!(read(list, text).is_empty(), "{list}: {text:?}");
        }
        assert!(wrong("a.json", "").starts_with("a.json is not valid JSON"));
        assert!(wrong("a.json", "null").starts_with("a.json holds null"));
    }

    #[test]
    fn object_fields_become_variables() {
        let [one] = read("a.json", r#"[{"file": "a.rs", "lines": 3}]"#).try_into().expect("one");
        let expected = [("file", "a.rs"), ("item", r#"{"file":"a.rs","lines":3}"#), ("lines", "3")];
        assert_eq!(one, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let shared = [("file", "shared"), ("item", "shared"), ("kind", "k")];
        let shared: Variables =
            shared.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let own = entries(&each("a.json"), r#"[{"file": "a.rs"}, "b"]"#, &shared).expect("a list");
        assert_eq!((own[0]["file"].as_str(), own[0]["kind"].as_str()), ("a.rs", "k"));
        assert_eq!((own[1]["file"].as_str(), own[1]["item"].as_str()), ("shared", "b"));
    }

    #[test]
    fn invalid_list_is_error_with_location() {
        assert_eq!(
            wrong("a.json", "[\"a\",\n  oops]"),
            "a.json is not valid JSON: 2:3: expected a JSON value: a quoted string, a number, true, false or null"
        );
        assert_eq!(
            wrong("a.json", "{\"a\": 1}"),
            "a.json holds an object, where a list is needed, such as [\"a\", \"b\"] or [{\"file\": \"a\"}]"
        );
        assert_eq!(
            wrong("a.ndjson", "1\n\nplain text\n"),
            "a.ndjson is not valid JSON Lines: 3:1: expected a JSON value: a quoted string, a number, true, false or null; use a .txt file for plain text"
        );
        assert!(
            wrong("[1", "[1")
                .starts_with("the list in the tag is not valid JSON: 1:2: it ends too early")
        );
    }
}
