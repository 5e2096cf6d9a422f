//! What happens in a turn, in the same words for each agent program.

use raymond_model::time::Timestamp;
use raymond_model::tool_call::ToolKind;
use serde_json::Value;

/// Something that happens in a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEvent {
    /// The program has read a message: the prompt, or one of a person.
    Read {
        /// The text.
        text: String,
    },
    /// The model wrote a text.
    Wrote {
        /// The text, as Markdown.
        text: String,
        /// The call of the tool for which a sub-agent wrote it.
        parent: Option<String>,
    },
    /// The model thought.
    Thought {
        /// The thoughts, as far as the program shows them.
        text: String,
        /// The call of the tool for which a sub-agent thought it.
        parent: Option<String>,
    },
    /// The model called a tool.
    ToolCalled {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        tool: String,
        /// The kind of the tool.
        kind: ToolKind,
        /// The input.
        input: Value,
        /// The call of the tool for which a sub-agent called it.
        parent: Option<String>,
        /// The time of the call, if the program says it.
        at: Option<Timestamp>,
    },
    /// A tool gave its output.
    ToolEnded {
        /// The id of the call.
        id: String,
        /// The output.
        output: String,
        /// True if it failed or was refused.
        is_error: bool,
        /// True if it was refused, as far as the output says.
        is_refused: bool,
        /// The time of the output, if the program says it.
        at: Option<Timestamp>,
    },
    /// A call was refused.
    ToolRefused {
        /// The id of the call.
        id: String,
    },
    /// The program waits before it asks the API again.
    Waits {
        /// The number of the next attempt, from 1.
        attempt: u64,
    },
    /// The turn has a result. A turn may have several.
    Result {
        /// The final text, or the error.
        text: Option<String>,
        /// The object that was given in place of a text, as JSON.
        structured: Option<String>,
        /// True if it is an error.
        is_error: bool,
        /// True if no message asked for it: a background task had ended.
        is_of_task: bool,
    },
}
