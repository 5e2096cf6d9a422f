//! Reads the text of a program: pest parses it, and the functions below convert the result to forms.
//!
//! The text of a program after its lexical mistakes are fixed, and the places of its parts in the original.
//!
//! The forms of a program, each with its place: lists, and the forms in them.
//!
//! Finds the places of a text's bytes quickly, even in long lines.

use std::collections::BTreeSet;
use std::ops::Range;

use grammar::{Grammar, Rule};
use pest::Parser;
use pest::iterators::Pair;

use crate::diagnostic::{FileDiagnostics, quoted};
use crate::position::SourcePlace;

/// The code that pest generates. It is used only in this file.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "../../grammar/program.pest"]
    pub(super) struct Grammar;
}

/// Returns whether a text is one word: a name, a number, a keyword, or a placeholder.
pub(super) fn is_word(text: &str) -> bool {
    Grammar::parse(Rule::word, text).is_ok()
}

/// Returns the character of `u{…}` at the beginning of a text, and the length of the escape.
pub(super) fn code_point(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix("u{")?;
    let digits = &digits[..digits.find('}')?];
    let is_number =
        (1..=6).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let number = is_number.then(|| u32::from_str_radix(digits, 16).ok())??;
    Some((char::from_u32(number)?, digits.len() + 3))
}

/// Returns the forms of a recovered text.
pub(super) fn forms(
    recovered: &RecoveredText,
    lines: &LineIndex<'_>,
    report: &mut FileDiagnostics,
) -> Vec<Form> {
    match Grammar::parse(Rule::file, &recovered.fixed) {
        Ok(mut pieces) => {
            let file = pieces.next().into_iter().flat_map(Pair::into_inner);
            file.filter_map(|piece| form(piece, recovered, lines)).collect()
        }
        Err(error) => {
            let (pest::error::InputLocation::Pos(at) | pest::error::InputLocation::Span((at, _))) =
                error.location;
            let place = lines.place(recovered.original(at));
            report.error(place, "SX108", "this cannot be read as a list, a text, or a word");
            Vec::new()
        }
    }
}

fn form(piece: Pair<'_, Rule>, recovered: &RecoveredText, lines: &LineIndex<'_>) -> Option<Form> {
    let span = piece.as_span();
    let span = recovered.original(span.start())..recovered.original(span.end());
    let text = piece.as_str();
    let content = match piece.as_rule() {
        _ if recovered.wrong.contains(&span.start) => FormContent::Wrong,
        Rule::list => {
            let forms = piece.into_inner().filter_map(|piece| form(piece, recovered, lines));
            FormContent::List(forms.collect())
        }
        Rule::string => FormContent::String(string(text)),
        Rule::keyword => FormContent::Keyword(text[1..].to_owned()),
        Rule::placeholder => FormContent::Placeholder(text[1..].to_owned()),
        Rule::float | Rule::integer => FormContent::Number(text.to_owned()),
        Rule::boolean => FormContent::Boolean(text == "true"),
        Rule::symbol => FormContent::Symbol(text.to_owned()),
        _ => return None,
    };
    Some(Form { content, at: lines.place(span.start), span })
}

/// Returns the meaning of a string in quotes.
fn string(text: &str) -> String {
    let mut rest = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let mut read = String::with_capacity(rest.len());
    while let Some((before, after)) = rest.split_once('\\') {
        read.push_str(before);
        let (c, length) = match after.chars().next() {
            Some('n') => ('\n', 1),
            Some('t') => ('\t', 1),
            Some('r') => ('\r', 1),
            Some('u') => code_point(after).unwrap_or(('u', 1)),
            Some(c) => (c, c.len_utf8()),
            None => break,
        };
        read.push(c);
        rest = &after[length..];
    }
    read + rest
}

/// The bytes between two points with precomputed character counts.
const STRIDE_BYTES: usize = 256;

/// An index of the lines of a text.
pub(super) struct LineIndex<'text> {
    text: &'text str,
    /// The byte each line begins at.
    starts: Vec<usize>,
    /// The number of characters that begin before each multiple of [`STRIDE_BYTES`].
    counts: Vec<usize>,
}

impl<'text> LineIndex<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        let mut counts = vec![0];
        for piece in text.as_bytes().chunks(STRIDE_BYTES) {
            let before = counts.last().copied().unwrap_or_default();
            counts.push(before + beginnings(piece));
        }
        Self { text, starts, counts }
    }

    /// Returns the place of a byte; one after the end is placed at the end.
    pub(super) fn place(&self, at: usize) -> SourcePlace {
        let at = self.text.floor_char_boundary(at);
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts[line - 1];
        SourcePlace { line: line as u64, column: (self.before(at) - self.before(start)) as u64 + 1 }
    }

    /// Returns the number of characters that begin before a byte.
    fn before(&self, at: usize) -> usize {
        let counted = at / STRIDE_BYTES;
        self.counts[counted] + beginnings(&self.text.as_bytes()[counted * STRIDE_BYTES..at])
    }
}

/// Returns the number of characters that begin in these bytes.
fn beginnings(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// A text that the parser can read.
pub(super) struct RecoveredText {
    pub(super) fixed: String,
    /// The byte offsets of the added brackets.
    pub(super) added: Vec<usize>,
    /// The byte offsets of invalid words in the text.
    pub(super) wrong: BTreeSet<usize>,
}

impl RecoveredText {
    /// Converts a byte offset in the fixed text to one in the original text.
    pub(super) fn original(&self, at: usize) -> usize {
        at - self.added.partition_point(|added| *added < at)
    }
}

/// A form and its place.
#[derive(Debug, Clone)]
pub(super) struct Form {
    pub(super) content: FormContent,
    pub(super) at: SourcePlace,
    /// Its byte range in the text.
    pub(super) span: Range<usize>,
}

/// The content of a form.
#[derive(Debug, Clone)]
pub(super) enum FormContent {
    List(Vec<Form>),
    /// A text in quotes, without them.
    String(String),
    /// A keyword, without its `:`.
    Keyword(String),
    /// A placeholder, without its `@`.
    Placeholder(String),
    /// A number, as it is written.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
    Symbol(String),
    /// An invalid word. It has been reported, so no further error is.
    Wrong,
}

impl Form {
    /// Returns the symbol that a list begins with.
    pub(super) fn head(&self) -> Option<&str> {
        match &self.content {
            FormContent::List(forms) => match forms.first().map(|first| &first.content) {
                Some(FormContent::Symbol(name)) => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Moves the form, and those in it, by a number of lines and bytes.
    pub(super) fn shift(&mut self, lines: u64, bytes: usize) {
        self.at.line += lines;
        self.span = self.span.start + bytes..self.span.end + bytes;
        if let FormContent::List(forms) = &mut self.content {
            for form in forms {
                form.shift(lines, bytes);
            }
        }
    }

    /// Returns the number of lists within each other.
    pub(super) fn height(&self) -> usize {
        match &self.content {
            FormContent::List(forms) => 1 + forms.iter().map(Self::height).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the text of a form that can be read as one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.content {
            FormContent::String(text) | FormContent::Number(text) | FormContent::Symbol(text) => {
                Some(text)
            }
            FormContent::Boolean(value) => Some(if *value { "true" } else { "false" }),
            FormContent::List(_)
            | FormContent::Keyword(_)
            | FormContent::Placeholder(_)
            | FormContent::Wrong => None,
        }
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self.content, FormContent::Wrong)
    }

    /// Returns its description for a message.
    pub(super) fn described(&self) -> String {
        match &self.content {
            FormContent::List(forms) => match forms.first().and_then(Self::text) {
                Some(head) => format!("the list {}", quoted(&format!("({head} …)"))),
                None => "a list".to_owned(),
            },
            FormContent::String(text) => format!("the text {}", quoted(text)),
            FormContent::Keyword(name) => format!("the keyword {}", quoted(&format!(":{name}"))),
            FormContent::Placeholder(name) => {
                format!("the placeholder {}", quoted(&format!("@{name}")))
            }
            FormContent::Number(number) => format!("the number {}", quoted(number)),
            FormContent::Boolean(value) => format!("`{value}`"),
            FormContent::Symbol(name) => format!("the symbol {}", quoted(name)),
            FormContent::Wrong => "this".to_owned(),
        }
    }
}

#[cfg(test)]
mod lines_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn line_index_agrees_with_linear_scan(text in "([a-zé€😀]{0,300}\n?){0,4}", at in 0..1500usize) {
            let at = at.min(text.len());
            prop_assert_eq!(LineIndex::new(&text).place(at), SourcePlace::in_text(&text, at, 1));
        }
    }
}
