//! The destinations of everything that this process writes to stderr: warnings, diagnostics, messages for people.
//!
//! - By default they go to stderr: `warning: … (agent main, state A.md)`, by way of the terminal, so that a live
//!   view stays whole.
//! - With `--log-file` they go into that file, and messages for people go to stderr as usual.
//! - With `--log-format json` alone, stderr gets only JSON: messages for people become events of the target
//!   [`PEOPLE`], at any log level, because the format changes the form of messages, not their selection. The live
//!   view is off then.
//!
//! Errors in the options themselves are printed as usual, because the options are not known yet.
//!
//! `--log-level`, or else `RAYMOND_LOG`, sets the level of the log; warnings and errors by default.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{IsTerminal, Write, stderr};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;

use console::{AnsiCodeIterator, Term, measure_text_width, strip_ansi_codes};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::exit::Error;
use super::log_line::{LogFormatter, TerminalLog, lost};
use super::logging::{LogFormat, LoggingArgs, name_of};
use crate::domain::tool_call::printable_block;
use crate::plugin::styled::break_of;
use crate::plugin::terminal::{Terminal, TerminalSignals};

/// The target of messages for people.
pub const PEOPLE: &str = "raymond::people";

static LOG: OnceLock<LogSetup> = OnceLock::new();

/// The log settings of this process.
struct LogSetup {
    filter: String,
    /// The terminal that the log goes to, if it is not the one for people.
    apart: Option<Terminal>,
    /// True if the log is JSON on stderr, and nothing else may be there.
    owns_stderr: bool,
}

/// Sets up the log of this process.
///
/// # Errors
/// [`Error::Io`] if the file cannot be written, [`Error::Usage`] for an invalid `RAYMOND_LOG`.
pub fn begin(logging: &LoggingArgs) -> Result<(), Error> {
    let filter = filter(logging)?;
    let format = logging.log_format.unwrap_or_default();
    let owns_stderr = logging.log_file.is_none() && format == LogFormat::Json;
    let apart = match (&logging.log_file, format) {
        (Some(path), _) => {
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).mode(0o600).open(path);
            let file = file.map_err(Error::io("keep the log of --log-file there", path))?;
            Some(match format {
                LogFormat::Json => Terminal::noting(file, lost),
                LogFormat::Text => Terminal::plain(file),
            })
        }
        (None, LogFormat::Json) => Some(Terminal::noting(stderr(), lost)),
        (None, LogFormat::Text) => None,
    };
    if let Some(terminal) = &apart {
        let people = if owns_stderr { format!("{filter},{PEOPLE}=info") } else { filter.clone() };
        subscribe(&people, terminal, format, logging.log_file.is_some());
        std::panic::set_hook(Box::new(move |panic| {
            complain(&format!("raymond itself failed, please report it: {panic}"));
        }));
    }
    let _ = LOG.set(LogSetup { filter, apart, owns_stderr });
    Ok(())
}

/// Returns the filter of the log, as valid directives.
fn filter(logging: &LoggingArgs) -> Result<String, Error> {
    if let Some(level) = logging.log_level {
        return Ok(name_of(&level));
    }
    let given = std::env::var("RAYMOND_LOG").unwrap_or_default();
    if given.trim().is_empty() {
        return Ok("warn".to_owned());
    }
    let is_level =
        |part: &str| part.contains(['=', ':', '[']) || part.parse::<LevelFilter>().is_ok();
    if let Some(part) = given.split(',').map(str::trim).find(|part| !is_level(part)) {
        return Err(Error::Usage(format!(
            "RAYMOND_LOG={given}: `{part}` is not a level; write error, warn, info, debug or trace"
        )));
    }
    match EnvFilter::try_new(&given) {
        Ok(_) => Ok(given),
        Err(error) => Err(Error::Usage(format!(
            "RAYMOND_LOG={given}: {error}; write error, warn, info, debug or trace"
        ))),
    }
}

fn subscribe(filter: &str, terminal: &Terminal, format: LogFormat, timed: bool) {
    let _ = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(TerminalLog(terminal.clone()))
        .event_format(LogFormatter { format, timed })
        .try_init();
}

/// Returns the terminal for a run's progress, as a live view if it may be one; the log goes there too, unless it
/// goes elsewhere.
pub fn terminal(may_live: bool) -> Terminal {
    if owns_stderr() {
        return Terminal::plain(LogLineWriter::default());
    }
    let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    let live = may_live && !is_dumb && stderr().is_terminal();
    let colours = console::colors_enabled_stderr();
    let terminal = if live { Terminal::live(colours, signals()) } else { Terminal::lines(colours) };
    if LOG.get().is_none_or(|log| log.apart.is_none()) {
        let filter = LOG.get().map_or("warn", |log| log.filter.as_str());
        subscribe(filter, &terminal, LogFormat::Text, false);
        let terminal = terminal.clone();
        std::panic::set_hook(Box::new(move |panic| {
            terminal.line(&format!("error: raymond itself failed, please report it: {panic}"));
        }));
    }
    terminal
}

/// Returns the signals that the terminal of this process has.
fn signals() -> TerminalSignals {
    TerminalSignals::of(|name| std::env::var(name).ok())
}

fn owns_stderr() -> bool {
    LOG.get().is_some_and(|log| log.owns_stderr)
}

/// Prints a message for people; on a terminal its lines are broken between words.
pub fn tell(text: &str) {
    if owns_stderr() {
        tracing::info!(target: PEOPLE, "{text}");
    } else {
        let _ = write!(stderr(), "{}", fitted(&printable_block(text)));
    }
}

/// Prints lines for people that stand for themselves, such as the rows of a table; none is indented.
pub fn tell_lines(text: &str) {
    text.lines().for_each(tell);
}

fn fitted(text: &str) -> String {
    let stderr = Term::stderr();
    let size = stderr.size_checked().filter(|_| stderr.is_term());
    broken(text, size.map_or(usize::MAX, |(_, columns)| columns.into()))
}

/// Prints a warning while no run is supervised yet.
pub fn warn(text: &str) {
    if LOG.get().is_some_and(|log| log.apart.is_some()) {
        tracing::warn!("{text}");
    } else {
        tell(&format!("warning: {text}"));
    }
}

/// Prints an error for people; a log that goes elsewhere has it too.
pub fn complain(text: &str) {
    if !owns_stderr() {
        let label = console::style("error").for_stderr().red().bold();
        let text = fitted(&format!("error: {}", printable_block(text)));
        let _ = write!(stderr(), "{label}{}", text.trim_start_matches("error"));
    }
    if LOG.get().is_some_and(|log| log.apart.is_some()) {
        tracing::error!(target: PEOPLE, "{text}");
    }
}

/// Waits a moment until the log is written.
pub fn flush() {
    if let Some(terminal) = LOG.get().and_then(|log| log.apart.as_ref()) {
        terminal.clear();
    }
}

/// A writer for people that turns each line into an event.
#[derive(Default)]
struct LogLineWriter(Vec<u8>);

impl Write for LogLineWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let line = std::mem::take(&mut self.0);
        tracing::info!(target: PEOPLE, "{}", String::from_utf8_lossy(&line).trim_end());
        Ok(())
    }
}

// Breaks lines for people at the width of the terminal.

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
mod wrapping_tests {
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
