//! The process floor of the benchmarks: a reply and nothing else; no file is touched.

use crate::flags::Flags;
use crate::session::new_id;
use crate::stream::{self, Turn};
use crate::usage::Usage;

/// A turn without a script.
pub(crate) fn turn(flags: &Flags) -> Turn {
    let session = flags.session_id.clone().or_else(|| flags.resume.clone());
    Turn {
        session: session.unwrap_or_else(|| new_id(0)),
        uuid: new_id(1),
        model: flags.model.as_deref().unwrap_or(stream::MODEL).to_owned(),
        permission_mode: flags.permission_mode(),
        has_schema: false,
        cost: 0.0,
        cost_before: 0.0,
        used: Usage::default(),
        partial: flags.partial_messages,
        replay: None,
        denials: serde_json::json!([]),
    }
}

/// Answers with `FAKE_CLAUDE_REPLY`, or with the prompt.
pub(crate) fn answer(turn: &Turn, prompt: String) -> Result<(), String> {
    turn.say(&std::env::var("FAKE_CLAUDE_REPLY").unwrap_or(prompt))
}
