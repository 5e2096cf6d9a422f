//! Breaks lines for people at the width of the terminal.

use std::fmt::Write as _;

use console::{AnsiCodeIterator, measure_text_width, strip_ansi_codes};

use crate::plugin::styled::break_of;

/// The further indentation of a line that continues one of a table.
const CONTINUED_INDENT: usize = 4;

/// Breaks the lines that are wider than `width` between words, with or without codes of a terminal. What follows is
/// indented as the last cell of the line that begins in the left two thirds, else more than the line.
pub(super) fn broken(text: &str, width: usize) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let indent = " ".repeat(indent_of(&strip_ansi_codes(line), width / 3 * 2));
        let mut rest = line.to_owned();
        while let Some(at) = break_of(&strip_ansi_codes(&rest), width) {
            let (head, tail) = rest.split_at(with_codes(&rest, at));
            let _ = writeln!(lines, "{}", head.trim_end());
            rest = format!("{indent}{}", tail.trim_start());
        }
        let _ = writeln!(lines, "{rest}");
    }
    lines
}

fn indent_of(line: &str, most: usize) -> usize {
    let words = line.len() - line.trim_start().len();
    let is_cell = |&at: &usize| {
        line.is_char_boundary(at) && line[..at].ends_with("  ") && !line[at..].starts_with(' ')
    };
    let cells = (words + 1..line.len()).filter(is_cell).map(|at| measure_text_width(&line[..at]));
    let cell = cells.rev().find(|&column| column <= most);
    cell.unwrap_or((words + CONTINUED_INDENT).min(most))
}

/// Returns an offset in the text of a line as one in the line with its codes.
fn with_codes(line: &str, at: usize) -> usize {
    let (mut left, mut offset) = (at, 0);
    for (part, is_code) in AnsiCodeIterator::new(line) {
        if !is_code && left < part.len() {
            return offset + left;
        }
        left -= if is_code { 0 } else { part.len() };
        offset += part.len();
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_lines_are_broken_between_words() {
        let text = "  main.1  failed  it is not here\nshort\n";
        assert_eq!(broken(text, 24), "  main.1  failed  it is\n          not here\nshort\n");
        assert_eq!(broken(text, 80), text);
        assert_eq!(broken("unbreakable\n", 4), "unbreakable\n");
        assert_eq!(broken("éé éé\n", 3), "éé\n  éé\n");
        let styled = "  run   \u{1b}[1mstarts\u{1b}[0m a workflow\n";
        assert_eq!(broken(styled, 18), "  run   \u{1b}[1mstarts\u{1b}[0m a\n        workflow\n");
    }
}
