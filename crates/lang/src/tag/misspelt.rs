//! Finds what is nearly a tag in a text that shows how tags are written, such as a prompt.
//!
//! A text may speak of `<goto>`, and may have tags of other kinds. Therefore a near miss counts only where it is
//! written like a tag that leads somewhere: around a file name, or with a close of its own.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::{NearMiss, TagFinder, name_at, next_open, open};
use crate::hint::{closest_slip, is_slip};
use raymond_model::id::StateName;
use raymond_model::transition::TagName;

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
pub(super) const RESULT_NAMES: [&str; 4] = ["return", "done", "end", "finish"];

/// A text that is nearly a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MisspeltTag {
    /// The mistake.
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
        let encloses = state_in(inside).or_else(|| begun_state(inside, &near));
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
    let closes_itself = open::end(rest, name.len()).is_none();
    // `<goto target="A.md"/>` is read as if its slash were a blank.
    let open = rest.split_inclusive('>').next().filter(|_| closes_itself);
    let open = open.map_or(Cow::Borrowed(rest), |open| Cow::Owned(open.replace("/>", " >")));
    let close = open::end(&open, name.len())?;
    let (_, target) = open::attributes(&open, name.len()).find(|(key, _)| key == "target")?;
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
    let open = open::end(rest, name.len()).or_else(|| Some(rest.find('>')? + 1))?;
    let length = rest[open..].find(['<', '\n']).unwrap_or(rest.len() - open);
    let body = start + open..start + open + length;
    (!text[body.clone()].trim().is_empty()).then_some(body)
}

/// Returns the state that a body names.
fn state_in(body: &str) -> Option<StateName> {
    StateName::parse(body.trim()).ok().filter(StateName::is_state_by_ending)
}

/// Returns the state that the body of an unclosed tag begins with: the sentence goes on behind it.
fn begun_state(body: &str, near: &NearMiss<'_>) -> Option<StateName> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        misspelt(text)
            .iter()
            .map(|one| {
                let state = one.encloses.as_ref().map_or("-", |state| state.as_str());
                format!("{} {state} {}", one.start, one.mistake)
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
    fn prose_about_tags_and_tags_of_other_kinds_are_no_near_misses() {
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
