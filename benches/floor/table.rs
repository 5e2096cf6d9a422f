//! A plain table: a title, aligned columns, notes below.

use std::fmt::{Display, Formatter, Result};

/// A table to be printed.
#[derive(Debug, Default)]
pub(crate) struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl Table {
    pub(crate) fn new<const N: usize>(title: &str, head: [&str; N]) -> Self {
        Self { title: title.to_owned(), head: head.map(str::to_owned).into(), ..Self::default() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().chain([&self.head]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "{}\n", self.title)?;
        for row in [&self.head].into_iter().chain(&self.rows) {
            let mut line = String::from(" ");
            for (column, cell) in row.iter().enumerate() {
                let width = self.width(column);
                let cell = if column == 0 {
                    format!(" {cell:<width$}")
                } else {
                    format!("   {cell:>width$}")
                };
                line.push_str(&cell);
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n  {note}"))?;
        writeln!(f, "{}", if self.notes.is_empty() { "" } else { "\n" })
    }
}

/// Returns a whole number with commas between thousands.
pub(crate) fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    let grouped: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    grouped.join(",")
}

/// Returns a number with about three significant digits.
pub(crate) fn short(number: f64) -> String {
    match number.abs() {
        large if large >= 100.0 => whole(number),
        middle if middle >= 10.0 => format!("{number:.1}"),
        0.0 => "0".to_owned(),
        small if small >= 0.095 => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}
