//! The first pass over a program's text: lexical mistakes.
//!
//! It finds all of them, and fixes them so that the parser can read the rest.
//!
//! A fix does not change the length of the text, except for added brackets, so places stay the same. The
//! pass also limits the nesting of lists and comments that the parser meets.
//!
//! Finds the brackets that have no partner.
//!
//! Counting alone blames the outermost list for a missing bracket, and the last bracket for one too many.
//! If the count is wrong, the indentation is used: the first token of a line is in the lists that begin
//! further left, and in no other. A text whose brackets match may be indented in any way. If the
//! indentation gives more mistakes than the count, the count is used.

use std::collections::BTreeSet;

use crate::diagnostic::{FileDiagnostics, quoted};
use crate::program::parse;
use crate::program::parse::{LineIndex, RecoveredText};

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
    begun: bool,
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
            begun: false,
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
                    self.begun = false;
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
        let first = !std::mem::replace(&mut self.begun, true);
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
                self.begun &= !self.text[start..end].contains('\n');
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
            'u' => match parse::code_point(rest) {
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
        if !parse::is_word(word) {
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
    let counted = counted(tokens)?;
    if counted.mistakes() == 0 {
        return Ok(counted);
    }
    let guided = guided(tokens).filter(|guided| guided.mistakes() <= counted.mistakes());
    Ok(guided.unwrap_or(counted))
}

fn counted(tokens: &[BracketToken]) -> Result<BracketBalance, usize> {
    let mut found = BracketBalance::default();
    let mut open = Vec::new();
    for token in tokens {
        match token.kind {
            BracketKind::Open if open.len() == MAX_DEPTH => return Err(token.at),
            BracketKind::Open => open.push(token.at),
            BracketKind::Close if open.pop().is_none() => found.stray.push(token.at),
            BracketKind::Close | BracketKind::Other => {}
        }
    }
    found.unclosed = open.into_iter().map(|at| (at, None)).collect();
    let last =
        tokens.iter().rfind(|token| token.kind != BracketKind::Close).map_or(0, |token| token.at);
    found.certain = found.unclosed.is_empty() && found.stray.iter().all(|at| *at > last);
    Ok(found)
}

/// Finds them by the indentation; `None` if that nests too deeply.
fn guided(tokens: &[BracketToken]) -> Option<BracketBalance> {
    let mut found = BracketBalance { certain: true, ..BracketBalance::default() };
    let mut open: Vec<&BracketToken> = Vec::new();
    let next = next_columns(tokens);
    for (token, next) in tokens.iter().zip(next) {
        let begins = token.first && token.kind != BracketKind::Close;
        while let Some(list) = open.pop_if(|list| begins && list.column >= token.column) {
            found.unclosed.push((list.at, Some(token.at)));
        }
        match token.kind {
            BracketKind::Open if open.len() == MAX_DEPTH => return None,
            BracketKind::Open => open.push(token),
            BracketKind::Close => {
                let ends = open.pop_if(|list| next.is_none_or(|column| column <= list.column));
                if ends.is_none() {
                    found.stray.push(token.at);
                }
            }
            BracketKind::Other => {}
        }
    }
    found.unclosed.extend(open.into_iter().map(|list| (list.at, None)));
    Some(found)
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
