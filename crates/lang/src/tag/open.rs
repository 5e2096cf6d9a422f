//! Reads the open tag and its attributes.
//!
//! `grammar/tag.pest` is what an open tag is. A reply can be nothing but tags, or be full of unreadable ones, and a
//! parser that pest generates takes a microsecond for each. So the two passes here are written by hand: [`end`] accepts
//! or rejects without a copy, and [`attributes`] copies what was accepted. A property test holds both to the grammar.

use std::ops::Range;

use memchr::memchr;

/// The longest open tag, attributes included, in bytes.
pub const MAX_OPEN_TAG: usize = 64 * 1024;

/// Returns the length of the open tag at the start of `rest`, if it can be read; `name` is the length of its name.
pub(super) fn end(rest: &str, name: usize) -> Option<usize> {
    let bytes = &rest.as_bytes()[..rest.len().min(MAX_OPEN_TAG)];
    let mut at = 1 + name;
    loop {
        match next_part(bytes, at)? {
            OpenTagPart::End(end) => return Some(end),
            OpenTagPart::Attribute { value, .. } => at = value.end + 1,
        }
    }
}

/// Returns the attributes of the open tag at the start of `rest`, which can be read, in their order.
pub(super) fn attributes(rest: &str, name: usize) -> OpenTagAttributes<'_> {
    OpenTagAttributes { rest, at: 1 + name }
}

/// The attributes of an open tag, read one after another.
#[derive(Clone)]
pub(super) struct OpenTagAttributes<'text> {
    rest: &'text str,
    at: usize,
}

impl Iterator for OpenTagAttributes<'_> {
    type Item = (String, String);

    fn next(&mut self) -> Option<Self::Item> {
        match next_part(self.rest.as_bytes(), self.at)? {
            OpenTagPart::End(_) => None,
            OpenTagPart::Attribute { key, value } => {
                self.at = value.end + 1;
                Some((self.rest[key].to_owned(), unescape(&self.rest[value])))
            }
        }
    }
}

/// The next part of an open tag.
enum OpenTagPart {
    /// The `>`; the offset after it.
    End(usize),
    /// An attribute: the places of its key and of its value, without the quotes.
    Attribute { key: Range<usize>, value: Range<usize> },
}

/// Reads the part of an open tag that follows `at`; `None` if it cannot be read.
fn next_part(bytes: &[u8], at: usize) -> Option<OpenTagPart> {
    let key = after_white(bytes, at);
    match *bytes.get(key)? {
        b'>' => return Some(OpenTagPart::End(key + 1)),
        b'_' | b'a'..=b'z' | b'A'..=b'Z' if key > at => {}
        _ => return None,
    }
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let key = key..key + run(&bytes[key..], part);
    let equals = after_white(bytes, key.end);
    if *bytes.get(equals)? != b'=' {
        return None;
    }
    let quoted = after_white(bytes, equals + 1);
    let quote = *bytes.get(quoted)?;
    if !matches!(quote, b'"' | b'\'') {
        return None;
    }
    let value = quoted + 1;
    let value = value..value + run(&bytes[value..], |&byte| byte != quote && byte != b'<');
    (*bytes.get(value.end)? == quote).then_some(OpenTagPart::Attribute { key, value })
}

fn after_white(bytes: &[u8], at: usize) -> usize {
    at + run(&bytes[at..], |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

fn run(bytes: &[u8], belongs: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !belongs(byte)).unwrap_or(bytes.len())
}

/// Resolves the five entities of XML; any other `&` stays.
fn unescape(value: &str) -> String {
    if memchr(b'&', value.as_bytes()).is_none() {
        return value.to_owned();
    }
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
    //! The two passes and the grammar, which must agree on every open tag.

    use pest::Parser;
    use pest::iterators::Pair;
    use proptest::prelude::*;

    use self::grammar::{Grammar, Rule};
    use super::*;

    /// The parser that pest generates.
    mod grammar {
        #[derive(pest_derive::Parser)]
        #[grammar = "../../grammar/tag.pest"]
        pub(super) struct Grammar;
    }

    /// Returns the length of an open tag and its attributes, as the grammar reads them.
    fn in_grammar(text: &str) -> Option<(usize, Vec<(String, String)>)> {
        let open = Grammar::parse(Rule::open, text).ok()?.next()?;
        let end = open.as_span().end();
        let attributes = open.into_inner().filter(|pair| pair.as_rule() == Rule::attribute);
        Some((end, attributes.filter_map(attribute).collect()))
    }

    fn attribute(pair: Pair<'_, Rule>) -> Option<(String, String)> {
        let mut parts = pair.into_inner();
        let key = parts.next()?.as_str().to_owned();
        Some((key, unescape(parts.next()?.as_str())))
    }

    const PIECES: [&str; 17] = [
        " ", "\t", "\n", "a", "_", "-", ".", "7", "=", "='", "'", "\"", "=\"x\"", " b='1'", ">",
        "&amp;", "é",
    ];

    proptest! {
        #[test]
        fn open_tags_are_read_as_the_grammar_reads_them(
            blank in prop::bool::ANY,
            pieces in prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..12),
        ) {
            let text = format!("<call{}{}", if blank { " " } else { ">" }, pieces.concat());
            let name = "call".len();
            let read = end(&text, name).map(|end| (end, attributes(&text, name).collect::<Vec<_>>()));
            prop_assert_eq!(read, in_grammar(&text));
        }
    }
}
