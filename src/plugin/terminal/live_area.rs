//! The live area at the end of a terminal: rows that are drawn again and again, with lines printed above them. Pure.
//!
//! The rows are erased before anything else is written, all in one piece of text. A terminal that has become
//! narrower since has broken the rows that no longer fit, and they are erased with all their parts. Each row is one
//! column shorter than the terminal, and the cursor waits at the beginning of the last row, so that the `^C` that a
//! terminal echoes breaks no line.

use crate::plugin::styled::{StyledLine, TextTone};

/// The live area, as it was drawn last.
#[derive(Debug, Default)]
pub(super) struct LiveArea {
    /// The widths of the rows on the screen.
    drawn: Vec<usize>,
    /// True if the cursor is behind the last row, where someone types.
    is_typing: bool,
}

/// The present form of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TerminalForm {
    /// The number of rows.
    pub(super) rows: usize,
    /// The number of columns.
    pub(super) columns: usize,
    /// True if colours are wanted.
    pub(super) colours: bool,
}

impl LiveArea {
    /// Returns the text that erases the area, prints whole lines, and draws rows below them, the typed text last.
    pub(super) fn redraw(
        &mut self,
        lines: &str,
        rows: &[StyledLine],
        typed: Option<&str>,
        form: TerminalForm,
    ) -> String {
        let mut text = self.erase(form.columns);
        text.push_str(&lines.replace('\n', "\r\n"));
        let width = form.columns.saturating_sub(1).max(1);
        let room = form.rows.saturating_sub(1 + usize::from(typed.is_some()));
        let typed = typed.map(|typed| StyledLine::of(TextTone::Plain, typed));
        for row in rows.iter().take(room).chain(&typed) {
            if !self.drawn.is_empty() {
                text.push_str("\r\n");
            }
            let row = row.clone().cut(width);
            text.push_str(&row.painted(form.colours));
            self.drawn.push(row.width());
        }
        self.is_typing = typed.is_some();
        if !self.is_typing {
            text.push('\r');
        }
        text
    }

    /// Returns the text that erases the area from a terminal of that many columns, and forgets it.
    pub(super) fn erase(&mut self, columns: usize) -> String {
        let parts = |width: &usize| width.div_ceil(columns.max(1)).max(1);
        let up: usize = match self.drawn.split_last() {
            None => return String::new(),
            Some((last, above)) => {
                let below = if self.is_typing { parts(last) - 1 } else { 0 };
                above.iter().map(parts).sum::<usize>() + below
            }
        };
        self.drawn.clear();
        let up = if up > 0 { format!("\u{1b}[{up}A") } else { String::new() };
        format!("\r{up}\u{1b}[J")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: TerminalForm = TerminalForm { rows: 24, columns: 20, colours: false };

    fn rows(texts: &[&str]) -> Vec<StyledLine> {
        texts.iter().map(|text| StyledLine::of(TextTone::Plain, text)).collect()
    }

    #[test]
    fn redraw_erases_all_rows_first() {
        let mut area = LiveArea::default();
        assert_eq!(area.redraw("", &rows(&["a", "b"]), None, FORM), "a\r\nb\r");
        assert_eq!(
            area.redraw("said\n", &rows(&["c"]), None, FORM),
            "\r\u{1b}[1A\u{1b}[Jsaid\r\nc\r"
        );
        assert_eq!(area.redraw("", &[], None, FORM), "\r\u{1b}[J\r");
        assert_eq!(area.erase(20), "", "nothing is there any more");
    }

    #[test]
    fn rows_broken_by_a_narrower_terminal_are_erased_whole() {
        let mut area = LiveArea::default();
        area.redraw("", &rows(&["123456789012345", "b"]), None, FORM);
        assert_eq!(area.erase(8), "\r\u{1b}[2A\u{1b}[J");
        area.redraw("", &rows(&["b"]), Some("123456789012345"), FORM);
        assert_eq!(area.erase(8), "\r\u{1b}[2A\u{1b}[J", "the cursor is behind the typed text");
    }

    #[test]
    fn rows_are_cut_at_the_size_of_the_terminal() {
        let mut area = LiveArea::default();
        let form = TerminalForm { rows: 3, columns: 5, ..FORM };
        assert_eq!(area.redraw("", &rows(&["12345", "b", "c"]), None, form), "123…\r\nb\r");
        area.erase(5);
        assert_eq!(area.redraw("", &rows(&["a", "b"]), Some("x"), form), "a\r\nx");
    }
}
