//! Judges a text by a rule.

use serde_json::Value;

use super::case_texts::CaseTexts;
use super::expectation::TextRule;
use crate::language::output::field;
use crate::language::text_pattern::TextPattern;

/// Returns what was expected of a text and what it is instead, if the rule is broken.
pub(super) fn broken(rule: &TextRule, text: &str, texts: &CaseTexts) -> Option<(String, String)> {
    let quoted = || format!("{text:?}");
    match rule {
        TextRule::Is(pattern) => (!pattern.fits(text)).then(|| match pattern {
            TextPattern::Text(whole) => (format!("is {whole:?}"), quoted()),
            TextPattern::Regex(_) => (format!("matches {pattern}"), quoted()),
        }),
        TextRule::Contains(part) => {
            (!part.is_in(text)).then(|| (format!("contains {part}"), quoted()))
        }
        TextRule::Schema(schema) => {
            let expected = "is JSON that matches the schema".to_owned();
            let Ok(value) = serde_json::from_str::<Value>(text) else {
                return Some((expected, format!("it is not valid JSON: {text:?}")));
            };
            let validator = jsonschema::draft7::new(schema).ok()?;
            let errors: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| format!("at {}: {error}", error.instance_path().as_str()))
                .collect();
            (!errors.is_empty()).then(|| (expected, errors.join("; ")))
        }
        TextRule::Field(path, wanted) => {
            let value = serde_json::from_str::<Value>(text).unwrap_or_default();
            let found = field(&value, path);
            (found != Some(wanted)).then(|| {
                let found = found.map_or_else(
                    || format!("there is no such field in {text:?}"),
                    Value::to_string,
                );
                (format!("has {path}: {wanted}"), found)
            })
        }
        TextRule::Golden(file) => {
            let file = file.as_str();
            let expected = format!("equals {file}");
            match texts.goldens.get(file) {
                None => Some((
                    expected,
                    format!("the file {file} is missing beside the case; --update creates it"),
                )),
                Some(golden) if golden.trim_end() != text.trim_end() => {
                    Some((expected, first_difference(golden, text)))
                }
                Some(_) => None,
            }
        }
    }
}

/// Returns the first line in which two texts differ.
fn first_difference(golden: &str, text: &str) -> String {
    let (mut wanted, mut found) = (golden.trim_end().lines(), text.trim_end().lines());
    for number in 1.. {
        let (one, other) = (wanted.next(), found.next());
        if one != other || one.is_none() {
            let shown =
                |line: Option<&str>| line.map_or("the end".to_owned(), |line| format!("{line:?}"));
            return format!("line {number} is {}, not {}", shown(other), shown(one));
        }
    }
    String::new()
}
