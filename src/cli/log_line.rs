//! The two forms of a log event: a sentence for people, and a line of JSON.

use std::fmt::{self, Write as _};
use std::io;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use super::logging::LogFormat;
use crate::domain::tool_call::{printable_json, printable_line};
use crate::plugin::terminal::Terminal;

/// The names that every line of JSON has.
const COMMON: [&str; 4] = ["timestamp", "level", "message", "target"];

/// The form of log events: `warning: … (agent main)` for people, or
/// `{"timestamp":…,"level":"warn","message":…,"target":…,"agent":"main"}` for programs.
pub(super) struct LogFormatter {
    pub(super) format: LogFormat,
    /// True if each line of text begins with the time, as in a file.
    pub(super) timed: bool,
}

impl<S, N> FormatEvent<S, N> for LogFormatter
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
        let mut visitor = LogEventVisitor::default();
        event.record(&mut visitor);
        let level = event.metadata().level().as_str().to_lowercase();
        match self.format {
            LogFormat::Text => self.write_text(&mut writer, &level, &visitor),
            LogFormat::Json => {
                let LogEventVisitor { message, fields } = visitor;
                writer.write_str(&record(&level, message, event.metadata().target(), fields))
            }
        }
    }
}

impl LogFormatter {
    fn write_text(
        &self,
        writer: &mut Writer<'_>,
        level: &str,
        LogEventVisitor { message, fields }: &LogEventVisitor,
    ) -> fmt::Result {
        if self.timed {
            write!(writer, "{} ", jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%.3f%:z"))?;
        }
        // Indent further lines, so that none can be mistaken for a separate message. In a file, each message is one
        // line.
        let (first, further) = match message.split_once('\n') {
            Some((first, further)) if !self.timed => (first, further),
            _ => (message.as_str(), ""),
        };
        let label = if level == "warn" { "warning" } else { level };
        let mut text = format!("{label}: {first}");
        let field = |(name, value): &(&str, Value)| match value {
            Value::String(text) => format!("{name} {text}"),
            value => format!("{name} {value}"),
        };
        if !fields.is_empty() {
            let fields: Vec<String> = fields.iter().map(field).collect();
            let _ = write!(text, " ({})", fields.join(", "));
        }
        writer.write_str(&printable_line(&text))?;
        further.lines().try_for_each(|line| write!(writer, "\n  {}", printable_line(line)))
    }
}

/// Returns a line of JSON that says how many messages could not be written.
pub(super) fn lost(messages: u64) -> String {
    let message = format!("{messages} messages could not be written in time");
    record("warn", message, module_path!(), Vec::new())
}

fn record(level: &str, message: String, target: &str, fields: Vec<(&str, Value)>) -> String {
    let common = [now().into(), level.into(), message.into(), target.into()];
    let mut line = String::new();
    for (name, value) in COMMON.into_iter().zip::<[Value; 4]>(common) {
        let _ = write!(line, "{}\"{name}\":{value}", if line.is_empty() { '{' } else { ',' });
    }
    for (name, value) in fields {
        let mark = if COMMON.contains(&name) { "_" } else { "" };
        let _ = write!(line, ",{}:{value}", Value::from(format!("{mark}{name}")));
    }
    printable_json(&(line + "}"))
}

fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The collected message and fields of an event.
#[derive(Default)]
struct LogEventVisitor {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl LogEventVisitor {
    fn take(&mut self, field: &Field, value: impl Into<Value>) {
        self.fields.push((field.name(), value.into()));
    }
}

impl Visit for LogEventVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.message = format!("{value:?}");
        } else {
            self.take(field, format!("{value:?}"));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.take(field, value);
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.take(field, value);
    }
}

/// Prints each event as a line on a terminal.
pub(super) struct TerminalLog(pub(super) Terminal);

impl<'writer> MakeWriter<'writer> for TerminalLog {
    type Writer = TerminalLogLine<'writer>;

    fn make_writer(&'writer self) -> Self::Writer {
        TerminalLogLine { terminal: &self.0, text: String::new() }
    }
}

/// One event's text, printed when it is complete.
pub(super) struct TerminalLogLine<'terminal> {
    terminal: &'terminal Terminal,
    text: String,
}

impl io::Write for TerminalLogLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TerminalLogLine<'_> {
    fn drop(&mut self) {
        self.terminal.line(self.text.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_record_has_common_fields_first() {
        let fields = vec![("agent", "main".into()), ("seq", 7.into()), ("level", "x".into())];
        let line = record("warn", "it \"fell\"\n".to_owned(), "raymond::actor", fields);
        assert!(line.starts_with("{\"timestamp\":\"2"), "{line}");
        assert!(line.ends_with(
            "\"level\":\"warn\",\"message\":\"it \\\"fell\\\"\\n\",\"target\":\"raymond::actor\",\"agent\":\"main\",\"seq\":7,\"_level\":\"x\"}"
        ), "{line}");
        assert!(serde_json::from_str::<Value>(&line).is_ok());
    }

    #[test]
    fn lost_messages_are_reported_as_log_record() {
        let value: Value = serde_json::from_str(&lost(3)).expect("JSON");
        assert_eq!(value["message"], "3 messages could not be written in time");
        assert_eq!(value["level"], "warn");
    }
}
