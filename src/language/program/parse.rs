//! Reads the text of a program: pest parses it, and the functions below convert the result to forms.

use pest::Parser;
use pest::iterators::Pair;

use super::form::{Form, FormContent};
use super::lines::LineIndex;
use crate::language::program::lines::RecoveredText;
use crate::language::report::FileDiagnostics;

/// The code that pest generates. It is used only in this file.
mod grammar {
    #[derive(pest_derive::Parser)]
    #[grammar = "grammar/program.pest"]
    pub(super) struct Grammar;
}
use grammar::{Grammar, Rule};

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
