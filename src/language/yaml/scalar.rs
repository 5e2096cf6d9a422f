//! Reads plain scalars by the core schema of YAML 1.2, and finds the place of a character in a scalar.

use granit_parser::ScalarStyle;
use serde_json::Number;

use super::content::{YamlContent, YamlScalar};
use crate::language::position::SourcePlace;

/// Reads a plain scalar; `None` if it is a text. `yes` and `no` are texts, and so are numbers that JSON
/// cannot hold.
pub(super) fn plain(text: &str) -> Option<YamlContent> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(YamlContent::Null),
        "true" | "True" | "TRUE" => return Some(YamlContent::Bool(true)),
        "false" | "False" | "FALSE" => return Some(YamlContent::Bool(false)),
        _ => {}
    }
    number(text).map(YamlContent::Number)
}

/// The text is not of the kind that its tag names.
pub(super) struct TagMismatch;

/// Reads a scalar with a tag of the core schema; `None` if it is a text.
pub(super) fn tagged(tag: &str, text: &str) -> Result<Option<YamlContent>, TagMismatch> {
    match (tag, plain(text)) {
        ("str", _) => Ok(None),
        ("null", found @ Some(YamlContent::Null))
        | ("bool", found @ Some(YamlContent::Bool(_))) => Ok(found),
        ("int", Some(YamlContent::Number(number))) if !number.is_f64() => {
            Ok(Some(YamlContent::Number(number)))
        }
        ("float", Some(YamlContent::Number(number))) => {
            let number = number.as_f64().and_then(Number::from_f64).ok_or(TagMismatch)?;
            Ok(Some(YamlContent::Number(number)))
        }
        _ => Err(TagMismatch),
    }
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let looks = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.contains(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    if !looks {
        return None;
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    let whole = plain.parse::<i64>().map(Number::from);
    let whole = whole.or_else(|_| plain.parse::<u64>().map(Number::from));
    whole.ok().or_else(|| Number::from_f64(plain.parse().ok()?))
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    let all = digits.chars().all(|c| c.is_digit(radix));
    u64::from_str_radix(digits, radix).ok().filter(|_| all).map(Number::from)
}

/// Returns the place of a byte of a text, or the beginning of the text if the place cannot be determined.
pub(in crate::language) fn inside(
    source: &str,
    at: SourcePlace,
    text: &YamlScalar,
    offset: usize,
) -> SourcePlace {
    let Some(raw) = source.get(text.range.clone()) else { return at };
    let before = text.text.get(..offset).unwrap_or_default();
    if text.style == ScalarStyle::Literal && !before.starts_with('\n') {
        let line = before.rsplit('\n').next().unwrap_or_default();
        let (lines, chars) = (before.matches('\n').count(), line.chars().count());
        return SourcePlace { line: at.line + lines as u64, column: at.column + chars as u64 };
    }
    let chars = before.chars().count();
    let written = match text.style {
        _ if raw.contains(['\n', '\r']) => None,
        ScalarStyle::Plain => Some(chars),
        ScalarStyle::SingleQuoted => {
            written(raw, chars, |c, rest| usize::from(c == '\'' && rest.starts_with('\'')))
        }
        ScalarStyle::DoubleQuoted => written(raw, chars, |c, rest| match rest.chars().next() {
            Some('x') if c == '\\' => 3,
            Some('u') if c == '\\' => 5,
            Some('U') if c == '\\' => 9,
            _ => usize::from(c == '\\'),
        }),
        ScalarStyle::Literal | ScalarStyle::Folded => None,
    };
    SourcePlace { column: at.column + written.unwrap_or(0) as u64, ..at }
}

/// Returns the number of written characters before a character of a quoted text, with the quote; `more`
/// returns the number of extra characters that belong to one.
fn written(raw: &str, chars: usize, more: impl Fn(char, &str) -> usize) -> Option<usize> {
    let mut rest = raw.char_indices().skip(1);
    let mut written = 1;
    for _ in 0..chars {
        let (index, c) = rest.next()?;
        let besides = more(c, &raw[index + c.len_utf8()..]);
        written += 1 + besides;
        if besides > 0 {
            rest.nth(besides - 1);
        }
    }
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::yaml::tree::{self, YamlFileKind};

    #[test]
    fn scalar_type_follows_yaml_core_schema() {
        let table = [
            ("yes", r#""yes""#),
            ("No", r#""No""#),
            ("on", r#""on""#),
            ("True", "true"),
            ("~", "null"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("017", "17"),
            ("-3", "-3"),
            ("1.5e2", "150.0"),
            ("18446744073709551615", "18446744073709551615"),
            (".inf", r#"".inf""#),
            ("1e999", r#""1e999""#),
            ("1.2.3", r#""1.2.3""#),
            ("2024-01-02", r#""2024-01-02""#),
            ("-", r#"["-"]"#),
            (".", r#"".""#),
            ("'1'", r#""1""#),
            ("!!str 1", r#""1""#),
            ("! 1", r#""1""#),
            ("!!int '1'", "1"),
            ("!!float 1", "1.0"),
            ("!!bool \"true\"", "true"),
            ("!!null ''", "null"),
        ];
        for (yaml, expected) in table {
            let yaml = if yaml == "-" { "['-']" } else { yaml };
            let (root, faults) = tree::parse(YamlFileKind::GRAPH, yaml);
            assert!(faults.is_empty(), "{yaml}: {faults:?}");
            assert_eq!(root.expect("a value").json().to_string(), expected, "{yaml}");
        }
    }

    #[test]
    fn offset_in_scalar_maps_to_location_in_source() {
        let table = [
            ("k: abcd", "d", 7),
            ("k: 'a''bcd'", "d", 10),
            (r#"k: "a\tb\x41cd""#, "d", 14),
            (r#"k: "ä\"cd""#, "d", 9),
            ("k: 'ab\n  cd'", "d", 4),
            ("k: |\n  abcd", "d", 6),
            ("k: |-\n  ab\n\n   cd\n", "d", 5),
            ("k: >\n  ab\n  cd\n", "d", 3),
        ];
        let lines = [1, 1, 1, 1, 1, 2, 4, 2];
        for ((yaml, wanted, column), line) in table.into_iter().zip(lines) {
            let (root, _) = tree::parse(YamlFileKind::GRAPH, yaml);
            let root = root.expect("a value");
            let (at, text) = root.texts()[0];
            let offset = text.text.find(wanted).expect("there");
            assert_eq!(inside(yaml, at, text, offset), SourcePlace { line, column }, "{yaml}");
        }
    }
}
