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

/// A bracket that is open.
#[derive(Default)]
struct OpenBracket {
    /// The number of `?` in it that wait for their `:`.
    waiting: usize,
    /// True for the `${` of a text in backticks, which continues after its `}`.
    in_template: bool,
}

struct ExpressionScanner<'text> {
    text: &'text [u8],
    at: usize,
    /// The brackets that are open, the outermost first; the first stands for the whole text.
    open: Vec<OpenBracket>,
    depth: usize,
    /// The last byte that is no white space.
    before: u8,
}

impl<'text> ExpressionScanner<'text> {
    fn new(text: &'text [u8], at: usize) -> Self {
        Self { text, at, open: vec![OpenBracket::default()], depth: 0, before: 0 }
    }

    /// Scans the text. With `to_brace`, returns the offset of the first `}` that closes nothing.
    fn run(mut self, to_brace: bool) -> Result<Option<usize>, SyntaxError> {
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\'' | b'"' => self.skip(byte),
                b'`' => self.template()?,
                b'/' if matches!(self.before, b'(' | b',') => self.skip(b'/'),
                b'(' | b'[' | b'{' => {
                    self.open.push(OpenBracket::default());
                    self.deeper()?;
                }
                b'}' if to_brace && self.open.len() == 1 => return Ok(Some(self.at)),
                b')' | b']' | b'}' if self.open.len() > 1 => {
                    let OpenBracket { waiting, in_template } = self.open.pop().unwrap_or_default();
                    self.depth -= 1 + waiting;
                    if in_template {
                        self.template()?;
                    }
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
        if let Some(open) = self.open.last_mut() {
            open.waiting += 1;
        }
        self.deeper()
    }

    fn colon(&mut self) {
        if let Some(open) = self.open.last_mut().filter(|open| open.waiting > 0) {
            open.waiting -= 1;
            self.depth -= 1;
        }
    }

    /// Skips the text in backticks up to its end, or up to a `${` in it.
    fn template(&mut self) -> Result<(), SyntaxError> {
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'`' => return Ok(()),
                b'$' if self.text.get(self.at + 1) == Some(&b'{') => {
                    self.at += 1;
                    self.open.push(OpenBracket { in_template: true, ..OpenBracket::default() });
                    return self.deeper();
                }
                _ => {}
            }
            self.at += 1;
        }
        Ok(())
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
