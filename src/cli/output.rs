//! Stdout of the commands that only print. A reader that is gone is not an error.

use std::io::{self, IsTerminal, Write};

pub use super::diagnostics::{complain, tell, tell_lines, warn};
use console::Term;

use super::diagnostics;
use super::exit::{CliExitCode, Error};
use super::interrupts::is_reader_gone;
use crate::domain::tool_call::{is_unprintable, printable, printable_json};

/// Prints a text for people to stdout, with unprintable characters made visible.
///
/// # Errors
/// [`Error::Io`], unless the reader has gone.
pub fn print(text: &str) -> Result<CliExitCode, Error> {
    print_styled(&printable(text))
}

/// Returns the width of the terminal, if stdout is one.
pub(super) fn columns() -> Option<usize> {
    let stdout = Term::stdout();
    let size = stdout.size_checked().filter(|_| stdout.is_term());
    size.map(|(_, columns)| usize::from(columns))
}

/// Returns lines for stdout. On a terminal, those that are wider are broken between words.
pub(super) fn fitted(text: &str) -> String {
    match columns() {
        Some(columns) => diagnostics::broken(text, columns),
        None => text.to_owned(),
    }
}

/// Prints a text for people that contains colours. Everything else in it must already be printable.
///
/// # Errors
/// As [`print()`].
pub(super) fn print_styled(text: &str) -> Result<CliExitCode, Error> {
    write(&fitted(text)).map(|_| CliExitCode::Success)
}

/// Prints a text unchanged; on a terminal, with unprintable characters made visible.
///
/// # Errors
/// As [`print()`].
pub fn print_exactly(text: &str) -> Result<CliExitCode, Error> {
    let shown = if io::stdout().is_terminal() { &printable(text) } else { text };
    write(shown).map(|_| CliExitCode::Success)
}

/// Prints a printable text and the end of its line; returns whether anyone still reads.
///
/// # Errors
/// As [`print()`].
pub(super) fn print_printable_line(text: &str) -> Result<bool, Error> {
    write(&format!("{text}\n"))
}

/// Writes a text, and returns whether anyone still reads.
fn write(text: &str) -> Result<bool, Error> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if is_reader_gone(&error, &stdout) => Ok(false),
        Err(error) => Err(Error::io("write", "stdout")(error)),
    }
}

/// Prints the message of the command line's grammar: help, or an error in the arguments.
pub(super) fn print_help(error: &clap::Error) {
    let text = error.render().to_string();
    if text.chars().any(|c| c != '\n' && is_unprintable(c)) {
        tell(&text);
    } else {
        let _ = error.print();
    }
}

/// Prints a value as JSON to stdout.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl serde::Serialize) -> Result<CliExitCode, Error> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::from);
    let text = text.map_err(Error::io("write", "stdout"))?;
    write(&(printable_json(&text) + "\n")).map(|_| CliExitCode::Success)
}

/// Returns a number of things, such as `1 run` or `2 runs`.
pub(super) fn counted(count: impl TryInto<u64>, what: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// Formats a number in four characters: `950`, `12k`, `3.4M`.
pub(super) fn short_number(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..10_000 => format!("{}.{}k", number / 1000, number % 1000 / 100),
        10_000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}
