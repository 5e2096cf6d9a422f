//! The tool calls of a turn, made by any program.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use strum::IntoStaticStr;

use super::refusal::{ToolRefusal, cut, subject};
use super::time::{Timestamp, seconds};

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToolCall {
    /// The id of the call.
    pub id: String,
    /// The call that started the sub-agent that made this one; `None` for the agent's own calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The tool's name.
    pub tool: String,
    /// What the tool does.
    pub kind: ToolKind,
    /// The part of the input that tells what the call is about, such as the command, cut to 200 bytes.
    pub title: String,
    /// The input.
    pub input: Value,
    /// The outcome.
    pub outcome: ToolOutcome,
    /// The beginning of the output, or of the error.
    pub output: Option<String>,
    /// The time of the call, if the program tells it.
    pub started_at: Option<Timestamp>,
    /// The time of the output, if the program tells it.
    pub ended_at: Option<Timestamp>,
    /// The time from the call to the output, including the wait for an approval.
    pub duration_ms: Option<u64>,
}

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// It runs commands.
    Shell,
    /// It changes files.
    Edit,
    /// It belongs to an MCP server.
    Mcp,
    /// It reads or searches the web.
    Web,
    /// It starts a sub-agent.
    Agent,
    /// Anything else.
    Other,
}

/// The outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToolOutcome {
    /// It succeeded.
    Ok,
    /// It failed.
    Failed,
    /// It was not allowed.
    Refused,
    /// It has no output.
    Unfinished,
}

impl ToolCall {
    /// Returns the title of a call with this input: its subject, else the input as JSON.
    pub fn title(input: &Value) -> String {
        let subject = subject(input);
        let has_fields = input.as_object().is_some_and(|fields| !fields.is_empty());
        cut(&if subject.is_empty() && has_fields { input.to_string() } else { subject })
    }

    /// Returns the name of the tool on one line, marked if a sub-agent called it.
    fn name(&self) -> String {
        let of = if self.parent.is_some() { "subagent " } else { "" };
        format!("{of}{}", cut(&self.tool))
    }

    /// Returns the call on one line: `Bash  git status  failed  0.3s`.
    pub fn line(&self) -> String {
        let outcome = match self.outcome {
            ToolOutcome::Ok => String::new(),
            ToolOutcome::Refused => format!("refused: {}", self.refusal().why),
            other => <&str>::from(other).to_owned(),
        };
        let took = self.duration_ms.filter(|_| self.outcome != ToolOutcome::Refused);
        let took = took.map(seconds).unwrap_or_default();
        let mut parts = vec![self.name(), self.title.clone(), outcome, took];
        parts.retain(|part| !part.is_empty());
        parts.join("  ")
    }

    /// Returns the refusal of the call, as records have it.
    fn refusal(&self) -> ToolRefusal {
        ToolRefusal::new(&self.tool, &self.input, self.output.as_deref().unwrap_or_default())
    }

    /// Returns whether it is a call that a record names as refused.
    pub fn is_named_by(&self, refusal: &ToolRefusal) -> bool {
        let own = self.refusal();
        self.outcome == ToolOutcome::Refused
            && own.tool == refusal.tool
            && own.input == refusal.input
    }
}

/// Returns how often each tool was called: `Bash ×3 (1 failed), Write`.
pub fn folded(calls: &[ToolCall]) -> String {
    let mut tools: Vec<(String, BTreeMap<ToolOutcome, usize>)> = Vec::new();
    for call in calls {
        let name = call.name();
        let place = tools.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            tools.push((name, BTreeMap::new()));
            tools.len() - 1
        });
        *tools[place].1.entry(call.outcome).or_default() += 1;
    }
    let tool = |(name, mut counts): (String, BTreeMap<ToolOutcome, usize>)| {
        let all: usize = counts.values().sum();
        counts.remove(&ToolOutcome::Ok);
        let word = |(outcome, count): (ToolOutcome, usize)| {
            let word = <&str>::from(outcome);
            if all > 1 { format!("{count} {word}") } else { word.to_owned() }
        };
        let words = counts.into_iter().map(word).collect::<Vec<_>>().join(", ");
        let times = if all > 1 { format!(" ×{all}") } else { String::new() };
        let words = if words.is_empty() { words } else { format!(" ({words})") };
        format!("{name}{times}{words}")
    };
    tools.into_iter().map(tool).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(tool: &str, input: Value, outcome: ToolOutcome) -> ToolCall {
        ToolCall {
            id: "t".to_owned(),
            parent: None,
            tool: tool.to_owned(),
            kind: ToolKind::Other,
            title: ToolCall::title(&input),
            input,
            outcome,
            output: Some("This command requires approval. IMPORTANT: stop".to_owned()),
            started_at: None,
            ended_at: None,
            duration_ms: None,
        }
    }

    #[test]
    fn title_is_the_subject_or_the_input() {
        assert_eq!(ToolCall::title(&json!({ "file_path": "a", "content": "x" })), "a");
        assert_eq!(ToolCall::title(&json!({ "pattern": "a\nb", "path": "." })), "a b");
        assert_eq!(ToolCall::title(&json!({ "todos": [1] })), r#"{"todos":[1]}"#);
        assert_eq!(ToolCall::title(&json!({})), "");
        assert!(ToolCall::title(&json!({ "all": vec![1; 500] })).ends_with('…'));
    }

    #[test]
    fn line_has_the_outcome_and_the_known_duration() {
        let input = json!({ "command": "curl a" });
        let mut one = call("Bash", input.clone(), ToolOutcome::Failed);
        assert_eq!(one.line(), "Bash  curl a  failed");
        one.duration_ms = Some(1234);
        one.parent = Some("p".to_owned());
        assert_eq!(one.line(), "subagent Bash  curl a  failed  1.2s");
        let refused = call("Bash", input.clone(), ToolOutcome::Refused);
        assert_eq!(refused.line(), "Bash  curl a  refused: This command requires approval.");
        let recorded = ToolRefusal::new("Bash", &input, "");
        assert!(refused.is_named_by(&recorded) && !one.is_named_by(&recorded));
    }

    #[test]
    fn calls_fold_by_tool_in_order_of_the_first_call() {
        let none = || json!({});
        let sub =
            ToolCall { parent: Some("p".to_owned()), ..call("Grep", none(), ToolOutcome::Ok) };
        let calls = [
            call("Bash", none(), ToolOutcome::Ok),
            call("Write", none(), ToolOutcome::Refused),
            call("Bash", none(), ToolOutcome::Failed),
            call("Grep", none(), ToolOutcome::Unfinished),
            sub.clone(),
            sub,
            call("Bash", none(), ToolOutcome::Refused),
        ];
        assert_eq!(
            folded(&calls),
            "Bash ×3 (1 failed, 1 refused), Write (refused), Grep (unfinished), subagent Grep ×2"
        );
        assert_eq!(folded(&[]), "");
    }
}
