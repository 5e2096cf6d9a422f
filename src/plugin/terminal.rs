//! The output of messages to people: above the live view if there is one, else straight to the stream.
//!
//! A reader can stop reading, as with Ctrl-S, and writing then takes for ever. So a thread of its own does the
//! writing, and all others leave their messages in a bounded queue: a message that does not fit is dropped and
//! counted. All other threads never wait for a person.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::domain::printable::{printable, printable_line};

/// The maximum number of messages that wait to be written.
const MAX_WAITING_MESSAGES: usize = 4096;

/// The time that the last messages may take.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A shared handle to the terminal of a person.
#[derive(Clone)]
pub struct Terminal {
    sender: SyncSender<TerminalRequest>,
    dropped: Arc<AtomicU64>,
    live: bool,
}

enum TerminalRequest {
    Line(String),
    Rows(Vec<String>),
    Prompt(Option<String>),
    Clear(SyncSender<()>),
}

impl Terminal {
    /// Returns a terminal of plain lines, for a pipe or a file.
    #[must_use]
    pub fn plain(stream: impl Write + Send + 'static) -> Self {
        Self::noting(stream, lost)
    }

    /// Returns a terminal of plain lines; `note` makes a line of the number of dropped messages.
    #[must_use]
    pub fn noting(stream: impl Write + Send + 'static, note: fn(u64) -> String) -> Self {
        Self::start(stream, None, note)
    }

    /// Returns a live area on the terminal behind stderr, with lines printed above it.
    #[must_use]
    pub fn live() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self::start(std::io::stderr(), Some(bar), lost)
    }

    fn start(
        stream: impl Write + Send + 'static,
        bar: Option<ProgressBar>,
        note: fn(u64) -> String,
    ) -> Self {
        let (sender, requests) = sync_channel(MAX_WAITING_MESSAGES);
        let dropped = Arc::new(AtomicU64::new(0));
        let (live, thread_dropped) = (bar.is_some(), Arc::clone(&dropped));
        // Without a thread nothing can be shown, and the run continues.
        let _ = std::thread::Builder::new()
            .name("terminal".to_owned())
            .spawn(move || write_all(&requests, stream, bar, &thread_dropped, note));
        Self { sender, dropped, live }
    }

    /// Returns whether there is a live area.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Prints a text, with all that is unprintable in it shown.
    pub fn line(&self, text: &str) {
        self.say(TerminalRequest::Line(printable(text)));
    }

    /// Redraws the live area.
    pub fn draw(&self, rows: &[String]) {
        if self.live {
            self.say(TerminalRequest::Rows(rows.iter().map(|row| printable_line(row)).collect()));
        }
    }

    /// Shows the typed text in the last row of the live area, or clears that row.
    pub fn prompt(&self, row: Option<&str>) {
        if self.live {
            self.say(TerminalRequest::Prompt(row.map(printable_line)));
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

/// Writes messages until all senders are gone. A reader who is gone is not an error.
fn write_all(
    requests: &Receiver<TerminalRequest>,
    mut stream: impl Write,
    mut bar: Option<ProgressBar>,
    dropped: &AtomicU64,
    note: fn(u64) -> String,
) {
    let (mut rows, mut prompt) = (Vec::new(), None);
    for request in requests {
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            line(&mut stream, bar.as_ref(), &note(lost));
        }
        match request {
            TerminalRequest::Line(text) => line(&mut stream, bar.as_ref(), &text),
            TerminalRequest::Rows(drawn) => {
                rows = drawn;
                draw(bar.as_ref(), &rows, prompt.as_ref());
            }
            TerminalRequest::Prompt(row) => {
                prompt = row;
                draw(bar.as_ref(), &rows, prompt.as_ref());
            }
            TerminalRequest::Clear(done) => {
                if let Some(bar) = bar.take() {
                    bar.finish_and_clear();
                }
                let _ = done.send(());
            }
        }
    }
}

fn draw(bar: Option<&ProgressBar>, rows: &[String], prompt: Option<&String>) {
    if let Some(bar) = bar {
        let rows: Vec<&str> = rows.iter().chain(prompt).map(String::as_str).collect();
        bar.set_message(rows.join("\n"));
        bar.tick();
    }
}

fn lost(messages: u64) -> String {
    format!("({messages} messages could not be shown in time)")
}

fn line(stream: &mut impl Write, bar: Option<&ProgressBar>, text: &str) {
    match bar {
        Some(bar) => bar.println(text),
        None => drop(writeln!(stream, "{text}").and_then(|()| stream.flush())),
    }
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
        for number in 0..MAX_WAITING_MESSAGES + 100 {
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
