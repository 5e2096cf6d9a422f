//! The pipes of a program: lines go out as fast as it reads them, and come in no faster than they are dealt with.
//!
//! Records that wait to be read by the program are bounded, because the journal has them anyway; a question is
//! never left out. An endless line of the program is not kept.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use crate::domain::json_mistake::mistake;
use crate::domain::protocol::{PluginMessage, VERSION};
use crate::domain::tool_call::first_characters;

/// The maximum number of bytes of records that wait for a program that does not read them.
const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;

/// The longest line a program may write, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 1024 * 1024;

/// The number of useless lines after which a flood is slowed down.
const FLOOD_LINES: u32 = 100;

/// The pause in reading during a flood.
const FLOOD_PAUSE: Duration = Duration::from_millis(10);

/// The writer to a program's stdin, which is closed when this is dropped.
pub(super) struct PluginOutbox {
    lines: mpsc::UnboundedSender<String>,
    waiting: Arc<AtomicUsize>,
}

impl PluginOutbox {
    /// Opens the way to a program; the receiver completes when everything has been written and its stdin is
    /// closed.
    pub(super) fn open(stdin: Box<dyn AsyncWrite + Unpin>) -> (Self, oneshot::Receiver<()>) {
        let (lines, waiting_lines) = mpsc::unbounded_channel();
        let (done, closed) = oneshot::channel();
        let waiting = Arc::<AtomicUsize>::default();
        let written = Arc::clone(&waiting);
        actix::spawn(async move {
            write(stdin, waiting_lines, &written).await;
            let _ = done.send(());
        });
        (Self { lines, waiting }, closed)
    }

    /// Sends a line, however many wait already.
    pub(super) fn send(&self, mut line: String) {
        line.push('\n');
        self.waiting.fetch_add(line.len(), Relaxed);
        // A program that no longer reads is not an error, because it may still send messages.
        let _ = self.lines.send(line);
    }

    /// Returns whether there is room for another record.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.load(Relaxed) < MAX_WAITING_BYTES
    }
}

async fn write(
    mut stdin: Box<dyn AsyncWrite + Unpin>,
    mut lines: mpsc::UnboundedReceiver<String>,
    waiting: &AtomicUsize,
) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(line.as_bytes()).await.is_err() {
            break;
        }
        waiting.fetch_sub(line.len(), Relaxed);
    }
    let _ = stdin.shutdown().await;
}

/// A line that came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PluginLine {
    /// The line, without its end.
    Whole(Vec<u8>),
    /// A line that was too long to be kept.
    TooLong,
}

/// Reads all lines. `hear` returns whether a line was useful.
pub(super) async fn listen(
    mut stream: Box<dyn AsyncRead + Unpin>,
    mut hear: impl AsyncFnMut(PluginLine) -> bool,
) {
    let mut lines = LineAssembler::default();
    let mut chunk = vec![0; 16 * 1024];
    let mut useless = 0;
    loop {
        let read = match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        for line in lines.add(&chunk[..read]) {
            useless = if hear(line).await { 0 } else { useless + 1 };
            if useless >= FLOOD_LINES {
                useless = 0;
                sleep(FLOOD_PAUSE).await;
            }
        }
        tokio::task::yield_now().await;
    }
    if let Some(line) = lines.rest() {
        hear(line).await;
    }
}

/// Puts lines together.
#[derive(Default)]
struct LineAssembler {
    open: Vec<u8>,
    skipping: bool,
}

impl LineAssembler {
    /// Returns the lines that end in this part of the stream.
    fn add(&mut self, mut part: &[u8]) -> Vec<PluginLine> {
        let mut lines = Vec::new();
        while let Some(end) = part.iter().position(|&byte| byte == b'\n') {
            self.take(&part[..end], &mut lines);
            if !std::mem::take(&mut self.skipping) {
                lines.push(PluginLine::Whole(std::mem::take(&mut self.open)));
            }
            part = &part[end + 1..];
        }
        self.take(part, &mut lines);
        lines
    }

    fn take(&mut self, part: &[u8], lines: &mut Vec<PluginLine>) {
        if self.skipping {
            return;
        }
        if self.open.len() + part.len() > MAX_LINE_BYTES {
            self.open = Vec::new();
            self.skipping = true;
            lines.push(PluginLine::TooLong);
        } else {
            self.open.extend_from_slice(part);
        }
    }

    /// Returns a last line without an end.
    fn rest(self) -> Option<PluginLine> {
        (!self.open.is_empty()).then_some(PluginLine::Whole(self.open))
    }
}

// Parses the lines of a program, and names the errors in them.
//
// A program cannot do harm by its lines: useless ones are left out, with a warning for the first of each kind.

/// The number of characters of a line that a warning shows.
const MAX_SHOWN_CHARS: usize = 100;

/// An error in a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PluginLineError {
    /// The kind: each is warned of once.
    pub(super) kind: PluginLineErrorKind,
    /// The text of the warning.
    pub(super) text: String,
    /// The question it was meant to answer.
    pub(super) id: Option<u64>,
}

/// The kind of error in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PluginLineErrorKind {
    /// It is not a message.
    Garbage,
    /// It is too long.
    TooLong,
    /// It is a greeting in another version.
    Version,
    /// It is an answer that cannot be understood.
    Answer,
    /// It answers a question that was not asked.
    Unasked,
}

/// Parses a line.
pub(super) fn read(line: PluginLine) -> Result<PluginMessage, PluginLineError> {
    let line = match line {
        PluginLine::Whole(line) => line,
        PluginLine::TooLong => {
            let text = format!("wrote a line of more than {MAX_LINE_BYTES} bytes");
            return Err(PluginLineError { kind: PluginLineErrorKind::TooLong, text, id: None });
        }
    };
    let text = String::from_utf8_lossy(&line);
    match serde_json::from_str(&text) {
        Ok(PluginMessage::Hello(hello)) if hello.version != VERSION => {
            let spoken = hello.version;
            let text = format!(
                "speaks version {spoken} of the protocol, and this raymond speaks {VERSION}, so it is not asked; events and fields have other names now: docs/formats.md"
            );
            Err(PluginLineError { kind: PluginLineErrorKind::Version, text, id: None })
        }
        Ok(message) => Ok(message),
        Err(error) => Err(flaw(&text, &mistake(&error))),
    }
}

fn flaw(line: &str, error: &str) -> PluginLineError {
    #[derive(Deserialize)]
    struct Outline {
        r#type: String,
        id: Option<u64>,
    }
    let start = first_characters(line.trim_end(), MAX_SHOWN_CHARS);
    match serde_json::from_str(line) {
        Ok(Outline { r#type, id }) if r#type == "verdict" => PluginLineError {
            kind: PluginLineErrorKind::Answer,
            text: format!("gave an answer that cannot be understood: {error}: {start}"),
            id,
        },
        _ => PluginLineError {
            kind: PluginLineErrorKind::Garbage,
            text: format!("wrote a line that is not a message: {error}: {start}"),
            id: None,
        },
    }
}

/// Warns of the first error of each kind.
#[derive(Debug, Default)]
pub(super) struct WarnOnce(HashSet<PluginLineErrorKind>);

impl WarnOnce {
    /// Warns of an error, unless its kind was warned of before.
    pub(super) fn about(&mut self, plugin: &str, flaw: &PluginLineError) {
        if self.0.insert(flaw.kind) {
            tracing::warn!(
                "the plug-in {plugin} {} (see `raymond schema`; further lines like this are ignored silently)",
                flaw.text
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> PluginLine {
        PluginLine::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn chunks_are_joined_to_lines_and_overlong_lines_dropped() {
        let mut lines = LineAssembler::default();
        assert_eq!(lines.add(b"one\ntw"), [whole("one")]);
        assert_eq!(lines.add(b"o\n\nth"), [whole("two"), whole("")]);
        let endless = vec![b'x'; MAX_LINE_BYTES];
        assert_eq!(lines.add(&endless), [PluginLine::TooLong]);
        assert_eq!(lines.add(&endless), []);
        assert_eq!(lines.add(b"\nfour\nfive"), [whole("four")]);
        assert_eq!(lines.rest(), Some(whole("five")));
    }
}

#[cfg(test)]
mod plugin_line_tests {
    use super::*;

    fn flawed(line: &str) -> PluginLineError {
        read(PluginLine::Whole(line.as_bytes().to_vec())).expect_err(line)
    }

    #[test]
    fn each_invalid_message_is_an_error_with_reason() {
        let table = [
            (
                "hello",
                PluginLineErrorKind::Garbage,
                "is not a message: expected a JSON value",
                None,
            ),
            (
                "{\"type\":\"shout\"}",
                PluginLineErrorKind::Garbage,
                "`shout` is not allowed here; known here",
                None,
            ),
            (
                "{\"type\":\"hello\",\"version\":1}",
                PluginLineErrorKind::Version,
                "speaks version 1 of the protocol, and this raymond speaks 2",
                None,
            ),
            (
                "{\"type\":\"hello\",\"version\":2,\"consult\":[\"end\"]}",
                PluginLineErrorKind::Garbage,
                "`end`",
                None,
            ),
            (
                "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"maybe\"}",
                PluginLineErrorKind::Answer,
                "`maybe` is not allowed here; known here",
                Some(3),
            ),
            (
                "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"override\",\"transition\":{\"tag\":\"goto\",\"target\":\"../x\"}}",
                PluginLineErrorKind::Answer,
                "`../x` is not a file of the workflow",
                Some(3),
            ),
        ];
        for (line, kind, text, id) in table {
            let flaw = flawed(line);
            assert_eq!((flaw.kind, flaw.id), (kind, id), "{line}");
            assert!(flaw.text.contains(text), "{}", flaw.text);
        }
        assert_eq!(
            read(PluginLine::TooLong).map_err(|flaw| flaw.kind),
            Err(PluginLineErrorKind::TooLong)
        );
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let line = "{\"type\":\"verdict\",\"id\":3,\"verdict\":\"proceed\",\"later\":true}";
        assert!(read(PluginLine::Whole(line.into())).is_ok());
    }
}
