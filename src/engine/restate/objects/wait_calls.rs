//! Calls of those who wait for news.

use serde::{Deserialize, Serialize};

use super::run_calls::RunTopic;

/// The longest time that a wait takes on the server. Whoever waits longer asks again.
pub(in crate::engine::restate) const LONGEST_WAIT_MS: u64 = 20_000;

/// A wait for more than was seen. The answer is the number of the last news, or what was seen if the time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::engine::restate) struct WaitCall {
    /// For a run; a host has only mail.
    pub(in crate::engine::restate) topic: RunTopic,
    pub(in crate::engine::restate) seen: u64,
    pub(in crate::engine::restate) longest_ms: u64,
}
