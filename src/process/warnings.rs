//! Warnings about Claude Code, each once: of its version, and of a login that ends soon.

use std::cell::Cell;

use crate::domain::approval::ApprovalRequest;
use crate::domain::claude_version::version_warning;
use crate::domain::id::MessageId;
use crate::domain::refusal::ToolRefusal;
use crate::domain::time::{Timestamp, format_duration};
use crate::process::stream::StreamParser;

/// The time before the end of a login from which it is warned of, in milliseconds. A run may take a night.
const LOGIN_ENDS_SOON_MS: u64 = 24 * 3_600_000;

/// The warnings that have not been given yet.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    is_version_told: Cell<bool>,
    is_login_told: Cell<bool>,
}

impl Warnings {
    /// Gives the warnings that a stream is a reason for.
    pub(super) fn of(&self, stream: &StreamParser) {
        if !self.is_version_told.get()
            && let Some(warning) = stream.version.as_deref().and_then(version_warning)
        {
            self.is_version_told.set(true);
            tracing::warn!("{warning}");
        }
        if !self.is_login_told.get()
            && let Some(warning) = stream.login_ends.and_then(|ends| login_warning(ends, now()))
        {
            self.is_login_told.set(true);
            tracing::warn!("{warning}");
        }
    }
}

fn now() -> Timestamp {
    Timestamp(u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0))
}

/// Returns the warning about a login that ends; `None` if that is not soon.
fn login_warning(ends: Timestamp, now: Timestamp) -> Option<String> {
    let remedy = "log in again by running `claude` before a long run";
    match ends.0.checked_sub(now.0) {
        None => Some(format!("the login of Claude Code may have ended; {remedy}")),
        Some(left) if left > LOGIN_ENDS_SOON_MS => None,
        Some(left) => {
            let minutes = left / 60_000 * 60_000;
            Some(format!("the login of Claude Code ends in {}; {remedy}", format_duration(minutes)))
        }
    }
}

/// Something that a running turn was seen doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnNotice<'turn> {
    /// The model or a tool does this.
    Active(&'turn str),
    /// The API asks for fewer requests; the program itself retries.
    Throttled,
    /// A tool call needs approval.
    Approval(&'turn ApprovalRequest),
    /// It has read a message.
    MessageRead(&'turn MessageId),
    /// A tool was refused.
    Refused(&'turn ToolRefusal),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_that_ends_within_a_day_is_warned_of() {
        let now = Timestamp(1_800_000_000_000);
        let after = |ms: u64| login_warning(now.plus(ms), now);
        assert_eq!(after(LOGIN_ENDS_SOON_MS + 1), None);
        let soon = after(3 * 3_600_000 + 5_999).expect("a warning");
        assert!(soon.contains("ends in 3h;"), "{soon}");
        let over = login_warning(Timestamp(now.0 - 1), now).expect("a warning");
        assert!(over.contains("may have ended"), "{over}");
    }

    #[test]
    fn end_of_the_login_is_read_from_the_result() {
        let mut stream = StreamParser::default();
        let result = "{\"type\":\"result\",\"result\":\"x\",\"credential_expires_at\":\"2027-01-15T08:00:00.000Z\"}\n";
        stream.feed(result.as_bytes()).expect("a short line");
        assert_eq!(stream.login_ends, Some(Timestamp(1_800_000_000_000)));
    }
}
