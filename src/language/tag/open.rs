//! Reads the open tag and its attributes.
//!
//! Pest reads the attributes, on a slice that ends at the next `<` and is capped. A reply can be full of unreadable open tags, and pest takes a microsecond to reject each. Therefore [`end`]
//! rejects them first, in one pass without a copy; a property test holds it to the grammar.

use memchr::memchr;
use pest::Parser;
use pest::iterators::Pair;

/// The code that pest generates; none of it leaves this file.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "grammar/tag.pest"]
    pub(super) struct Grammar;
}
use grammar::{Grammar, Rule};

/// The longest open tag, attributes included, in bytes.
pub const MAX_OPEN_TAG: usize = 64 * 1024;

/// A tag's attributes, in the order in which they stand.
pub(super) type TagAttributes = Vec<(String, String)>;

/// Returns the length of the open tag at the start of `rest`, if it can be read; `name` is the length of its name.
pub(super) fn end(rest: &str, name: usize) -> Option<usize> {
    let bytes = &rest.as_bytes()[..rest.len().min(MAX_OPEN_TAG)];
    let mut at = 1 + name;
    loop {
        let key = after_white(bytes, at);
        match *bytes.get(key)? {
            b'>' => return Some(key + 1),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' if key > at => {}
            _ => return None,
        }
        let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let equals = after_white(bytes, key + run(&bytes[key..], part));
        if *bytes.get(equals)? != b'=' {
            return None;
        }
        let value = after_white(bytes, equals + 1);
        let quote = *bytes.get(value)?;
        if !matches!(quote, b'"' | b'\'') {
            return None;
        }
        at = value + 1 + run(&bytes[value + 1..], |&byte| byte != quote && byte != b'<');
        if *bytes.get(at)? != quote {
            return None;
        }
        at += 1;
    }
}

fn after_white(bytes: &[u8], at: usize) -> usize {
    at + run(&bytes[at..], |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

fn run(bytes: &[u8], belongs: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(byte)).unwrap_or(bytes.len())
}

/// Returns the attributes of the open tag `open`.
pub(super) fn attributes(open: &str) -> Option<TagAttributes> {
    let open = Grammar::parse(Rule::open, open).ok()?.next()?;
    let attributes = open.into_inner().filter(|pair| pair.as_rule() == Rule::attribute);
    Some(attributes.filter_map(attribute).collect())
}

fn attribute(pair: Pair<'_, Rule>) -> Option<(String, String)> {
    let mut parts = pair.into_inner();
    let key = parts.next()?.as_str().to_owned();
    Some((key, unescape(parts.next()?.as_str())))
}

/// Resolves the five entities of XML; any other `&` stays.
fn unescape(value: &str) -> String {
    let mut plain = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr(b'&', rest.as_bytes()) {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(5).position(|byte| byte == b';');
        let char = match end.map_or("", |end| &rest[..end]) {
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            "amp" => '&',
            _ => {
                plain.push('&');
                continue;
            }
        };
        plain.push(char);
        rest = &rest[end.map_or(0, |end| end + 1)..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    //! The look ahead and the grammar, which must agree on every open tag.

    use proptest::prelude::*;

    use super::*;

    fn in_grammar(text: &str) -> Option<usize> {
        let open = Grammar::parse(Rule::open, text).ok()?.next()?;
        Some(open.as_span().end())
    }

    const PIECES: [&str; 17] = [
        " ", "\t", "\n", "a", "_", "-", ".", "7", "=", "='", "'", "\"", "=\"x\"", " b='1'", ">",
        "&amp;", "é",
    ];

    proptest! {
        #[test]
        fn the_look_ahead_says_what_the_grammar_says(
            blank in prop::bool::ANY,
            pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..12),
        ) {
            let text = format!("<call{}{}", if blank { " " } else { ">" }, pieces.concat());
            prop_assert_eq!(end(&text, "call".len()), in_grammar(&text));
        }
    }
}
