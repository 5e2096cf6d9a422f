//! Finds the transition tags in a reply, in linear time on any input.
//!
//! memchr runs to the next `<`, and the open tag is read alone, on a slice that ends at the following `<` and is
//! capped: a grammar over whole replies would be slow on prose and quadratic on unclosed tags. A body that is a
//! file name ends at the next `<`, whatever that is. Only `<result>` needs a search for its close; the outcome is
//! cached.
//!
//! If several tags are valid at once, all are forks, and each can fork as many agents as its list has entries.
//! Therefore only the first tags of a flood are read and reported: [`MAX_TAGS`], or fewer if their attributes are
//! very long. The report says that there are more.

use std::ops::Range;

use memchr::memmem;

use raymond_model::policy::ReplyTags;
use raymond_model::transition::{InvalidTransition, TagName, Transition};

pub mod misspelt;
mod open;
pub mod print;

pub use open::MAX_OPEN_TAG;
use open::OpenTagAttributes;

/// The maximum number of tags of one reply that are read; later ones are ignored.
pub const MAX_TAGS: usize = 100;

/// The maximum number of near misses that an error names.
const NEAR_MISSES: usize = 3;

/// Finds the complete tags in a reply, and its near misses.
pub fn find(text: &str) -> ReplyTags {
    let mut finder = TagFinder::new(text);
    let mut tags = Vec::new();
    let mut near_misses: Vec<NearMiss<'_>> = Vec::new();
    let mut lines = Vec::new();
    let mut at = 0;
    let mut read = 0;
    let mut cut = false;
    while let Some(start) = next_open(text.as_bytes(), at) {
        at = start + 1;
        let Some(name) = name_at(text, start) else { continue };
        if let Some(printed) = print::at(text, start, name) {
            at = printed.end;
            lines.push(printed.text);
            continue;
        }
        match finder.complete(start, name) {
            Ok(_) if tags.len() == MAX_TAGS || (tags.len() > 1 && read > MAX_OPEN_TAG) => {
                cut = true;
                break;
            }
            Ok(found) => {
                at = found.end;
                read += found.open;
                let body = TagName::body_of(name, found.body);
                tags.push(Transition::from_parts(found.tag, found.attributes, &body));
            }
            Err(near) if near_misses.len() < NEAR_MISSES && !near_misses.contains(&near) => {
                near_misses.push(near);
            }
            Err(_) => {}
        }
    }
    let shown = print::shown(&lines);
    ReplyTags {
        tags,
        cut,
        shown,
        near_misses: near_misses.iter().map(ToString::to_string).collect(),
    }
}

/// A complete tag in a text, and its range of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenTag {
    /// The requested transition.
    pub transition: Result<Transition, InvalidTransition>,
    /// The name of the tag.
    pub tag: TagName,
    /// The text between the open tag and its close.
    pub body: Range<usize>,
    /// The place of the tag, as a range of bytes.
    pub span: Range<usize>,
}

/// Returns all complete tags in a text that shows how they are written, such as a prompt.
pub fn written(text: &str) -> Vec<WrittenTag> {
    let mut finder = TagFinder::new(text);
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(start) = next_open(text.as_bytes(), at) {
        at = start + 1;
        let Some(name) = name_at(text, start) else { continue };
        if let Some(printed) = print::at(text, start, name) {
            at = printed.end;
            continue;
        }
        if let Ok(found) = finder.complete(start, name) {
            at = found.end;
            let body = start + found.open..start + found.open + found.body.len();
            let written = TagName::body_of(name, found.body);
            let transition = Transition::from_parts(found.tag, found.attributes, &written);
            tags.push(WrittenTag { transition, tag: found.tag, body, span: start..at });
        }
    }
    tags
}

/// A reason that a text is no tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NearMiss<'text> {
    #[error("<{0}>, which is not a tag{hint}", hint = if misspelt::RESULT_NAMES.contains(.0) { "; did you mean <result>…</result>?" } else { "" })]
    Unknown(&'text str),
    #[error("a <{0}> without its </{0}>")]
    Unclosed(&'text str),
    #[error("a <{0}> whose attributes cannot be read")]
    Unreadable(&'text str),
}

/// Returns the offset of the next `<`. Near ones are found by a scan, which beats a search.
fn next_open(bytes: &[u8], from: usize) -> Option<usize> {
    const SCANNED_BYTES: usize = 12;
    let rest = &bytes[from..];
    let (near, far) = rest.split_at(rest.len().min(SCANNED_BYTES));
    let open = |&byte: &u8| byte == b'<';
    let found =
        near.iter().position(open).or_else(|| Some(SCANNED_BYTES + memchr::memchr(b'<', far)?));
    found.map(|offset| from + offset)
}

/// Returns the name of the tag that opens at `start`, if it is followed by white space, `>` or `/>`.
fn name_at(text: &str, start: usize) -> Option<&str> {
    let rest = &text[start + 1..];
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let length = rest.bytes().take(64).take_while(part).count();
    let followed = matches!(rest.as_bytes().get(length), Some(b'>' | b' ' | b'\t' | b'\r' | b'\n'))
        || rest[length..].starts_with("/>");
    (length > 0 && followed).then(|| &rest[..length])
}

/// A complete tag.
struct FoundTag<'text> {
    tag: TagName,
    attributes: OpenTagAttributes<'text>,
    body: &'text str,
    /// The length of the open tag.
    open: usize,
    /// The end of the close tag.
    end: usize,
}

/// A search through one text that remembers earlier results.
struct TagFinder<'text> {
    text: &'text str,
    close_of_result: memmem::Finder<'static>,
    result_close: CloseTagSearch,
}

/// The next `</result>`: where it begins and where it ends.
#[derive(Clone, Copy)]
enum CloseTagSearch {
    NotYet,
    Found(usize, usize),
    NoneLeft,
}

impl<'text> TagFinder<'text> {
    fn new(text: &'text str) -> Self {
        let close_of_result = memmem::Finder::new(b"</result");
        Self { text, close_of_result, result_close: CloseTagSearch::NotYet }
    }

    /// Reads the tag that opens at `start` up to its close. The close is searched first, because that is quick;
    /// attributes are read only of real tags.
    fn complete(
        &mut self,
        start: usize,
        name: &'text str,
    ) -> Result<FoundTag<'text>, NearMiss<'text>> {
        let tag = TagName::from_name(name).ok_or(NearMiss::Unknown(name))?;
        let after_name = start + 1 + name.len();
        let close = if tag == TagName::Result {
            self.result_close_after(after_name)
        } else {
            next_close(self.text, after_name, name)
        };
        let (body_end, end) = close.ok_or(NearMiss::Unclosed(name))?;
        let rest = &self.text[start..];
        let open = open::end(rest, name.len()).ok_or(NearMiss::Unreadable(name))?;
        let attributes = open::attributes(rest, name.len());
        Ok(FoundTag { tag, attributes, body: &self.text[start + open..body_end], open, end })
    }

    /// Returns the close of a result: the first `</result>`, whatever stands before it.
    fn result_close_after(&mut self, from: usize) -> Option<(usize, usize)> {
        match self.result_close {
            CloseTagSearch::Found(at, end) if at >= from => return Some((at, end)),
            CloseTagSearch::NoneLeft => return None,
            _ => {}
        }
        let mut closes = self.close_of_result.find_iter(&self.text.as_bytes()[from..]);
        let found = closes.find_map(|offset| {
            Some((from + offset, close_at(self.text, from + offset, "result")?))
        });
        self.result_close =
            found.map_or(CloseTagSearch::NoneLeft, |(at, end)| CloseTagSearch::Found(at, end));
        found
    }
}

/// Returns the close of a body that is a file name: the next `<` has to be it.
fn next_close(text: &str, from: usize, name: &str) -> Option<(usize, usize)> {
    let body_end = next_open(text.as_bytes(), from)?;
    Some((body_end, close_at(text, body_end, name)?))
}

/// Returns the end of `</name>`, if it stands at `at`; white space before the `>` is allowed.
fn close_at(text: &str, at: usize, name: &str) -> Option<usize> {
    let rest = text[at..].strip_prefix("</")?.strip_prefix(name)?;
    let blank = rest.bytes().take(64).take_while(u8::is_ascii_whitespace).count();
    rest[blank..].starts_with('>').then(|| text.len() - rest.len() + blank + 1)
}

#[cfg(test)]
mod tests;
