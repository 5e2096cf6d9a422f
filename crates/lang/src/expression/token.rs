//! Reads the smallest parts: numbers, texts in quotes, regular expressions.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::value;

/// The largest size of a compiled regular expression, in bytes.
const PATTERN_SIZE: usize = 1024 * 1024;

/// A regular expression.
#[derive(Debug)]
pub(super) struct RegexPattern {
    pub(super) regex: Regex,
    /// The flag `g`: all matches, not only the first.
    pub(super) all: bool,
}

/// Reads a number; `None` if it is too large.
pub(super) fn number(text: &str) -> Option<Value> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::from(whole));
    }
    value::number(text.parse().ok()?)
}

/// Reads a text in quotes with the escapes of JavaScript; a wrong escape is an error.
pub(super) fn string(quoted: &str) -> Result<String, String> {
    unescaped(&quoted[1..quoted.len() - 1])
}

/// Reads the escapes in a text without its quotes.
pub(super) fn unescaped(inside: &str) -> Result<String, String> {
    let mut said = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        said.push_str(&rest[..at]);
        let escaped = &rest[at + 1..];
        let (char, length) = escape(escaped)?;
        said.push(char);
        rest = &escaped[length..];
    }
    said.push_str(rest);
    Ok(said)
}

/// Reads the escape after a backslash, and returns its character and length.
fn escape(text: &str) -> Result<(char, usize), String> {
    let Some(first) = text.chars().next() else { return Err("an escape ends too early".into()) };
    let plain = match first {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '0' => '\0',
        'x' => return code(text, 1, 2),
        'u' if text.starts_with("u{") => {
            let digits = text.find('}').map_or(0, |end| end - 2);
            return code(text, 2, digits).map(|(char, length)| (char, length + 1));
        }
        'u' => return unit(text),
        other => other,
    };
    Ok((plain, first.len_utf8()))
}

/// Reads `\uXXXX`, or two of them for a surrogate pair.
fn unit(text: &str) -> Result<(char, usize), String> {
    let half = |at: usize| u16::from_str_radix(text.get(at..at + 4)?, 16).ok();
    let pair = || {
        let second = text[5..].starts_with("\\u").then(|| half(7))??;
        char::decode_utf16([half(1)?, second]).next()?.ok()
    };
    match half(1) {
        Some(0xD800..=0xDBFF) => pair().map(|char| (char, 11)),
        _ => return code(text, 1, 4),
    }
    .ok_or_else(|| "`\\u` stands for half a character here: its other half is missing".to_owned())
}

/// Reads a character by its hexadecimal number, `digits` long, which begins at `at`.
fn code(text: &str, at: usize, digits: usize) -> Result<(char, usize), String> {
    let hex = text.get(at..at + digits).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
    hex.and_then(|hex| char::from_u32(u32::from_str_radix(hex, 16).ok()?))
        .map(|char| (char, at + digits))
        .ok_or_else(|| "this escape names no character: write `\\u` and four hex digits".to_owned())
}

/// Returns the text with single backslashes for double ones outside of quotes; `None` if there are none.
pub(super) fn with_single_backslashes(text: &str) -> Option<String> {
    let mut made = String::with_capacity(text.len());
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        made.push(char);
        match (quote, char) {
            (Some(_), '\\') => made.extend(chars.next()),
            (Some(close), _) if char == close => quote = None,
            (None, '\'' | '"' | '`') => quote = Some(char),
            (None, '\\') => _ = chars.next_if_eq(&'\\'),
            _ => {}
        }
    }
    (made.len() < text.len()).then_some(made)
}

/// Compiles a regular expression, or returns the reason that it is none.
pub(super) fn pattern(pattern: &str, flags: &str) -> Result<RegexPattern, String> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE);
    let mut all = false;
    for flag in flags.chars() {
        match flag {
            'g' => all = true,
            'i' => _ = builder.case_insensitive(true),
            'm' => _ = builder.multi_line(true),
            's' => _ = builder.dot_matches_new_line(true),
            other => {
                return Err(format!(
                    "unknown flag `{other}` of a regular expression; the flags are g, i, m and s"
                ));
            }
        }
    }
    match builder.build() {
        Ok(regex) => Ok(RegexPattern { regex, all }),
        Err(regex::Error::CompiledTooBig(_)) => Err("the regular expression is too large".into()),
        Err(error) => Err(format!("the regular expression cannot be read: {}", reason(&error))),
    }
}

/// Returns the reason of an error: the last line of the crate's message, after a drawing.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_escapes_match_javascript() {
        let table = [
            (r"'a'", "a"),
            (r"''", ""),
            (r"'a\nb\t\r'", "a\nb\t\r"),
            (r#"'\'\"\\\/\q'"#, "'\"\\/q"),
            (r"'\x41\u00e9\u{1F600}'", "Aé😀"),
            (r"'\ud83d\ude00!'", "😀!"),
            (r"'\é'", "é"),
        ];
        for (quoted, said) in table {
            assert_eq!(string(quoted).as_deref(), Ok(said), "{quoted}");
        }
        for wrong in
            [r"'\x4'", r"'\u12'", r"'\u{}'", r"'\u{110000}'", r"'\ud83d'", r"'\u{41'", r"'\u+123'"]
        {
            assert!(string(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whole_numbers_stay_integers_if_they_fit() {
        assert_eq!(number("7"), Some(Value::from(7)));
        assert_eq!(number("7.5"), Some(Value::from(7.5)));
        assert_eq!(number("1e3"), Some(Value::from(1000)));
        assert_eq!(number("9223372036854775808"), Some(Value::from(9_223_372_036_854_775_808.0)));
        assert_eq!(number("1e999"), None);
    }

    #[test]
    fn invalid_regex_is_error_with_reason() {
        let wrong = |text, flags| pattern(text, flags).expect_err("no pattern");
        assert_eq!(wrong("(a", ""), "the regular expression cannot be read: unclosed group");
        assert!(wrong("(?=a)", "").contains("look-around"), "{}", wrong("(?=a)", ""));
        assert!(wrong(r"(a)\1", "").contains("backreferences"), "{}", wrong(r"(a)\1", ""));
        assert!(wrong("a", "gx").contains("unknown flag `x`"));
        assert_eq!(wrong("(a{1000}){1000}", ""), "the regular expression is too large");
        assert!(pattern("a.*b", "gims").is_ok_and(|pattern| pattern.all));
    }
}
