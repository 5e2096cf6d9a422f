//! Tables with colours for stdout: columns of equal width, and lines that are broken between words on a terminal.

use console::measure_text_width;

use super::exit::{CliExitCode, Error};
use super::output;
pub(super) use super::output::columns;
use crate::domain::printable::printable_line;
use crate::plugin::styled::{StyledLine, TextTone};

/// The widest cell that widens its column, in columns of a terminal.
const MAX_CELL_WIDTH: usize = 80;

/// The further indentation of a line that continues one.
const CONTINUED_INDENT: usize = 4;

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TableCell {
    tone: TextTone,
    text: String,
}

impl TableCell {
    /// Makes a cell in a tone.
    pub(super) fn of(tone: TextTone, text: &str) -> Self {
        Self { tone, text: printable_line(text) }
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::of(TextTone::Plain, &text)
    }
}

/// Returns the lines of a table.
pub(super) fn lines(rows: &[Vec<TableCell>]) -> Vec<StyledLine> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widths = cells.map(|cell| measure_text_width(&cell.text));
        widths.filter(|&width| width <= MAX_CELL_WIDTH).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn line(row: &[TableCell], widths: &[usize]) -> StyledLine {
    let mut line = StyledLine::default();
    let mut blanks = 0;
    for (cell, width) in row.iter().zip(widths) {
        if !cell.text.is_empty() {
            line.push(TextTone::Plain, &" ".repeat(blanks));
            line.push(cell.tone, &cell.text);
            blanks = 0;
        }
        blanks += width.saturating_sub(measure_text_width(&cell.text)) + 2;
    }
    line
}

/// Prints lines to stdout. On a terminal, those that are wider are broken between words, so that the reason in the last
/// column of a row can be read whole.
///
/// # Errors
/// As [`output::print`].
pub(super) fn print(lines: Vec<StyledLine>) -> Result<CliExitCode, Error> {
    let mut text = String::new();
    for line in fitted(lines, columns()) {
        text.push_str(&line.painted(console::colors_enabled()));
        text.push('\n');
    }
    output::print_styled(&text)
}

/// Breaks the lines that are wider than the terminal.
fn fitted(lines: Vec<StyledLine>, columns: Option<usize>) -> Vec<StyledLine> {
    let Some(columns) = columns else { return lines };
    let broken = |line: StyledLine| {
        let indent = line.text().chars().take_while(|&c| c == ' ').count() + CONTINUED_INDENT;
        line.broken(columns, indent.min(columns / 2))
    };
    lines.into_iter().flat_map(broken).collect()
}

/// Returns the lines of a text for people.
pub(super) fn plain(text: &str) -> impl Iterator<Item = StyledLine> {
    text.lines().map(|line| StyledLine::of(TextTone::Plain, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_equal_widths_and_cells_their_tones() {
        let cell = |text: &str| TableCell::of(TextTone::Plain, text);
        let rows = [
            vec![cell("main.1"), TableCell::of(TextTone::Bad, "failed"), cell("it is not here")],
            vec![cell("漢字"), cell(""), cell("x")],
            vec![cell("main"), cell("")],
        ];
        let lines = lines(&rows);
        let texts: Vec<String> = lines.iter().map(StyledLine::text).collect();
        assert_eq!(texts, ["main.1  failed  it is not here", "漢字            x", "main"]);
        assert!(lines[0].painted(true).contains("\u{1b}[31mfailed\u{1b}[0m"));
        let broken = fitted(lines, Some(24));
        let texts: Vec<String> = broken.iter().map(StyledLine::text).collect();
        assert_eq!(texts, ["main.1  failed", "    it is not here", "漢字            x", "main"]);
    }
}
