//! Warnings and diagnostics from everywhere, on stderr: `warning: … (agent main, state A.md)`.
//!
//! `RAYMOND_LOG` chooses what is shown, as in `RAYMOND_LOG=debug`; warnings and errors by default.
//! They go through the terminal's hand, so that a live view stays whole.

use std::fmt;
use std::io;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use crate::plugin::terminal::Terminal;

/// Sends all diagnostics of this process to a terminal from now on.
pub fn show_on(terminal: Terminal) {
    let filter = EnvFilter::try_from_env("RAYMOND_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .event_format(Sentences)
        .with_writer(ToTerminal(terminal.clone()))
        .try_init();
    std::panic::set_hook(Box::new(move |panic| {
        terminal.line(&format!("error: raymond itself failed, please report it: {panic}"));
    }));
}

struct Sentences;

impl<S, N> FormatEvent<S, N> for Sentences
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let label = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        let mut said = Said::default();
        event.record(&mut said);
        write!(writer, "{label}: {}", said.message)?;
        if !said.fields.is_empty() {
            write!(writer, " ({})", said.fields.join(", "))?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Said {
    message: String,
    fields: Vec<String>,
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.fields.push(format!("{} {value:?}", field.name()));
        }
    }
}

struct ToTerminal(Terminal);

impl<'writer> MakeWriter<'writer> for ToTerminal {
    type Writer = Line<'writer>;

    fn make_writer(&'writer self) -> Self::Writer {
        Line { terminal: &self.0, text: String::new() }
    }
}

/// One event's text, printed as a line when it is complete.
struct Line<'terminal> {
    terminal: &'terminal Terminal,
    text: String,
}

impl io::Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.terminal.line(self.text.trim_end());
    }
}
