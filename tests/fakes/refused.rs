//! Refused tools, in the shapes that older and newer versions of the program print.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::session::new_id;
use crate::stream::{StreamTurn, line};

/// A call that is refused.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusedTool {
    pub(crate) tool: String,
    pub(crate) input: Value,
    pub(crate) why: String,
    /// True if the refusal is printed as it happens, as in newer versions.
    #[serde(default)]
    pub(crate) live: bool,
}

impl RefusedTool {
    fn id(number: usize) -> String {
        format!("toolu_refused_{number}")
    }

    /// Returns the lines of the call and of its refusal.
    pub(crate) fn told(&self, number: usize, turn: &StreamTurn) -> Vec<u8> {
        let (id, session) = (Self::id(number), &turn.session);
        let call = json!({"type": "tool_use", "id": id, "name": self.tool, "input": self.input});
        let mut said = turn.message(&new_id(8), &turn.model, "tool_use", &call);
        if self.live {
            said.extend(line(&json!({
                "type": "system", "subtype": "permission_denied", "tool_name": self.tool,
                "tool_use_id": id, "decision_reason_type": "other", "message": self.why,
                "uuid": new_id(9), "session_id": session,
            })));
        }
        let answer = json!({
            "type": "tool_result", "tool_use_id": id, "is_error": true, "content": self.why,
        });
        said.extend(line(&json!({
            "type": "user", "uuid": new_id(6), "session_id": session,
            "parent_tool_use_id": null, "message": {"role": "user", "content": [answer]},
        })));
        said
    }

    /// Returns the refusals as the result lists them.
    pub(crate) fn denials(all: &[Self]) -> Value {
        let denial = |(number, one): (usize, &Self)| {
            json!({
                "tool_name": one.tool, "tool_use_id": Self::id(number), "tool_input": one.input,
            })
        };
        all.iter().enumerate().map(denial).collect()
    }
}
