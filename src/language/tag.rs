//! Finds the transition tags in a reply, in linear time on any input.
//!
//! memchr runs to the next `<`, and pest reads the open tag alone, on a slice that ends at the
//! following `<` and is capped: a grammar over whole replies would be slow on prose and quadratic
//! on unclosed tags. A body that is a file name ends at the next `<`, whatever that is. Only
//! `<result>` has to be searched for its close, and what was found, or that there is none, is kept.

use memchr::{memchr, memmem};
use pest::Parser;
use pest::iterators::Pair;

use crate::domain::policy::Reading;
use crate::domain::transition::{Tag, Transition};

/// What pest generates; none of it leaves this file.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "grammar/tag.pest"]
    pub(super) struct Grammar;
}
use grammar::{Grammar, Rule};

/// The longest open tag, attributes included, in bytes.
pub const LONGEST_OPEN_TAG: usize = 64 * 1024;

/// How many things that only look like a tag are named in an error.
const NEAR_MISSES: usize = 3;

/// Finds all complete tags in a reply, and what only looks like one.
#[must_use]
pub fn find(text: &str) -> Reading {
    let mut finder = Finder { text, result_close: Sought::NotYet };
    let mut tags = Vec::new();
    let mut near_misses: Vec<NearMiss<'_>> = Vec::new();
    let mut at = 0;
    while let Some(offset) = memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + offset;
        at = start + 1;
        let Some(name) = name_at(text, start) else { continue };
        match finder.complete(start, name) {
            Ok((tag, attributes, body, end)) => {
                tags.push(Transition::from_parts(tag, attributes, body));
                at = end;
            }
            Err(near) if near_misses.len() < NEAR_MISSES && !near_misses.contains(&near) => {
                near_misses.push(near);
            }
            Err(_) => {}
        }
    }
    Reading { tags, near_misses: near_misses.iter().map(ToString::to_string).collect() }
}

/// What keeps a text from being a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NearMiss<'text> {
    #[error("<{0}>, which is not a tag")]
    Unknown(&'text str),
    #[error("a <{0}> without its </{0}>")]
    Unclosed(&'text str),
    #[error("a <{0}> whose attributes cannot be read")]
    Unreadable(&'text str),
}

/// The name of what opens at `start`, if it is followed by white space or `>`.
fn name_at(text: &str, start: usize) -> Option<&str> {
    let rest = &text[start + 1..];
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = rest.bytes().take(64).take_while(part).count();
    let followed = matches!(rest.as_bytes().get(length), Some(b'>' | b' ' | b'\t' | b'\r' | b'\n'));
    (length > 0 && followed).then(|| &rest[..length])
}

type Attributes = Vec<(String, String)>;

/// A search through one text, which remembers what need not be sought twice.
struct Finder<'text> {
    text: &'text str,
    result_close: Sought,
}

/// The next `</result>`: where it begins and where it ends.
#[derive(Clone, Copy)]
enum Sought {
    NotYet,
    Found(usize, usize),
    NoneLeft,
}

impl<'text> Finder<'text> {
    /// Reads the tag that opens at `start` up to its close. The close is sought first, because that
    /// is quick; the attributes are read only of what can be a tag at all.
    fn complete(
        &mut self,
        start: usize,
        name: &'text str,
    ) -> Result<(Tag, Attributes, &'text str, usize), NearMiss<'text>> {
        let tag = Tag::from_name(name).ok_or(NearMiss::Unknown(name))?;
        let after_name = start + 1 + name.len();
        let close = if tag == Tag::Result {
            self.result_close_after(after_name)
        } else {
            next_close(self.text, after_name, name)
        };
        let (body_end, end) = close.ok_or(NearMiss::Unclosed(name))?;
        let (attributes, body_start) = if self.text.as_bytes().get(after_name) == Some(&b'>') {
            (Vec::new(), after_name + 1)
        } else {
            open_tag(self.text, start).ok_or(NearMiss::Unreadable(name))?
        };
        Ok((tag, attributes, &self.text[body_start..body_end], end))
    }

    /// The close of a result: the first `</result>`, whatever stands before it.
    fn result_close_after(&mut self, from: usize) -> Option<(usize, usize)> {
        if let Sought::Found(at, end) = self.result_close
            && at >= from
        {
            return Some((at, end));
        }
        if let Sought::NoneLeft = self.result_close {
            return None;
        }
        let found =
            memmem::find_iter(&self.text.as_bytes()[from..], b"</result").find_map(|offset| {
                Some((from + offset, close_at(self.text, from + offset, "result")?))
            });
        self.result_close = found.map_or(Sought::NoneLeft, |(at, end)| Sought::Found(at, end));
        found
    }
}

/// The attributes of the tag that opens at `start`, and where its body begins.
fn open_tag(text: &str, start: usize) -> Option<(Attributes, usize)> {
    let rest = &text[start..];
    let reach = memchr(b'<', &rest.as_bytes()[1..]).map_or(rest.len(), |next| next + 1);
    let slice = &rest[..rest.floor_char_boundary(reach.min(LONGEST_OPEN_TAG))];
    let open = Grammar::parse(Rule::open, slice).ok()?.next()?;
    let body_start = start + open.as_span().end();
    let attributes = open.into_inner().filter(|pair| pair.as_rule() == Rule::attribute);
    Some((attributes.filter_map(attribute).collect(), body_start))
}

fn attribute(pair: Pair<'_, Rule>) -> Option<(String, String)> {
    let mut parts = pair.into_inner();
    let key = parts.next()?.as_str().to_owned();
    Some((key, unescape(parts.next()?.as_str())))
}

/// The close of a body that is a file name: the next `<` has to be it.
fn next_close(text: &str, from: usize, name: &str) -> Option<(usize, usize)> {
    let body_end = from + memchr(b'<', &text.as_bytes()[from..])?;
    Some((body_end, close_at(text, body_end, name)?))
}

/// Where `</name>` ends, if it stands at `at`; white space before the `>` is allowed.
fn close_at(text: &str, at: usize, name: &str) -> Option<usize> {
    let rest = text[at..].strip_prefix("</")?.strip_prefix(name)?;
    let blank = rest.bytes().take(64).take_while(u8::is_ascii_whitespace).count();
    rest[blank..].starts_with('>').then(|| text.len() - rest.len() + blank + 1)
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
mod tests;
