//! Tables with colours for stdout, and the words for spans of time and for the status of a run.
//!
//! Columns have equal width, and lines are broken between words on a terminal.

use console::measure_text_width;

use super::exit::{CliExitCode, Error};
use super::output;
pub(super) use super::output::columns;
use crate::domain::tool_call::printable_line;
use crate::domain::views::run_standing;
use crate::plugin::styled::{StyledLine, TextTone};
use crate::store::view::RunView;

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

/// Returns the lines of a table with the titles of its columns; none without rows.
pub(super) fn with_head(
    head: &[&str],
    rows: impl IntoIterator<Item = Vec<TableCell>>,
) -> Vec<StyledLine> {
    let titles = head.iter().map(|title| TableCell::of(TextTone::Faint, title)).collect();
    let rows: Vec<Vec<TableCell>> = std::iter::once(titles).chain(rows).collect();
    if rows.len() > 1 { lines(&rows) } else { Vec::new() }
}

/// Returns a table without tones.
pub(super) fn text(rows: &[Vec<String>]) -> String {
    let cells = |row: &Vec<String>| row.iter().cloned().map(TableCell::from).collect();
    let rows: Vec<Vec<TableCell>> = rows.iter().map(cells).collect();
    lines(&rows).iter().map(|line| line.text().trim_end().to_owned() + "\n").collect()
}

/// Pads the cells of the columns after the first and before `end`, so that they align at the right.
pub(super) fn right_align(mut rows: Vec<Vec<String>>, end: usize) -> Vec<Vec<String>> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    for column in 1..columns.min(end) {
        let cells = || rows.iter().filter_map(|row| row.get(column));
        let width = cells().map(|cell| cell.chars().count()).max().unwrap_or(0);
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = format!("{cell:>width$}");
        }
    }
    rows
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

// Spans of time in one short word: `3m`, `2h`, `5d`.

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Returns a span of milliseconds in its largest whole unit, rounded down.
pub(super) fn span(millis: u64) -> String {
    match millis {
        0..MINUTE => format!("{}s", millis / SECOND),
        MINUTE..HOUR => format!("{}m", millis / MINUTE),
        HOUR..DAY => format!("{}h", millis / HOUR),
        DAY.. => format!("{}d", millis / DAY),
    }
}

/// Returns how long something took, in its two largest units.
pub(super) fn took(millis: u64) -> String {
    match millis {
        0..10_000 => format!("{}.{}s", millis / SECOND, millis % SECOND / 100),
        10_000..MINUTE => format!("{}s", millis / SECOND),
        MINUTE..HOUR => format!("{}m {:02}s", millis / MINUTE, millis % MINUTE / SECOND),
        HOUR..DAY => format!("{}h {:02}m", millis / HOUR, millis % HOUR / MINUTE),
        DAY.. => format!("{}d {:02}h", millis / DAY, millis % DAY / HOUR),
    }
}

// The word for the status of a run, as people and programs read it.

/// Returns the status for people: a running run that no process has locked is interrupted.
pub fn word(view: &RunView) -> &'static str {
    run_standing(&view.run, view.held)
}

/// Returns the tone of such a word.
pub(super) fn tone(word: &str) -> TextTone {
    match word {
        "running" | "completed" => TextTone::Good,
        "interrupted" | "paused" => TextTone::Warning,
        "failed" | "unreadable" => TextTone::Bad,
        _ => TextTone::Plain,
    }
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

#[cfg(test)]
mod age_tests {
    use super::*;

    #[test]
    fn age_is_shown_in_its_largest_whole_unit() {
        let texts = [0, 59 * SECOND, 3 * MINUTE + 1, 2 * HOUR, 47 * HOUR, 400 * DAY].map(span);
        assert_eq!(texts, ["0s", "59s", "3m", "2h", "1d", "400d"]);
        let spans = [0, 450, 9_999, 59 * SECOND, 185 * SECOND, 2 * HOUR + MINUTE, 25 * HOUR];
        let spans = spans.map(took);
        assert_eq!(spans, ["0.0s", "0.4s", "9.9s", "59s", "3m 05s", "2h 01m", "1d 01h"]);
    }
}
