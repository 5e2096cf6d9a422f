//! Finds the transition tags in a reply, in linear time on any input; also near misses of tags, and texts to print.
//!
//! memchr runs to the next `<`, and the open tag is read alone, on a slice that ends at the following `<` and is
//! capped: a grammar over whole replies would be slow on prose and quadratic on unclosed tags. A body that is a
//! file name ends at the next `<`, even if that is not its close. Only `<result>` needs a search for its close, and
//! the outcome is cached.
//!
//! If several tags are valid at once, all are forks, and each can fork as many agents as its list has entries.
//! Therefore only the first tags of a flood are read and reported: [`MAX_TAGS`], or fewer if their attributes are
//! very long. The report says that there are more.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use memchr::{memchr, memmem};
use raymond_model::id::StateName;
use raymond_model::policy::ReplyTags;
use raymond_model::tool_call::beginning;
use raymond_model::transition::{InvalidTransition, TagName, Transition};

use crate::hint::{closest_slip, is_slip};

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
        if let Some(printed) = printed_at(text, start, name) {
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
    let shown = shown(&lines);
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
        if let Some(printed) = printed_at(text, start, name) {
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

/// The reason why a text is not a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NearMiss<'text> {
    #[error("<{0}>, which is not a tag{hint}", hint = if RESULT_NAMES.contains(.0) { "; did you mean <result>…</result>?" } else { "" })]
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
        let open = open_tag_end(rest, name.len()).ok_or(NearMiss::Unreadable(name))?;
        let attributes = attributes(rest, name.len());
        Ok(FoundTag { tag, attributes, body: &self.text[start + open..body_end], open, end })
    }

    /// Returns the close of a result: the first `</result>`, regardless of the text before it.
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

// Finds near misses of tags in a text that shows how tags are written, such as a prompt.
//
// A text may mention `<goto>`, and may have tags of other kinds. Therefore a near miss counts only where it is
// written like a tag that leads somewhere: around a file name, or with its own close.

/// Names that resemble those of tags, and that prompts and HTML use for other things.
const OTHER_NAMES: [&str; 18] = [
    "all",
    "calls",
    "cell",
    "fall",
    "folk",
    "for",
    "form",
    "forks",
    "fraction",
    "functions",
    "hall",
    "junction",
    "mask",
    "preset",
    "rest",
    "results",
    "task",
    "work",
];

/// Names that prompts for other programs give to the end of an agent.
const RESULT_NAMES: [&str; 4] = ["return", "done", "end", "finish"];

/// A text that is nearly a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisspeltTag {
    pub mistake: TagMistake,
    /// The state that the text encloses, if it is the name of one.
    pub encloses: Option<StateName>,
    /// The offset of its `<`.
    pub start: usize,
}

/// The mistake in a text that is nearly a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagMistake {
    /// No tag has this name.
    UnknownName {
        /// The name as it is written.
        written: String,
        /// The tag with a similar name.
        meant: TagName,
    },
    /// The close tag is missing.
    Unclosed(TagName),
    /// The attributes cannot be read.
    UnreadableAttributes(TagName),
    /// The state is an attribute, and stands not between the tags.
    TargetAttribute(TagName, String),
    /// Nothing can stand between the tags: `<reset/>`.
    Empty(TagName),
}

impl fmt::Display for TagMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { written, meant } => {
                write!(f, "<{written}>, which is not a tag; did you mean <{meant}>?")
            }
            Self::Unclosed(tag) => write!(f, "a <{tag}> without its </{tag}>"),
            Self::UnreadableAttributes(tag) => {
                write!(f, "a <{tag}> whose attributes cannot be read; write NAME=\"TEXT\"")
            }
            Self::Empty(tag) => {
                let is_text = matches!(tag, TagName::Result | TagName::Ask);
                let body = if is_text { "TEXT" } else { "FILE.md" };
                write!(f, "<{tag}/>, which is not a tag; write <{tag}>{body}</{tag}>")
            }
            Self::TargetAttribute(tag, target) => {
                write!(
                    f,
                    "<{tag} target=\"{target}\">, which is not a tag; the state stands between the tags: <{tag}>{target}</{tag}>"
                )
            }
        }
    }
}

/// Returns the near misses of tags in a text, in their order.
pub fn misspelt(text: &str) -> Vec<MisspeltTag> {
    let mut finder = TagFinder::new(text);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = next_open(text.as_bytes(), at) {
        at = start + 1;
        let Some(name) = name_at(text, start) else { continue };
        let near = match finder.complete(start, name) {
            Ok(complete) => {
                at = complete.end;
                continue;
            }
            Err(near) => near,
        };
        if let Some(found_target) = with_target(text, start, name) {
            found.push(found_target);
            continue;
        }
        let is_empty =
            text[start..].split_inclusive('>').next().is_some_and(|tag| tag.ends_with("/>"));
        if let Some(tag) = TagName::from_name(name).filter(|_| is_empty) {
            found.push(MisspeltTag { mistake: TagMistake::Empty(tag), encloses: None, start });
            continue;
        }
        let Some(body) = body(text, start, name) else { continue };
        let (inside, follows) = (&text[body.clone()], &text[body.end..]);
        let encloses = state_in(inside).or_else(|| started_state(inside, &near));
        let mistake = match (near, TagName::from_name(name)) {
            (NearMiss::Unknown(_), _) => unknown(name, follows, encloses.is_some()),
            (NearMiss::Unclosed(_), Some(tag)) => {
                let is_meant = encloses.is_some() || is_closed_wrongly(name, inside, follows);
                is_meant.then_some(TagMistake::Unclosed(tag))
            }
            (NearMiss::Unreadable(_), Some(tag)) => Some(TagMistake::UnreadableAttributes(tag)),
            (NearMiss::Unclosed(_) | NearMiss::Unreadable(_), None) => None,
        };
        if let Some(mistake) = mistake {
            found.push(MisspeltTag { mistake, encloses, start });
            // What stands in place of the close tag is not another mistake.
            at = body.end + usize::from(follows.starts_with('<'));
        }
    }
    found
}

/// Returns the mistake of a tag that leads somewhere and names the state as an attribute.
fn with_target(text: &str, start: usize, name: &str) -> Option<MisspeltTag> {
    let leads_on = |tag: &TagName| !matches!(tag, TagName::Result | TagName::Ask);
    let tag = TagName::from_name(name).filter(leads_on)?;
    let rest = &text[start..];
    let closes_itself = open_tag_end(rest, name.len()).is_none();
    // `<goto target="A.md"/>` is read as if its slash were a blank.
    let open = rest.split_inclusive('>').next().filter(|_| closes_itself);
    let open = open.map_or(Cow::Borrowed(rest), |open| Cow::Owned(open.replace("/>", " >")));
    let close = open_tag_end(&open, name.len())?;
    let (_, target) = attributes(&open, name.len()).find(|(key, _)| key == "target")?;
    let follows = rest[close..].chars().next();
    if follows.is_some_and(|next| !next.is_whitespace() && next != '<') {
        return None;
    }
    let encloses = StateName::parse(target.trim()).ok();
    Some(MisspeltTag { mistake: TagMistake::TargetAttribute(tag, target), encloses, start })
}

/// Returns the text between an open tag and the next `<` or the end of the line; `None` if it is blank.
fn body(text: &str, start: usize, name: &str) -> Option<Range<usize>> {
    let rest = &text[start..];
    let open = open_tag_end(rest, name.len()).or_else(|| Some(rest.find('>')? + 1))?;
    let length = rest[open..].find(['<', '\n']).unwrap_or(rest.len() - open);
    let body = start + open..start + open + length;
    (!text[body.clone()].trim().is_empty()).then_some(body)
}

/// Returns the state that a body names.
fn state_in(body: &str) -> Option<StateName> {
    StateName::parse(body.trim()).ok().filter(StateName::is_state_by_ending)
}

/// Returns the state that the body of an unclosed tag begins with: the sentence goes on behind it.
fn started_state(body: &str, near: &NearMiss<'_>) -> Option<StateName> {
    let is_unclosed =
        matches!(near, NearMiss::Unclosed(_)) && !body.starts_with(char::is_whitespace);
    let word = body.split_whitespace().next().filter(|_| is_unclosed)?;
    state_in(word.trim_end_matches(|c: char| c.is_ascii_punctuation()))
}

fn unknown(name: &str, follows: &str, encloses_state: bool) -> Option<TagMistake> {
    let lower = name.to_ascii_lowercase();
    if OTHER_NAMES.contains(&lower.as_str()) {
        return None;
    }
    // Around anything but a state a text is the result of an agent, if it is a tag at all.
    let first = (!encloses_state).then_some(TagName::Result);
    let names = first.into_iter().chain(TagName::ALL.iter().copied()).map(TagName::name);
    let foreign = RESULT_NAMES.contains(&lower.as_str()).then_some(TagName::Result);
    let meant = foreign.or_else(|| closest_slip(&lower, names).and_then(TagName::from_name))?;
    let is_result = meant == TagName::Result && follows.starts_with("</");
    if !encloses_state && !is_result {
        return None;
    }
    Some(TagMistake::UnknownName { written: name.to_owned(), meant })
}

/// Returns whether what follows a body is nearly the close tag: the open tag again, or a close with a similar name.
/// Prose speaks of tags, too, as in "write <goto> or <ask>", but with a space behind each.
fn is_closed_wrongly(name: &str, body: &str, follows: &str) -> bool {
    let named = |rest: &str| {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        rest[..length].to_ascii_lowercase()
    };
    match follows.strip_prefix("</") {
        Some(rest) => is_slip(&named(rest), name),
        None if body.starts_with(char::is_whitespace) => false,
        None => follows.strip_prefix('<').is_some_and(|rest| named(rest) == name),
    }
}

// Reads the open tag and its attributes.
//
// `grammar/tag.pest` is what an open tag is. A reply can be nothing but tags, or be full of unreadable ones, and a
// parser that pest generates takes a microsecond for each. So the two passes here are written by hand: `open_tag_end`
// accepts or rejects without a copy, and `attributes` copies what was accepted. A property test holds both to the
// grammar.

/// The longest open tag, attributes included, in bytes.
pub const MAX_OPEN_TAG: usize = 64 * 1024;

/// Returns the length of the open tag at the start of `rest`, if it can be read; `name` is the length of its name.
fn open_tag_end(rest: &str, name: usize) -> Option<usize> {
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
fn attributes(rest: &str, name: usize) -> OpenTagAttributes<'_> {
    OpenTagAttributes { rest, at: 1 + name }
}

/// The attributes of an open tag, read one after another.
#[derive(Clone)]
struct OpenTagAttributes<'text> {
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

// The texts that an agent shows to people while its workflow goes on: `<print>text</print>`.
//
// They are not transitions, and stand beside the one tag of a reply. Their number and length are bounded, because the
// journal keeps them.

/// The name of the tag.
pub const PRINT: &str = "print";

/// The most texts of one reply; later ones are left out.
pub const MAX_PRINTS: usize = 20;

/// The longest text, in bytes; the rest is left out.
pub const MAX_PRINT_BYTES: usize = 4096;

/// A complete tag.
struct PrintTag<'text> {
    /// The text between the open tag and its close.
    text: &'text str,
    /// The end of the close tag.
    end: usize,
}

/// Returns the tag that opens at `start` with this name, if it is one, has no attributes and is closed.
fn printed_at<'text>(text: &'text str, start: usize, name: &str) -> Option<PrintTag<'text>> {
    const CLOSE: &str = "</print>";
    let body = start + 1 + PRINT.len() + 1;
    if name != PRINT || text.as_bytes().get(body - 1) != Some(&b'>') {
        return None;
    }
    let length = memmem::find(&text.as_bytes()[body..], CLOSE.as_bytes())?;
    Some(PrintTag { text: &text[body..body + length], end: body + length + CLOSE.len() })
}

/// Returns the texts as people are shown them.
fn shown(texts: &[&str]) -> Vec<String> {
    let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
    texts.take(MAX_PRINTS).map(|text| beginning(text.to_owned(), MAX_PRINT_BYTES)).collect()
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod misspelt_tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        misspelt(text)
            .iter()
            .map(|near| {
                let state = near.encloses.as_ref().map_or("-", |state| state.as_str());
                format!("{} {state} {}", near.start, near.mistake)
            })
            .collect()
    }

    #[test]
    fn misspelt_unclosed_and_unreadable_tags_are_found() {
        let table = [
            ("<gotto>A.md</gotto>", "0 A.md <gotto>, which is not a tag; did you mean <goto>?"),
            ("x <GOTO>A.md</GOTO>", "2 A.md <GOTO>, which is not a tag; did you mean <goto>?"),
            (
                "<frok next=\"B.md\">A.md</frok>",
                "0 A.md <frok>, which is not a tag; did you mean <fork>?",
            ),
            (
                "<Result>A.md</Result>",
                "0 A.md <Result>, which is not a tag; did you mean <result>?",
            ),
            ("<resset>A.md</resset>", "0 A.md <resset>, which is not a tag; did you mean <reset>?"),
            ("<resul>A.md</resul>", "0 A.md <resul>, which is not a tag; did you mean <result>?"),
            ("<RESULT>done</RESULT>", "0 - <RESULT>, which is not a tag; did you mean <result>?"),
            ("<reslt>done</reslt>", "0 - <reslt>, which is not a tag; did you mean <result>?"),
            ("<goto>A.md<goto>", "0 A.md a <goto> without its </goto>"),
            ("<goto> A.md\nor wait", "0 A.md a <goto> without its </goto>"),
            ("<goto>B.md, otherwise <result>x</result>", "0 B.md a <goto> without its </goto>"),
            ("<goto>B.md.", "0 B.md a <goto> without its </goto>"),
            ("<goto>{{next}}</gotto>", "0 - a <goto> without its </goto>"),
            ("End with <reset/>", "9 - <reset/>, which is not a tag; write <reset>FILE.md</reset>"),
            ("<result />", "0 - <result/>, which is not a tag; write <result>TEXT</result>"),
            ("<done>ok</done>", "0 - <done>, which is not a tag; did you mean <result>?"),
            (
                "<function name=\"B.md\" />",
                "0 - <function/>, which is not a tag; write <function>FILE.md</function>",
            ),
            ("<result>done<result>", "0 - a <result> without its </result>"),
            (
                "<fork next=B.md>A.md</fork>",
                "0 A.md a <fork> whose attributes cannot be read; write NAME=\"TEXT\"",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(found(text), [expected], "{text}");
        }
        assert_eq!(
            found("<call return=\"B.md\" target=\"A\">\n"),
            [
                "0 A <call target=\"A\">, which is not a tag; the state stands between the tags: <call>A</call>"
            ]
        );
        assert!(found("<goto target=\"A.md\"/>")[0].starts_with("0 A.md <goto target=\"A.md\">"));
        let two = found("<gotto>A.md</gotto> or <goto>B.md<goto>, <result>x</result>");
        assert_eq!(two.len(), 2, "{two:?}");
    }

    #[test]
    fn prose_about_tags_and_other_tags_are_not_near_misses() {
        for text in [
            "Answer with <goto> or <result>.",
            "<goto>A.md</goto>, <result>x</result>",
            "<task>Sort them.</task> <task>A.md</task> <results>{{results}}</results>",
            "<form>x</form> <cell>1</cell> <b>A.md</b> a < b",
            "<call>\nA.md is called.",
            "<gotto>somewhere</gotto>",
            "<result>a\nb",
            "Use <goto> to go on, such as <goto>A.md</goto>.",
            "<Component>A.md</Component> <T>A.md</T> <div>A.md</div> `<Vec<T>>` <work>A.md</work>",
            "```jsx\n<Form>A.md</Form>\n<For each={items}>A.md</For>\n```",
            "<br/> <end/> a <b and c/d> <fork name=\"x\" next=\"y\">",
            "<Reset>x</Reset> clears the form, <Call>1-800</Call> rings.",
        ] {
            assert!(found(text).is_empty(), "{text}: {:?}", found(text));
        }
    }
}

#[cfg(test)]
mod open_tests {
    //! The two passes and the grammar, which must agree on every open tag.

    use pest::Parser;
    use pest::iterators::Pair;
    use proptest::prelude::*;

    use super::open_tests::grammar::{Grammar, Rule};
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
            let read = open_tag_end(&text, name).map(|end| (end, attributes(&text, name).collect::<Vec<_>>()));
            prop_assert_eq!(read, in_grammar(&text));
        }
    }
}

#[cfg(test)]
mod print_tests {
    use super::*;
    use crate::tag::{find, written};

    #[test]
    fn print_stands_beside_the_tag_and_is_not_a_transition() {
        let found = find("<print> half done </print>\n<goto>A.md</goto><print></print>");
        assert_eq!((found.tags.len(), found.shown), (1, vec!["half done".to_owned()]));
        let found =
            find("<print>I will <goto>A.md</goto></print><result>x <print>y</print></result>");
        assert_eq!((found.tags.len(), found.shown.len()), (1, 1));
        assert_eq!(written("<print><goto>A.md</goto></print>").len(), 0);
    }

    #[test]
    fn open_print_is_text_and_long_print_is_cut() {
        let found = find("<print>never closed <goto>A.md</goto>");
        assert_eq!((found.tags.len(), found.shown.len()), (1, 0));
        let many = "<print>x</print>".repeat(MAX_PRINTS + 5);
        assert_eq!(find(&many).shown.len(), MAX_PRINTS);
        let long = format!("<print>{}</print>", "é".repeat(MAX_PRINT_BYTES));
        let found = find(&long).shown;
        assert!(found[0].len() <= MAX_PRINT_BYTES + 4 && found[0].ends_with('…'));
    }
}
