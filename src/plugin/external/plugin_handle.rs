//! The process of a plug-in and its pipes.
//!
//! The spawner is passed in, because this room starts no process.
//!
//! The stderr of a program, passed on to people within limits.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::domain::time::Timestamp;

/// The time a program may take to end after its stdin was closed.
pub const GRACE: Duration = Duration::from_secs(2);

/// The time it may take after it was asked to end.
const LAST_GRACE: Duration = Duration::from_millis(500);

/// Starts the program of a plug-in.
pub trait PluginSpawner: Send {
    /// Starts it, on the thread that asks.
    ///
    /// # Errors
    /// The error of the system.
    fn spawn(&self) -> std::io::Result<SpawnedPlugin>;
}

/// A program that has been started.
pub struct SpawnedPlugin {
    /// The input of the program.
    pub stdin: Box<dyn AsyncWrite + Unpin>,
    /// The messages of the program.
    pub stdout: Box<dyn AsyncRead + Unpin>,
    /// The text of the program for people.
    pub stderr: Box<dyn AsyncRead + Unpin>,
    /// Its process.
    pub life: Box<dyn PluginHandle>,
}

/// The process of a program. When this is dropped, it ends.
pub trait PluginHandle {
    /// Waits for its end. May be dropped and called again.
    fn exited(&mut self) -> Pin<Box<dyn Future<Output = PluginExit> + '_>>;
    /// Asks it to end.
    fn terminate(&self);
    /// Ends it at once.
    fn kill(&self);
}

/// The exit of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginExit {
    /// True if it ended by itself, and without an error.
    pub well: bool,
    /// The description for people: `exited with code 3`.
    pub how: String,
}

/// Stays with a process until it has ended. After `stdin_closed` tells that its stdin is, it has its grace; then
/// it is asked to end; then it is killed.
pub(super) async fn accompany(
    mut life: Box<dyn PluginHandle>,
    stdin_closed: oneshot::Receiver<()>,
) -> PluginExit {
    tokio::select! {
        end = life.exited() => return end,
        _ = stdin_closed => {}
    }
    if let Ok(end) = timeout(GRACE, life.exited()).await {
        return end;
    }
    life.terminate();
    if let Ok(end) = timeout(LAST_GRACE, life.exited()).await {
        return end;
    }
    life.kill();
    life.exited().await
}

/// The maximum number of lines shown a minute.
const MAX_LINES_A_MINUTE: u32 = 20;

/// The maximum number of characters shown of a line.
const MAX_LINE_CHARS: usize = 1000;

const MINUTE_MS: u64 = 60 * 1000;

/// The number of lines within the current minute.
#[derive(Debug, Default)]
pub(super) struct StderrLimiter {
    since: Timestamp,
    lines: u32,
}

impl StderrLimiter {
    /// Returns the text to show for a line, if any.
    pub(super) fn shown(&mut self, line: &[u8], now: Timestamp) -> Option<String> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() {
            return None;
        }
        if now.since(self.since) >= MINUTE_MS {
            *self = Self { since: now, lines: 0 };
        }
        self.lines = self.lines.saturating_add(1);
        match self.lines {
            ..=MAX_LINES_A_MINUTE => Some(start_of(text, MAX_LINE_CHARS)),
            more if more == MAX_LINES_A_MINUTE + 1 => {
                Some("(it says more than is shown within a minute)".to_owned())
            }
            _ => None,
        }
    }
}

/// Returns the start of a text that may be long.
pub(super) fn start_of(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod stderr_limiter_tests {
    use super::*;

    #[test]
    fn flood_is_suppressed_until_next_minute() {
        let mut chatter = StderrLimiter::default();
        let now = Timestamp(1_000_000);
        let shown = (0..1000).filter_map(|_| chatter.shown(b"hm\n", now)).count();
        assert_eq!(shown, 21);
        assert_eq!(chatter.shown(b"again", now.plus(MINUTE_MS)).as_deref(), Some("again"));
        let long = chatter.shown("é".repeat(5000).as_bytes(), now).unwrap_or_default();
        assert_eq!(long.chars().count(), MAX_LINE_CHARS + 1);
        assert_eq!(chatter.shown(b" \n", now), None);
    }
}
