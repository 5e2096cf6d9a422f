//! The process floor of the benchmarks: it only replies, and touches no file.

use crate::flags::ClaudeFlags;
use crate::session::new_id;
use crate::stream::{self, StreamTurn};
use crate::usage::ProcessUsage;

/// Returns a turn without a script.
pub(crate) fn turn(flags: &ClaudeFlags) -> StreamTurn {
    let session = flags.session_id.clone().or_else(|| flags.resume.clone());
    StreamTurn {
        session: session.unwrap_or_else(|| new_id(0)),
        uuid: new_id(1),
        model: flags.model.as_deref().unwrap_or(stream::MODEL).to_owned(),
        permission_mode: flags.permission_mode(),
        has_schema: false,
        cost: 0.0,
        cost_before: 0.0,
        used: ProcessUsage::default(),
        partial: flags.partial_messages,
        replay: None,
        denials: serde_json::json!([]),
    }
}

/// Answers with `FAKE_CLAUDE_REPLY`, or with the prompt.
pub(crate) fn answer(turn: &StreamTurn, prompt: String) -> Result<(), String> {
    turn.say(&std::env::var("FAKE_CLAUDE_REPLY").unwrap_or(prompt))
}
