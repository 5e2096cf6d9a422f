//! The output of messages to people: above the live view if there is one, else straight to the stream.
//!
//! A reader can stop reading, as with Ctrl-S, and writing then takes for ever. So a thread of its own does the
//! writing, and all others leave their messages in a bounded queue: a message that does not fit is dropped and
//! counted. All other threads never wait for a person.

mod live_area;
pub mod signals;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use console::Term;

use self::live_area::{LiveArea, TerminalForm};
use self::signals::{ShownProgress, TerminalSignals};
use super::styled::{StyledLine, TextTone};
use crate::domain::printable::printable;

/// The maximum number of messages that wait to be written.
const MAX_WAITING_MESSAGES: usize = 4096;

/// The maximum number of messages that are written in one piece.
const MAX_BATCH: usize = 256;

/// The indentation of a line that continues one.
const CONTINUED_INDENT: usize = 4;

/// The time that the last messages may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A shared handle to the terminal of a person.
#[derive(Clone)]
pub struct Terminal {
    sender: SyncSender<TerminalRequest>,
    dropped: Arc<AtomicU64>,
    live: bool,
    signals: TerminalSignals,
}

enum TerminalRequest {
    Line(String),
    Styled(StyledLine),
    Rows(Vec<StyledLine>),
    Prompt(Option<String>),
    /// A desktop notification, as a sequence.
    Notice(String),
    /// The title and the progress, as a sequence.
    Status(String),
    Clear(SyncSender<()>),
}

impl Terminal {
    /// Returns a terminal of plain lines, for a pipe or a file.
    pub fn plain(stream: impl Write + Send + 'static) -> Self {
        Self::noting(stream, lost)
    }

    /// Returns a terminal of plain lines; `note` makes a line of the number of dropped messages.
    pub fn noting(stream: impl Write + Send + 'static, note: fn(u64) -> String) -> Self {
        Self::start(stream, None, note, LineForm::default())
    }

    /// Returns a terminal of lines in colours or without them, for stderr.
    pub fn lines(colours: bool) -> Self {
        Self::start(std::io::stderr(), None, lost, LineForm { colours, is_stderr: true })
    }

    /// Returns a live area on the terminal behind stderr, with lines printed above it, and with the signals that this
    /// terminal has.
    pub fn live(colours: bool, signals: TerminalSignals) -> Self {
        let form = LineForm { colours, is_stderr: true };
        let area = Some((LiveArea::default(), signals));
        Self::start(std::io::stderr(), area, lost, form)
    }

    fn start(
        stream: impl Write + Send + 'static,
        live: Option<(LiveArea, TerminalSignals)>,
        note: fn(u64) -> String,
        form: LineForm,
    ) -> Self {
        let (area, signals) = live.unzip();
        let signals = signals.unwrap_or_default();
        let (sender, requests) = sync_channel(MAX_WAITING_MESSAGES);
        let dropped = Arc::new(AtomicU64::new(0));
        let live = area.is_some();
        let (rows, typed, is_signalling) = (Vec::new(), None, false);
        let writer = TerminalWriter { stream, area, rows, typed, form, signals, is_signalling };
        let thread_dropped = Arc::clone(&dropped);
        // Without a thread nothing can be shown, and the run continues.
        let _ = std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || writer.write_all(&requests, &thread_dropped, note));
        Self { sender, dropped, live, signals }
    }

    /// Returns whether there is a live area.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Prints a text, with all that is unprintable in it shown.
    pub fn line(&self, text: &str) {
        self.say(TerminalRequest::Line(printable(text)));
    }

    /// Prints a line in its tones; on a terminal it is broken between words.
    pub fn styled(&self, line: StyledLine) {
        self.say(TerminalRequest::Styled(line));
    }

    /// Redraws the live area.
    pub fn draw(&self, rows: Vec<StyledLine>) {
        if self.live {
            self.say(TerminalRequest::Rows(rows));
        }
    }

    /// Shows the typed text in the last row of the live area, or clears that row.
    pub fn prompt(&self, row: Option<&str>) {
        if self.live {
            self.say(TerminalRequest::Prompt(row.map(str::to_owned)));
        }
    }

    /// Shows a desktop notification, if the terminal has them.
    pub fn notify(&self, title: &str, text: &str) {
        if self.live {
            self.say(TerminalRequest::Notice(self.signals.notice(title, text)));
        }
    }

    /// Shows a title and the progress outside the text, until the live area is removed.
    pub fn show_status(&self, title: &str, progress: ShownProgress) {
        if self.live {
            let status = self.signals.title(title) + &self.signals.progress(progress);
            self.say(TerminalRequest::Status(status));
        }
    }

    /// Removes the live area, once all earlier messages are written, or after a moment.
    pub fn clear(&self) {
        let (done, cleared) = sync_channel(1);
        if self.sender.try_send(TerminalRequest::Clear(done)).is_ok() {
            let _ = cleared.recv_timeout(FLUSH_TIMEOUT);
        }
    }

    fn say(&self, request: TerminalRequest) {
        if let Err(TrySendError::Full(_)) = self.sender.try_send(request) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The writer of a terminal.
struct TerminalWriter<S> {
    stream: S,
    area: Option<LiveArea>,
    rows: Vec<StyledLine>,
    typed: Option<String>,
    form: LineForm,
    signals: TerminalSignals,
    /// True while a title or progress is shown that has to be taken back.
    is_signalling: bool,
}

/// The form of the lines of a stream.
#[derive(Debug, Clone, Copy, Default)]
struct LineForm {
    /// True if they have colours.
    colours: bool,
    /// True if the stream is stderr, whose width is known if it is a terminal.
    is_stderr: bool,
}

impl<S: Write> TerminalWriter<S> {
    /// Writes messages until all senders are gone. Around a live area, what has come meanwhile is written in one piece.
    /// A reader who is gone is not an error.
    fn write_all(
        mut self,
        requests: &Receiver<TerminalRequest>,
        dropped: &AtomicU64,
        note: fn(u64) -> String,
    ) {
        while let Ok(first) = requests.recv() {
            let lost = dropped.swap(0, Ordering::Relaxed);
            if lost > 0 {
                self.write(&(note(lost) + "\n"), false);
            }
            // Without a live area each message is written by itself: a stream may count on that.
            let more = if self.area.is_some() { MAX_BATCH } else { 0 };
            let mut lines = String::new();
            let mut done = Vec::new();
            for request in std::iter::once(first).chain(requests.try_iter().take(more)) {
                match request {
                    TerminalRequest::Line(text) => self.fit(&text, &mut lines),
                    TerminalRequest::Styled(line) => self.paint(line, &mut lines),
                    TerminalRequest::Rows(rows) => self.rows = rows,
                    TerminalRequest::Prompt(row) => self.typed = row,
                    TerminalRequest::Notice(sequence) => lines.push_str(&sequence),
                    TerminalRequest::Status(sequence) => self.signal(&sequence, &mut lines),
                    TerminalRequest::Clear(sender) => done.push(sender),
                }
            }
            if !done.is_empty() {
                self.end_signals(&mut lines);
            }
            self.write(&lines, !done.is_empty());
            for sender in done {
                let _ = sender.send(());
            }
        }
    }

    /// Appends the sequence of a title and of progress.
    fn signal(&mut self, sequence: &str, lines: &mut String) {
        if !std::mem::replace(&mut self.is_signalling, true) {
            lines.push_str(self.signals.keep_title());
        }
        lines.push_str(sequence);
    }

    /// Appends what takes back the title and the progress, if any are shown.
    fn end_signals(&mut self, lines: &mut String) {
        if std::mem::take(&mut self.is_signalling) {
            lines.push_str(&self.signals.progress(ShownProgress::Over));
            lines.push_str(self.signals.put_title_back());
        }
    }

    /// Appends the text of a line in its tones.
    fn paint(&self, line: StyledLine, lines: &mut String) {
        for part in line.broken(self.columns().unwrap_or(usize::MAX), CONTINUED_INDENT) {
            lines.push_str(&part.painted(self.form.colours));
            lines.push('\n');
        }
    }

    /// Appends a text; on a terminal its lines are broken between words.
    fn fit(&self, text: &str, lines: &mut String) {
        if self.columns().is_none() {
            lines.extend([text, "\n"]);
            return;
        }
        text.lines().for_each(|line| self.paint(StyledLine::of(TextTone::Plain, line), lines));
    }

    /// Returns the width of the terminal, if the stream is one.
    fn columns(&self) -> Option<usize> {
        let stderr = Term::stderr();
        let size = stderr.size_checked().filter(|_| self.form.is_stderr && stderr.is_term());
        let live = self.area.as_ref().map(|_| stderr.size());
        size.or(live).map(|(_, columns)| usize::from(columns))
    }

    /// Writes whole lines, and the live area below them unless it is over.
    fn write(&mut self, lines: &str, is_over: bool) {
        let text = match self.area.take() {
            None => lines.to_owned(),
            Some(mut area) => {
                let (rows, columns) = Term::stderr().size();
                let (rows, columns) = (usize::from(rows), usize::from(columns));
                if is_over {
                    area.erase(columns) + lines
                } else {
                    let form = TerminalForm { rows, columns, colours: self.form.colours };
                    let text = area.redraw(lines, &self.rows, self.typed.as_deref(), form);
                    self.area = Some(area);
                    text
                }
            }
        };
        if !text.is_empty() {
            let _ = self.stream.write_all(text.as_bytes()).and_then(|()| self.stream.flush());
        }
    }
}

fn lost(messages: u64) -> String {
    format!("({messages} messages could not be shown in time)")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A stream whose reader does not read until told.
    struct Stuck(mpsc::Receiver<()>, mpsc::Sender<Vec<u8>>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            let _ = self.1.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn blocked_terminal_does_not_block_writers() {
        let (go, stuck) = mpsc::channel();
        let (wrote, written) = mpsc::channel();
        let terminal = Terminal::plain(Stuck(stuck, wrote));
        for number in 0..MAX_WAITING_MESSAGES + MAX_BATCH + 100 {
            terminal.line(&format!("line {number}"));
        }
        drop(go);
        drop(terminal);
        let text = String::from_utf8(written.into_iter().flatten().collect()).expect("text");
        assert!(text.contains("line 0\n"), "{}", &text[..40]);
        assert!(text.contains("messages could not be shown in time)"));
    }

    #[test]
    fn control_characters_are_escaped() {
        let (wrote, written) = mpsc::channel();
        let (go, stuck) = mpsc::channel();
        drop(go);
        let terminal = Terminal::plain(Stuck(stuck, wrote));
        terminal.line("a \u{1b}]0;title\u{7} b");
        terminal.clear();
        drop(terminal);
        let text: Vec<u8> = written.into_iter().flatten().collect();
        assert_eq!(String::from_utf8_lossy(&text), "a \\u{1b}]0;title\\u{7} b\n");
    }
}
