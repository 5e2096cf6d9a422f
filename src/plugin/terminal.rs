//! The output of messages to people: above the live view if there is one, else straight to the stream.
//!
//! A reader can stop reading, as with Ctrl-S, and writing then blocks forever. So a separate thread does the writing,
//! and all other threads put their messages into a bounded queue. A message that does not fit is dropped and counted.
//! So the other threads never wait for a person.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use console::Term;

use super::styled::{StyledLine, TextTone};
use crate::domain::tool_call::{flat, printable};

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

// The live area at the end of a terminal: rows that are drawn again and again, with lines printed above them. Pure.
//
// The rows are erased before anything else is written, all in one piece of text. A terminal that has become
// narrower since has broken the rows that no longer fit, and they are erased with all their parts. Each row is one
// column shorter than the terminal, and the cursor waits at the beginning of the last row, so that the `^C` that a
// terminal echoes breaks no line.

/// The live area, as it was drawn last.
#[derive(Debug, Default)]
struct LiveArea {
    /// The widths of the rows on the screen.
    drawn: Vec<usize>,
    /// True if the cursor is behind the last row, where someone types.
    is_typing: bool,
}

/// The present form of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TerminalForm {
    /// The number of rows.
    rows: usize,
    /// The number of columns.
    columns: usize,
    /// True if colours are wanted.
    colours: bool,
}

impl LiveArea {
    /// Returns the text that erases the area, prints whole lines, and draws rows below them, the typed text last.
    fn redraw(
        &mut self,
        lines: &str,
        rows: &[StyledLine],
        typed: Option<&str>,
        form: TerminalForm,
    ) -> String {
        let mut text = self.erase(form.columns);
        text.push_str(&lines.replace('\n', "\r\n"));
        let width = form.columns.saturating_sub(1).max(1);
        let room = form.rows.saturating_sub(1 + usize::from(typed.is_some()));
        let typed = typed.map(|typed| StyledLine::of(TextTone::Plain, typed));
        for row in rows.iter().take(room).chain(&typed) {
            if !self.drawn.is_empty() {
                text.push_str("\r\n");
            }
            let row = row.clone().cut(width);
            text.push_str(&row.painted(form.colours));
            self.drawn.push(row.width());
        }
        self.is_typing = typed.is_some();
        if !self.is_typing {
            text.push('\r');
        }
        text
    }

    /// Returns the text that erases the area from a terminal of that many columns, and forgets it.
    fn erase(&mut self, columns: usize) -> String {
        let parts = |width: &usize| width.div_ceil(columns.max(1)).max(1);
        let up: usize = match self.drawn.split_last() {
            None => return String::new(),
            Some((last, above)) => {
                let below = if self.is_typing { parts(last) - 1 } else { 0 };
                above.iter().map(parts).sum::<usize>() + below
            }
        };
        self.drawn.clear();
        let up = if up > 0 { format!("\u{1b}[{up}A") } else { String::new() };
        format!("\r{up}\u{1b}[J")
    }
}

// The signals that some terminals show outside their text: desktop notifications, progress, and the window's title.
// Pure.
//
// A terminal that does not know such a sequence may print it, so each is written only to terminals that are known to
// have it. A multiplexer stands between, and which terminal is behind it is not known: then none is written.

/// The maximum length of a notification, in bytes.
const MAX_NOTICE_BYTES: usize = 200;

/// The maximum length of a title, in bytes.
const MAX_TITLE_BYTES: usize = 100;

/// The form of desktop notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoticeForm {
    /// OSC 9, of iTerm2.
    Osc9,
    /// OSC 777, of rxvt.
    Osc777,
}

/// The signals that a terminal has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalSignals {
    notice: Option<NoticeForm>,
    has_progress: bool,
    has_title: bool,
}

/// The progress that a terminal shows, as in its tab or in the task bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownProgress {
    /// Something is done, nobody knows how much is left.
    Busy,
    /// The share that is done, in per cent.
    Percent(u64),
    /// The share that is done, in per cent, while somebody is needed.
    NeedsSomeone(u64),
    /// The end: the terminal no longer shows progress.
    Over,
}

impl TerminalSignals {
    /// Returns the signals of the terminal that environment variables name.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let named = |name: &str| variable(name).unwrap_or_default();
        let (term, program) = (named("TERM"), named("TERM_PROGRAM"));
        let is_multiplexed = variable("TMUX").is_some()
            || variable("STY").is_some()
            || ["tmux", "screen"].iter().any(|name| term.starts_with(name));
        if is_multiplexed || ["", "dumb", "linux"].contains(&term.as_str()) {
            return Self::default();
        }
        let is_windows = variable("WT_SESSION").is_some() || named("ConEmuANSI") == "ON";
        let (notice, has_progress) = match (program.as_str(), term.as_str()) {
            ("ghostty" | "WezTerm", _) | (_, "xterm-ghostty") => (Some(NoticeForm::Osc777), true),
            ("iTerm.app", _) | (_, "xterm-kitty") => (Some(NoticeForm::Osc9), true),
            (_, "foot" | "foot-extra" | "rxvt-unicode-256color") => {
                (Some(NoticeForm::Osc777), false)
            }
            _ => (None, is_windows),
        };
        Self { notice, has_progress, has_title: true }
    }

    /// Returns the sequence of a desktop notification; nothing if the terminal has none.
    pub fn notice(self, title: &str, text: &str) -> String {
        let (title, text) = (plain(title, MAX_TITLE_BYTES), plain(text, MAX_NOTICE_BYTES));
        match self.notice {
            None => String::new(),
            Some(NoticeForm::Osc9) => osc(&format!("9;{title}: {text}")),
            // A semicolon would end the title.
            Some(NoticeForm::Osc777) => {
                osc(&format!("777;notify;{};{text}", title.replace(';', ",")))
            }
        }
    }

    /// Returns the sequence that shows progress.
    pub fn progress(self, progress: ShownProgress) -> String {
        if !self.has_progress {
            return String::new();
        }
        osc(&match progress {
            ShownProgress::Busy => "9;4;3;0".to_owned(),
            ShownProgress::Percent(percent) => format!("9;4;1;{}", percent.min(100)),
            ShownProgress::NeedsSomeone(percent) => format!("9;4;4;{}", percent.min(100)),
            ShownProgress::Over => "9;4;0;0".to_owned(),
        })
    }

    /// Returns the sequence that keeps the title of the window, to be put back at the end.
    pub fn keep_title(self) -> &'static str {
        if self.has_title { "\u{1b}[22;2t" } else { "" }
    }

    /// Returns the sequence that sets the title of the window.
    pub fn title(self, title: &str) -> String {
        if self.has_title {
            osc(&format!("2;{}", plain(title, MAX_TITLE_BYTES)))
        } else {
            String::new()
        }
    }

    /// Returns the sequence that puts the kept title back.
    pub fn put_title_back(self) -> &'static str {
        if self.has_title { "\u{1b}[23;2t" } else { "" }
    }
}

/// Returns an operating system command, with the end that the standard gives it.
fn osc(content: &str) -> String {
    format!("\u{1b}]{content}\u{1b}\\")
}

/// Returns a text in one line, without anything that could end the sequence.
fn plain(text: &str, most: usize) -> String {
    flat(text, most).chars().filter(|c| !c.is_control()).collect()
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

#[cfg(test)]
mod live_area_tests {
    use super::*;

    const FORM: TerminalForm = TerminalForm { rows: 24, columns: 20, colours: false };

    fn rows(texts: &[&str]) -> Vec<StyledLine> {
        texts.iter().map(|text| StyledLine::of(TextTone::Plain, text)).collect()
    }

    #[test]
    fn redraw_erases_all_rows_first() {
        let mut area = LiveArea::default();
        assert_eq!(area.redraw("", &rows(&["a", "b"]), None, FORM), "a\r\nb\r");
        assert_eq!(
            area.redraw("said\n", &rows(&["c"]), None, FORM),
            "\r\u{1b}[1A\u{1b}[Jsaid\r\nc\r"
        );
        assert_eq!(area.redraw("", &[], None, FORM), "\r\u{1b}[J\r");
        assert_eq!(area.erase(20), "", "nothing is there any more");
    }

    #[test]
    fn rows_broken_by_a_narrower_terminal_are_erased_whole() {
        let mut area = LiveArea::default();
        area.redraw("", &rows(&["123456789012345", "b"]), None, FORM);
        assert_eq!(area.erase(8), "\r\u{1b}[2A\u{1b}[J");
        area.redraw("", &rows(&["b"]), Some("123456789012345"), FORM);
        assert_eq!(area.erase(8), "\r\u{1b}[2A\u{1b}[J", "the cursor is behind the typed text");
    }

    #[test]
    fn rows_are_cut_at_the_size_of_the_terminal() {
        let mut area = LiveArea::default();
        let form = TerminalForm { rows: 3, columns: 5, ..FORM };
        assert_eq!(area.redraw("", &rows(&["12345", "b", "c"]), None, form), "123…\r\nb\r");
        area.erase(5);
        assert_eq!(area.redraw("", &rows(&["a", "b"]), Some("x"), form), "a\r\nx");
    }
}

#[cfg(test)]
mod signals_tests {
    use super::*;

    fn signals(variables: &[(&str, &str)]) -> TerminalSignals {
        TerminalSignals::of(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn signals_are_those_that_the_terminal_is_known_to_have() {
        let kitty = signals(&[("TERM", "xterm-kitty")]);
        assert_eq!(kitty.notice("run r", "needs you"), "\u{1b}]9;run r: needs you\u{1b}\\");
        assert_eq!(kitty.progress(ShownProgress::Percent(140)), "\u{1b}]9;4;1;100\u{1b}\\");
        assert_eq!(kitty.progress(ShownProgress::NeedsSomeone(7)), "\u{1b}]9;4;4;7\u{1b}\\");
        let foot = signals(&[("TERM", "foot")]);
        assert_eq!(foot.notice("a;b", "c;d"), "\u{1b}]777;notify;a,b;c;d\u{1b}\\");
        assert_eq!(foot.progress(ShownProgress::Busy), "");
        let windows = signals(&[("TERM", "xterm-256color"), ("WT_SESSION", "x")]);
        assert_eq!(
            (windows.notice("a", "b"), windows.progress(ShownProgress::Over)),
            (String::new(), "\u{1b}]9;4;0;0\u{1b}\\".to_owned())
        );
        let plain = signals(&[("TERM", "xterm-256color")]);
        assert_eq!(
            (plain.notice("a", "b"), plain.title("t")),
            (String::new(), "\u{1b}]2;t\u{1b}\\".to_owned())
        );
        for none in [
            &[][..],
            &[("TERM", "dumb")],
            &[("TERM", "xterm-kitty"), ("TMUX", "1")],
            &[("TERM", "screen-256color")],
        ] {
            assert_eq!(signals(none), TerminalSignals::default());
            assert_eq!(signals(none).title("t") + signals(none).keep_title(), "");
        }
    }

    #[test]
    fn texts_cannot_end_a_sequence() {
        let kitty = signals(&[("TERM", "xterm-kitty")]);
        let notice = kitty.notice("r", "a\u{7}b\u{1b}\\c\u{9c}d\ne");
        assert_eq!(notice.chars().filter(|c| c.is_control()).count(), 2, "{notice:?}");
    }
}
