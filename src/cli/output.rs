//! Stdout of the commands that only print. A reader who is gone is not an error.

use std::fmt::Write as _;
use std::io::{self, Write};

pub use super::diagnostics::{complain, tell, warn};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use crate::domain::run::{Ending, Finished};

/// A cell that is wider than this does not widen its column.
const WIDEST: usize = 80;

/// Prints a text to stdout.
///
/// # Errors
/// [`Error::Io`], unless the reader has gone.
pub fn print(text: &str) -> Result<Exit, Error> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Io { doing: "write", path: "stdout".into(), error })
        }
        _ => Ok(Exit::Success),
    }
}

/// Prints a value as JSON to stdout.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl serde::Serialize) -> Result<Exit, Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Io {
        doing: "write",
        path: "stdout".into(),
        error: error.into(),
    })?;
    print(&format!("{text}\n"))
}

/// Adds to an agent's JSON how it ended.
pub fn add_ending(value: &mut Value, agent: &Finished) {
    match &agent.ending {
        Ending::Result(payload) => value["result"] = json!(payload),
        Ending::Error(error) => {
            value["error"] = json!(error);
            value["cause"] = json!(agent.cause);
        }
    }
}

/// Rows as columns of equal width.
#[must_use]
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .filter(|&width| width <= WIDEST)
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}
