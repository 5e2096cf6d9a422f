//! Reads the text of a program into forms: fixes its lexical mistakes, and keeps the place of each form.
//!
//! pest parses the fixed text, and the functions below convert the result to forms.

use std::collections::BTreeSet;
use std::ops::Range;

use grammar::{Grammar, Rule};
use pest::Parser;
use pest::iterators::Pair;

use crate::diagnostic::{FileDiagnostics, quoted};
use crate::source::SourcePlace;

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

// Finds the places of a text's bytes quickly, even in long lines.

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

/// The text of a program after its lexical mistakes are fixed, so that the parser can read it, and the places of its
/// parts in the original.
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

// The forms of a program: lists, and the forms in them.

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
        match &self.inner().first()?.content {
            FormContent::Symbol(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the forms in a list; none of any other form.
    pub(super) fn inner(&self) -> &[Self] {
        match &self.content {
            FormContent::List(forms) => forms,
            _ => &[],
        }
    }

    /// Visits the form and those in it, outer ones first.
    pub(super) fn walk(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        for form in self.inner() {
            form.walk(visit);
        }
    }

    /// Changes the form and those in it, outer ones first.
    pub(super) fn walk_mut(&mut self, change: &mut dyn FnMut(&mut Self)) {
        change(self);
        if let FormContent::List(forms) = &mut self.content {
            for form in forms {
                form.walk_mut(change);
            }
        }
    }

    /// Moves the form, and those in it, by a number of lines and bytes.
    pub(super) fn shift(&mut self, lines: u64, bytes: usize) {
        self.walk_mut(&mut |form| {
            form.at.line += lines;
            form.span = form.span.start + bytes..form.span.end + bytes;
        });
    }

    /// Returns whether it is this keyword.
    pub(super) fn is_keyword(&self, name: &str) -> bool {
        matches!(&self.content, FormContent::Keyword(key) if key == name)
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

// The first pass over a program's text: lexical mistakes.
//
// It finds all of them, and fixes them so that the parser can read the rest.
//
// A fix does not change the length of the text, except for added brackets, so places stay the same. The pass also
// limits the nesting of lists and comments that the parser meets.

/// The longest text of a program, in bytes: it is kept in the state of each run.
const MAX_PROGRAM_BYTES: usize = 256 * 1024;

/// Fixes a text for the parser; `None` if its lists cannot be determined.
pub(super) fn recover(
    text: &str,
    lines: &LineIndex<'_>,
    report: &mut FileDiagnostics,
) -> Option<RecoveredText> {
    if text.len() > MAX_PROGRAM_BYTES {
        let why = format!(
            "this is {} bytes long, a program may have {MAX_PROGRAM_BYTES}; have prompts name files to read",
            text.len()
        );
        report.error(lines.place(0), "SX101", why);
        return None;
    }
    let mut scan = RecoveryScanner::new(text, lines);
    scan.run();
    let torn = scan.torn;
    for (at, code, message) in std::mem::take(&mut scan.faults) {
        report.error(lines.place(at), code, message);
    }
    let balance = match balance(&scan.tokens) {
        Ok(balance) => balance,
        Err(at) => {
            let why =
                format!("lists nest more than {MAX_DEPTH} deep here; move a part to another state");
            report.error(lines.place(at), "SX109", why);
            return None;
        }
    };
    if torn {
        return None;
    }
    tell(&balance, text, lines, report);
    balance.certain.then(|| scan.fixed(balance))
}

/// Reports missing and extra brackets.
fn tell(balance: &BracketBalance, text: &str, lines: &LineIndex<'_>, report: &mut FileDiagnostics) {
    for (at, before) in &balance.unclosed {
        let place = match before {
            Some(before) => format!("before line {}", lines.place(*before).line),
            None => "at the end of the file".to_owned(),
        };
        let why = format!("this list is never closed; add its `)` {place}");
        report.error(lines.place(*at), "SX102", why);
    }
    let apart = |pair: &[usize]| !text[pair[0] + 1..pair[1]].trim().is_empty();
    for run in balance.stray.chunk_by(|a, b| !apart(&[*a, *b])) {
        let why = match run.len() {
            1 => "this `)` does not close anything; remove it".to_owned(),
            many => format!("these {many} `)` do not close anything; remove them"),
        };
        report.error(lines.place(run[0]), "SX103", why);
    }
}

struct RecoveryScanner<'text> {
    text: &'text str,
    lines: &'text LineIndex<'text>,
    at: usize,
    fixed: Vec<u8>,
    tokens: Vec<BracketToken>,
    /// True if the current line has a token already.
    has_token: bool,
    wrong: BTreeSet<usize>,
    faults: Vec<(usize, &'static str, String)>,
    /// A string of several lines whose end looks like a beginning, and the number of faults before it.
    suspect: Option<(usize, usize)>,
    /// True if a string or a comment is not closed.
    torn: bool,
}

impl<'text> RecoveryScanner<'text> {
    fn new(text: &'text str, lines: &'text LineIndex<'text>) -> Self {
        Self {
            text,
            lines,
            at: 0,
            fixed: text.as_bytes().to_vec(),
            tokens: Vec::new(),
            has_token: false,
            wrong: BTreeSet::new(),
            faults: Vec::new(),
            suspect: None,
            torn: false,
        }
    }

    fn run(&mut self) {
        while let Some(c) = self.rest().chars().next() {
            match c {
                '\n' => {
                    self.has_token = false;
                    self.at += 1;
                }
                c if c.is_whitespace() => self.at += c.len_utf8(),
                ';' => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.blank(length);
                }
                '#' if self.rest().starts_with("#|") => self.comment(),
                '(' => self.bracket(BracketKind::Open),
                ')' => self.bracket(BracketKind::Close),
                '"' => self.string(),
                _ => self.word(),
            }
        }
    }

    fn rest(&self) -> &'text str {
        &self.text[self.at..]
    }

    fn blank(&mut self, length: usize) {
        self.fixed[self.at..self.at + length].fill(b' ');
        self.at += length;
    }

    fn token(&mut self, kind: BracketKind) {
        let column = self.lines.place(self.at).column;
        let first = !std::mem::replace(&mut self.has_token, true);
        self.tokens.push(BracketToken { kind, at: self.at, column, first });
    }

    fn bracket(&mut self, kind: BracketKind) {
        self.token(kind);
        self.at += 1;
    }

    fn comment(&mut self) {
        let (start, mut depth, mut end) = (self.at, 0usize, self.at);
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(end..end + 2) {
                Some(b"#|") => (depth, end) = (depth + 1, end + 2),
                Some(b"|#") => (depth, end) = (depth - 1, end + 2),
                Some(_) => end += 1,
                None => break,
            }
            if depth == 0 {
                self.has_token &= !self.text[start..end].contains('\n');
                return self.blank(end - start);
            }
        }
        let why = "the comment that begins here is never closed; end it with `|#`";
        self.faults.push((start, "SX105", why.to_owned()));
        self.torn = true;
        self.blank(bytes.len() - start);
    }

    fn string(&mut self) {
        self.token(BracketKind::Other);
        let (start, faults) = (self.at, self.faults.len());
        self.at += 1;
        while let Some(length) = self.rest().find(['"', '\\']) {
            self.at += length;
            if self.rest().starts_with('"') {
                self.at += 1;
                self.suspects(start, faults);
                return;
            }
            self.escape();
        }
        let (at, faults) = self.suspect.unwrap_or((start, faults));
        self.faults.truncate(faults);
        let why = "the string that begins here is never closed; end it with `\"`, and write `\\\"` for a quote in it";
        self.faults.push((at, "SX104", why.to_owned()));
        self.torn = true;
        self.at = self.text.len();
    }

    /// Marks a string whose end looks like a beginning: its own end is probably missing.
    fn suspects(&mut self, start: usize, faults: usize) {
        let separate = |c: char| c.is_whitespace() || [')', '(', '"', ';'].contains(&c);
        let begins = self.rest().chars().next().is_some_and(|c| !separate(c));
        if self.suspect.is_none() && begins && self.text[start..self.at].contains('\n') {
            self.suspect = Some((start, faults));
        }
    }

    fn escape(&mut self) {
        let rest = &self.rest()[1..];
        let Some(c) = rest.chars().next() else {
            self.at += 1;
            return;
        };
        let why = match c {
            'n' | 't' | 'r' | '"' | '\\' => {
                self.at += 2;
                return;
            }
            'u' => match code_point(rest) {
                Some(_) => {
                    self.at += 1;
                    return;
                }
                None => "`\\u` needs the number of a character, such as `\\u{e9}`".to_owned(),
            },
            c => {
                let escape = quoted(&format!("\\{c}"));
                format!(
                    "unknown escape {escape}; the escapes are `\\n`, `\\t`, `\\r`, `\\\"`, `\\\\` and `\\u{{e9}}`"
                )
            }
        };
        self.faults.push((self.at, "SX106", why));
        self.blank(1);
    }

    fn word(&mut self) {
        self.token(BracketKind::Other);
        let ends = |(at, c): &(usize, char)| {
            c.is_whitespace()
                || ['(', ')', '"', ';'].contains(c)
                || self.rest()[*at..].starts_with("#|")
        };
        let length = self.rest().char_indices().find(ends).map_or(self.rest().len(), |(at, _)| at);
        let word = &self.rest()[..length];
        if !is_word(word) {
            let (code, why) = no_word(word);
            self.faults.push((self.at, code, why));
            self.wrong.insert(self.at);
            self.fixed[self.at..self.at + length].fill(b'x');
        }
        self.at += length;
    }

    fn fixed(mut self, balance: BracketBalance) -> RecoveredText {
        for at in balance.stray {
            self.fixed[at] = b' ';
        }
        let mut added = Vec::new();
        let mut fixed = Vec::with_capacity(self.fixed.len() + balance.unclosed.len());
        let mut from = 0;
        for (_, before) in balance.unclosed {
            let to = before.unwrap_or(self.fixed.len());
            fixed.extend_from_slice(&self.fixed[from..to]);
            from = to;
            added.push(fixed.len());
            fixed.push(b')');
        }
        fixed.extend_from_slice(&self.fixed[from..]);
        let fixed = String::from_utf8_lossy(&fixed).into_owned();
        RecoveredText { fixed, added, wrong: self.wrong }
    }
}

/// Returns the code and the message for an invalid word.
fn no_word(word: &str) -> (&'static str, String) {
    let shown = quoted(word);
    match word.chars().next() {
        Some(':') if word.len() == 1 => {
            ("SX107", "a `:` alone has no meaning; write a keyword, such as `:key`".to_owned())
        }
        Some('@') if word.len() == 1 => (
            "SX107",
            "an `@` alone has no meaning; write a placeholder, such as `@workflow-id`".to_owned(),
        ),
        Some(':') => {
            ("SX108", format!("{shown} is not a keyword; write one such as `:request-id`"))
        }
        Some('@') => {
            ("SX108", format!("{shown} is not a placeholder; write one such as `@workflow-id`"))
        }
        Some('\'') => {
            ("SX108", format!("{shown} has single quotes; a text has double quotes: \"TEXT\""))
        }
        _ => {
            let why =
                format!("{shown} is neither a number nor a name; put it in quotes if it is a text");
            ("SX108", why)
        }
    }
}

// Finds the brackets that have no partner.
//
// Counting alone blames the outermost list for a missing bracket, and the last bracket for one too many. If the count
// is wrong, the indentation is used: the first token of a line is in the lists that begin further left, and in no
// other. A text whose brackets match may be indented in any way. If the indentation gives more mistakes than the count,
// the count is used.

/// The largest nesting depth of lists.
pub(super) const MAX_DEPTH: usize = 64;

/// The role of a token among the brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BracketKind {
    Open,
    Close,
    Other,
}

/// A token of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct BracketToken {
    pub(super) kind: BracketKind,
    pub(super) at: usize,
    pub(super) column: u64,
    /// True if only white space precedes it in its line.
    pub(super) first: bool,
}

/// The mistakes in the brackets of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BracketBalance {
    /// The lists that are not closed, each with the byte to close it before; `None` is the end.
    pub(super) unclosed: Vec<(usize, Option<usize>)>,
    /// The closing brackets that close nothing.
    pub(super) stray: Vec<usize>,
    /// True if the lists are probably as they were meant.
    pub(super) certain: bool,
}

impl BracketBalance {
    fn mistakes(&self) -> usize {
        self.unclosed.len() + self.stray.len()
    }
}

/// Finds brackets without partner.
///
/// # Errors
/// The bracket that nests too deeply.
pub(super) fn balance(tokens: &[BracketToken]) -> Result<BracketBalance, usize> {
    let counted = unmatched(tokens, BracketGuide::Count)?;
    let guided = || unmatched(tokens, BracketGuide::Indentation).ok();
    if counted.mistakes() > 0
        && let Some(guided) = guided().filter(|guided| guided.mistakes() <= counted.mistakes())
    {
        return Ok(BracketBalance { certain: true, ..guided });
    }
    let last =
        tokens.iter().rfind(|token| token.kind != BracketKind::Close).map_or(0, |token| token.at);
    let certain = counted.unclosed.is_empty() && counted.stray.iter().all(|at| *at > last);
    Ok(BracketBalance { certain, ..counted })
}

/// What tells where a list ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BracketGuide {
    /// The brackets alone.
    Count,
    /// The brackets, as far as the indentation does not contradict them.
    Indentation,
}

/// Finds the brackets without partner.
///
/// # Errors
/// The bracket that nests too deeply.
fn unmatched(tokens: &[BracketToken], guide: BracketGuide) -> Result<BracketBalance, usize> {
    let is_guided = guide == BracketGuide::Indentation;
    let mut found = BracketBalance::default();
    let mut open: Vec<&BracketToken> = Vec::new();
    for (token, next) in tokens.iter().zip(next_columns(tokens)) {
        let begins = is_guided && token.first && token.kind != BracketKind::Close;
        while let Some(list) = open.pop_if(|list| begins && list.column >= token.column) {
            found.unclosed.push((list.at, Some(token.at)));
        }
        match token.kind {
            BracketKind::Open if open.len() == MAX_DEPTH => return Err(token.at),
            BracketKind::Open => open.push(token),
            BracketKind::Close => {
                let next = next.filter(|_| is_guided);
                if open.pop_if(|list| next.is_none_or(|column| column <= list.column)).is_none() {
                    found.stray.push(token.at);
                }
            }
            BracketKind::Other => {}
        }
    }
    found.unclosed.extend(open.into_iter().map(|list| (list.at, None)));
    Ok(found)
}

/// Returns for each token the column of the next token that closes nothing, if that begins a line.
fn next_columns(tokens: &[BracketToken]) -> Vec<Option<u64>> {
    let mut next = None;
    let mut columns: Vec<_> = tokens
        .iter()
        .rev()
        .map(|token| {
            let after = next;
            if token.kind != BracketKind::Close {
                next = token.first.then_some(token.column);
            }
            after
        })
        .collect();
    columns.reverse();
    columns
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
