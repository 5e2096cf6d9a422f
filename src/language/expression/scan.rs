//! A first scan of an expression: limits its nesting depth, and finds the end of an expression that begins at `${`.
//!
//! The recursive parser must not get a text of unlimited depth, so this scan comes first. It treats quotes
//! and regular expressions exactly as the grammar does, up to the first place where the text is no
//! expression. The grammar does not get beyond that.

use super::flaw::SyntaxError;

/// The longest expression, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The largest nesting depth of brackets and `? :`.
pub(super) const MAX_DEPTH: usize = 64;

/// Checks the length and depth of a whole expression.
pub(super) fn bounded(text: &str) -> Result<(), SyntaxError> {
    if text.len() > MAX_BYTES {
        let why = format!("the expression is longer than {MAX_BYTES} bytes; compute it in steps");
        return Err(SyntaxError::syntax(0, why));
    }
    ExpressionScanner::new(text.as_bytes(), 0).run(false).map(|_| ())
}

/// Returns the offset of the `}` that ends the expression which begins at `start`, if there is one.
pub(super) fn end_of_reference(text: &str, start: usize) -> Result<Option<usize>, SyntaxError> {
    let most = text.floor_char_boundary(start + MAX_BYTES);
    ExpressionScanner::new(&text.as_bytes()[..most], start).run(true)
}

struct ExpressionScanner<'text> {
    text: &'text [u8],
    at: usize,
    /// The number of `?` that wait for their `:`, for each open bracket.
    open: Vec<usize>,
    depth: usize,
    /// The last byte that is no white space.
    before: u8,
}

impl<'text> ExpressionScanner<'text> {
    fn new(text: &'text [u8], at: usize) -> Self {
        Self { text, at, open: vec![0], depth: 0, before: 0 }
    }

    /// Scans the text. With `to_brace`, returns the offset of the first `}` that closes nothing.
    fn run(mut self, to_brace: bool) -> Result<Option<usize>, SyntaxError> {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\'' | b'"' => self.skip(byte),
                b'/' if matches!(self.before, b'(' | b',') => self.skip(b'/'),
                b'(' | b'[' | b'{' => {
                    self.open.push(0);
                    self.deeper()?;
                }
                b'}' if to_brace && self.open.len() == 1 => return Ok(Some(self.at)),
                b')' | b']' | b'}' if self.open.len() > 1 => {
                    self.depth -= 1 + self.open.pop().unwrap_or(0);
                }
                b'?' => self.question()?,
                b':' => self.colon(),
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                self.before = byte;
            }
            self.at += 1;
        }
        Ok(None)
    }

    fn deeper(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let why = format!("the expression nests more than {MAX_DEPTH} deep; compute it in steps");
        Err(SyntaxError::syntax(self.at, why))
    }

    /// Adds a level for a `?` up to its `:`, unless it is part of `??` or `?.`.
    fn question(&mut self) -> Result<(), SyntaxError> {
        if matches!(self.text.get(self.at + 1), Some(b'?' | b'.')) {
            self.at += 1;
            return Ok(());
        }
        if let Some(waiting) = self.open.last_mut() {
            *waiting += 1;
        }
        self.deeper()
    }

    fn colon(&mut self) {
        if let Some(waiting) = self.open.last_mut().filter(|waiting| **waiting > 0) {
            *waiting -= 1;
            self.depth -= 1;
        }
    }

    /// Skips to the closing quote or slash, or to the end.
    fn skip(&mut self, close: u8) {
        let mut in_class = false;
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'[' if close == b'/' => in_class = true,
                b']' => in_class = false,
                _ if byte == close && !in_class => return,
                _ => {}
            }
            self.at += 1;
        }
    }
}
