//! Finds the transition tags in a reply, in linear time on any input.
//!
//! memchr runs to the next `<`, and pest reads the open tag alone, on a slice that ends at the
//! following `<` and is capped: a grammar over whole replies would be slow on prose and quadratic
//! on unclosed tags. A body that is a file name ends at the next `<`, whatever that is. Only
//! `<result>` has to be searched for its close, and once there is none, none is sought again.

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
    let mut reading = Reading::default();
    let mut no_result_closes = false;
    let mut at = 0;
    while let Some(offset) = memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + offset;
        let Some(name) = name_at(text, start) else {
            at = start + 1;
            continue;
        };
        match complete(text, start, name, &mut no_result_closes) {
            Ok((tag, attributes, body, end)) => {
                reading.tags.push(Transition::from_parts(tag, attributes, body));
                at = end;
            }
            Err(near_miss) => {
                if reading.near_misses.len() < NEAR_MISSES
                    && !reading.near_misses.contains(&near_miss)
                {
                    reading.near_misses.push(near_miss);
                }
                at = start + 1;
            }
        }
    }
    reading
}

/// The name of what opens at `start`, if it is followed by white space or `>`.
fn name_at(text: &str, start: usize) -> Option<&str> {
    let rest = &text[start + 1..];
    let length = rest
        .bytes()
        .take(64)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        .count();
    let followed = matches!(rest.as_bytes().get(length), Some(b'>' | b' ' | b'\t' | b'\r' | b'\n'));
    (length > 0 && followed).then(|| &rest[..length])
}

type Complete<'text> = (Tag, Vec<(String, String)>, &'text str, usize);

/// Reads the tag that opens at `start` up to its close, or says what is missing to make it one.
fn complete<'text>(
    text: &'text str,
    start: usize,
    name: &str,
    no_result_closes: &mut bool,
) -> Result<Complete<'text>, String> {
    let tag = Tag::from_name(name).ok_or_else(|| format!("<{name}>, which is not a tag"))?;
    let (attributes, body_start) = open_tag(text, start)
        .ok_or_else(|| format!("a <{name}> whose attributes cannot be read"))?;
    let (body_end, end) = if tag == Tag::Result {
        result_close(text, body_start, no_result_closes)
    } else {
        next_close(text, body_start, name)
    }
    .ok_or_else(|| format!("a <{name}> without its </{name}>"))?;
    Ok((tag, attributes, &text[body_start..body_end], end))
}

/// The attributes of the tag that opens at `start`, and where its body begins.
fn open_tag(text: &str, start: usize) -> Option<(Vec<(String, String)>, usize)> {
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

/// The close of a result: the first `</result>`, whatever stands before it.
fn result_close(text: &str, from: usize, none_left: &mut bool) -> Option<(usize, usize)> {
    if *none_left {
        return None;
    }
    let found = memmem::find_iter(&text.as_bytes()[from..], b"</result")
        .find_map(|offset| Some((from + offset, close_at(text, from + offset, "result")?)));
    *none_left = found.is_none();
    found
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
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let entities =
            [("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&apos;", '\''), ("&amp;", '&')];
        let (entity, char) =
            entities.into_iter().find(|(entity, _)| rest.starts_with(entity)).unwrap_or(("&", '&'));
        plain.push(char);
        rest = &rest[entity.len()..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests;
