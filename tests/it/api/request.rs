//! The requests that the stand-in records: the sender, and the conversation as a reader sees it.
//!
//! Claude Code adds to the user's text (`<system-reminder>` blocks, messages of role `system`) and joins
//! neighbouring messages of one role. So the history is kept block by block, without those additions, and the
//! *newest* text is the last block alone: the prompt of this turn, or the result of the tool that the model
//! asked for.

use std::fmt;

use axum::http::HeaderMap;
use serde_json::Value;

/// A conversational request.
#[derive(Clone)]
pub(crate) struct ApiRequest {
    /// The full name of the model.
    pub(crate) model: String,
    /// The Claude Code session of the request.
    pub(crate) session: String,
    /// The key that the request was sent with.
    pub(super) key: String,
    /// The system prompt.
    pub(crate) system: String,
    /// The length of the whole request.
    pub(crate) bytes: usize,
    /// The whole request.
    whole: String,
    /// The names of the tools that the model may use.
    pub(crate) tools: Vec<String>,
    /// The schema of the tool for an answer that is an object; null without it.
    pub(crate) output_schema: Value,
    /// The effort of the model, from `output_config`.
    pub(crate) effort: Option<String>,
    /// The most tokens that the model may think with.
    pub(crate) thinking_budget: Option<u64>,
    /// The texts of the conversation, oldest first: prompts, replies, results of tools.
    pub(crate) texts: Vec<String>,
    /// The last of `texts`.
    pub(crate) newest: String,
}

impl ApiRequest {
    /// Reads a request that belongs to an agent's conversation. Claude Code also sends requests for its own
    /// use (titles, topics, summaries), which have no tools and do not ask for a stream.
    pub(super) fn conversational(headers: &HeaderMap, body: &Value) -> Option<Self> {
        let tools: Vec<_> = items(&body["tools"]).map(|tool| string(&tool["name"])).collect();
        if tools.is_empty() && body["stream"] != true {
            return None;
        }
        let spoken = items(&body["messages"]).filter(|message| message["role"] != "system");
        let history: Vec<_> = spoken.flat_map(|message| texts(&message["content"])).collect();
        let header = |name| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let whole = body.to_string();
        Some(Self {
            model: string(&body["model"]),
            session: header("x-claude-code-session-id"),
            key: header("x-api-key"),
            bytes: whole.len(),
            whole,
            system: texts(&body["system"]).join("\n"),
            tools,
            output_schema: output_schema(&body["tools"]),
            effort: body["output_config"]["effort"].as_str().map(str::to_owned),
            thinking_budget: body["thinking"]["budget_tokens"].as_u64(),
            newest: history.last().cloned().unwrap_or_default(),
            texts: history,
        })
    }

    /// Returns whether the request contains a text, also in what Claude Code adds.
    pub(crate) fn has_text(&self, words: &str) -> bool {
        self.whole.contains(words)
    }

    /// Returns how often the conversation contains a text, the newest text included.
    pub(crate) fn mentions(&self, words: &str) -> usize {
        self.texts.iter().map(|text| text.matches(words).count()).sum()
    }

    /// Returns whether the model can see a text.
    pub(crate) fn sees(&self, words: &str) -> bool {
        self.mentions(words) > 0
    }
}

/// Shows the conversation in a failing test, without the texts that Claude Code adds to it.
impl fmt::Debug for ApiRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short: Vec<_> = self.texts.iter().map(|text| beginning(text)).collect();
        let mut shown = formatter.debug_struct("Request");
        shown.field("model", &self.model).field("session", &self.session);
        shown.field("texts", &short).finish_non_exhaustive()
    }
}

fn output_schema(tools: &Value) -> Value {
    let tool = items(tools).find(|tool| tool["name"] == "StructuredOutput");
    tool.map_or(Value::Null, |tool| tool["input_schema"].clone())
}

fn beginning(text: &str) -> String {
    text.chars().take(300).collect()
}

/// Returns the texts of a message's content, which is a string or a list of blocks. Reminders that Claude
/// Code adds are left out, but not reports of background tasks, which newer versions wrap into one.
fn texts(content: &Value) -> Vec<String> {
    let said = |text: &String| {
        !text.trim_start().starts_with("<system-reminder>") || text.contains("<task-notification>")
    };
    match content {
        Value::String(text) => vec![text.clone()],
        blocks => items(blocks).filter_map(text).collect(),
    }
    .into_iter()
    .filter(said)
    .collect()
}

fn text(block: &Value) -> Option<String> {
    match block["type"].as_str()? {
        "text" => Some(string(&block["text"])),
        "tool_use" => Some(block["input"].to_string()),
        "tool_result" => Some(texts(&block["content"]).join("\n")),
        _ => None,
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
