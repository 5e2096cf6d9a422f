//! Fills the `{{placeholders}}` of a prompt, and finds the placeholders of other tools and slash words in it.
//!
//! A prompt is filled in one pass: inserted text is never filled again. A placeholder that nothing fills stays and is
//! reported, because a prompt may well speak about templates. As in [`tag`](super::tag), memchr does the searching and
//! pest reads one bounded slice.

use std::borrow::Cow;

use grammar::{Grammar, Rule};
use memchr::memmem;
use pest::Parser;

/// The code that pest generates; none of it leaves this file.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "../../grammar/template.pest"]
    pub(super) struct Grammar;
}

/// The longest placeholder, braces included, in bytes.
const MAX_PLACEHOLDER_BYTES: usize = 256;

/// A filled template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledTemplate {
    pub text: String,
    /// The placeholders that stayed, each once, with the line in the template of the first, from 1.
    pub unknown: Vec<(String, u64)>,
}

/// Fills a template with the values that `value` knows.
pub fn fill<'values>(
    template: &str,
    value: impl Fn(&str) -> Option<Cow<'values, str>>,
) -> FilledTemplate {
    let mut filled =
        FilledTemplate { text: String::with_capacity(template.len()), unknown: Vec::new() };
    let mut rest = template;
    while let Some(at) = memmem::find(rest.as_bytes(), b"{{") {
        filled.text.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((name, length)) = placeholder(rest) else {
            filled.text.push('{');
            rest = &rest[1..];
            continue;
        };
        if let Some(value) = value(name) {
            filled.text.push_str(&value);
        } else {
            filled.text.push_str(&rest[..length]);
            if !filled.unknown.iter().any(|(known, _)| known == name) {
                let before = &template[..template.len() - rest.len()];
                filled.unknown.push((name.to_owned(), before.split('\n').count() as u64));
            }
        }
        rest = &rest[length..];
    }
    filled.text.push_str(rest);
    filled
}

/// Returns the placeholders of a template, in order, each with its offset in bytes.
pub fn placeholders(template: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += memmem::find(&template.as_bytes()[at..], b"{{")?;
            if let Some((name, length)) = placeholder(&template[at..]) {
                let start = at;
                at += length;
                return Some((name, start));
            }
            at += 1;
        }
    })
}

// The forms of other tools, of which `raymond check` warns.

/// What other tools would fill: the text, the name of the value that it probably means, and its offset in bytes.
pub type ForeignPlaceholder<'text> = (&'text str, &'text str, usize);

/// Returns the texts such as `{name}`, `${name}` and `$ARGUMENTS`, in order.
pub fn foreign(text: &str) -> impl Iterator<Item = ForeignPlaceholder<'_>> {
    text.match_indices(['{', '$']).filter_map(|(at, _)| {
        let rest = &text[at..text.floor_char_boundary(at + MAX_PLACEHOLDER_BYTES)];
        if let Some(after) = rest.strip_prefix("$ARGUMENTS") {
            let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            return is_whole.then_some((&rest[..10], "input", at));
        }
        let (name, after) = rest.strip_prefix('{')?.split_once('}')?;
        // A path, a macro or a string of another language.
        let before = text[..at].chars().next_back().unwrap_or(' ');
        let is_other =
            before.is_alphanumeric() || "{/#%@\\".contains(before) || after.starts_with('}');
        (is_word(name) && !is_other).then_some((&rest[..name.len() + 2], name, at))
    })
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns the name in the placeholder at the start of `text`, and the placeholder's length.
fn placeholder(text: &str) -> Option<(&str, usize)> {
    let slice = &text[..text.floor_char_boundary(MAX_PLACEHOLDER_BYTES)];
    let pair = Grammar::parse(Rule::placeholder, slice).ok()?.next()?;
    let length = pair.as_span().end();
    Some((pair.into_inner().next()?.as_str(), length))
}

// The check of prompts that begin with a slash word: they are sent as text, unless `run_command` says otherwise.

/// The code of the warnings.
pub const CODE: &str = "RF407";

/// Returns the warning about a prompt whose turn has this `run_command`, if it looks like a command and is sent as
/// text, or cannot be a command.
pub fn warning(text: &str, run_command: Option<bool>) -> Option<String> {
    let word = text.split_whitespace().next().unwrap_or_default();
    match run_command {
        None if is_command(word) => Some(format!(
            "the prompt begins with `{word}` and is sent as text; set `run_command: true` to run the command or skill, or `run_command: false` if it is text"
        )),
        Some(true) if !is_command(word) && !is_filled(word) => Some(
            "`run_command` has no effect, because the prompt does not begin with a command such as /review".to_owned(),
        ),
        _ => None,
    }
}

/// Returns whether Claude Code would take a word for a command: a slash and a name, which may be filled in, without a
/// further slash as in a path.
fn is_command(word: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    word.strip_prefix('/').is_some_and(|name| {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic());
        is_filled(name) && !name.is_empty() || is_name && name.chars().all(is_of_name)
    })
}

/// Returns whether a text begins with a value that is filled in; an argument of a program leaves nothing.
fn is_filled(text: &str) -> bool {
    text.is_empty() || ["{{", "${"].iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn known(name: &str) -> Option<Cow<'static, str>> {
        match name {
            "result" => Some("42".into()),
            "nested" => Some("{{result}}".into()),
            _ => None,
        }
    }

    #[test]
    fn placeholders_are_filled_in_one_pass() {
        let table = [
            ("plain", "plain"),
            ("{{result}}", "42"),
            ("a {{ result }} b {{result}}", "a 42 b 42"),
            ("{{nested}}", "{{result}}"),
            ("{{unknown}}", "{{unknown}}"),
            ("{{{result}}}", "{42}"),
            ("{{ }} {{1x}} {{a b}} {{result", "{{ }} {{1x}} {{a b}} {{result"),
            ("{ {result} }", "{ {result} }"),
        ];
        for (template, text) in table {
            assert_eq!(fill(template, known).text, text, "{template:?}");
        }
    }

    #[test]
    fn unfilled_placeholder_is_reported_once_with_line() {
        let unknown = fill("{{a}} {{result}}\n\n{{b}} {{a}}", known).unknown;
        assert_eq!(unknown, [("a".to_owned(), 1), ("b".to_owned(), 3)]);
    }

    #[test]
    fn placeholders_are_found_with_byte_offsets() {
        let found: Vec<_> = placeholders("{{a}} {{ }} {{{b}}} é{{ a }} {{").collect();
        assert_eq!(found, [("a", 0), ("b", 13), ("a", 22)]);
    }

    #[test]
    fn forms_of_other_tools_are_found() {
        let text = "-{a} ${b_1} {{c}} {{d} {e}} { f } {g h} {} ${{ inputs.h }} $ARGUMENTS \
            $ARGUMENTS_DIR /runs/{k} \\begin{l} #{m} {n";
        let found: Vec<_> = foreign(text).map(|(text, name, _)| (text, name)).collect();
        let expected = [("{a}", "a"), ("{b_1}", "b_1"), ("$ARGUMENTS", "input")];
        assert_eq!(found, expected);
        assert_eq!(foreign(text).next(), Some(("{a}", "a", 1)));
    }

    proptest! {
        #[test]
        fn text_without_known_placeholders_is_unchanged(text in ".*") {
            prop_assert_eq!(fill(&text, |_| None).text, text);
        }
    }
}
