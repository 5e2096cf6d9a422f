//! The stderr of a program, passed on to people within limits.

use crate::domain::time::Timestamp;

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
mod tests {
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
