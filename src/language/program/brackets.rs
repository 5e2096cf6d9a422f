//! Finds the brackets that have no partner.
//!
//! Counting alone blames the outermost list for a missing bracket, and the last bracket for one too many.
//! If the count is wrong, the indentation is used: the first token of a line is in the lists that begin
//! further left, and in no other. A text whose brackets match may be indented in any way. If the
//! indentation gives more mistakes than the count, the count is used.

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
