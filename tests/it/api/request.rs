//! What the stand-in keeps of a request: who asked, and the conversation as a reader sees it.
//!
//! Claude Code adds to what the user said (`<system-reminder>` blocks, messages of role `system`)
//! and joins neighbouring messages of one role into one. So the history is kept block by block,
//! without those additions, and the *newest* words are the last block alone: the prompt of this turn, or the
//! outcome of the tool the model asked for.

use std::fmt;

use axum::http::HeaderMap;
use serde_json::Value;

/// A conversational request.
#[derive(Clone)]
pub(crate) struct Request {
    /// The full model name.
    pub(crate) model: String,
    /// The Claude Code session that asks.
    pub(crate) session: String,
    /// The key that it was sent with.
    pub(super) key: String,
    /// The system prompt.
    pub(crate) system: String,
    /// The length of the whole request.
    pub(crate) bytes: usize,
    /// The whole request.
    whole: String,
    /// The names of the tools the model may use.
    pub(crate) tools: Vec<String>,
    /// The schema of the tool for an answer that is an object; null without it.
    pub(crate) output_schema: Value,
    /// How much the model is to think: `output_config` and `thinking`.
    pub(crate) effort: Option<String>,
    /// The most tokens that it may think with.
    pub(crate) thinking_budget: Option<u64>,
    /// Every text of the conversation, oldest first: prompts, replies, outcomes of tools.
    pub(crate) texts: Vec<String>,
    /// The last of `texts`.
    pub(crate) newest: String,
}

impl Request {
    /// The request, if it belongs to an agent's conversation. Claude Code also makes requests for
    /// its own use (titles, topics, summaries), known by offering the model no tools and asking for
    /// the whole answer at once.
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

    /// Whether the words stand anywhere in the request, also in what Claude Code adds.
    pub(crate) fn has_text(&self, words: &str) -> bool {
        self.whole.contains(words)
    }

    /// In how many places of the conversation the words stand, the newest included.
    pub(crate) fn mentions(&self, words: &str) -> usize {
        self.texts.iter().map(|text| text.matches(words).count()).sum()
    }

    /// Whether the model can see these words.
    pub(crate) fn sees(&self, words: &str) -> bool {
        self.mentions(words) > 0
    }
}

/// What a failing test shows: the conversation, without the pages that Claude Code adds to it.
impl fmt::Debug for Request {
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

/// The texts of a message's content, which is a string or a list of blocks. Reminders that Claude Code
/// adds are left out, but not the news of a background task, which newer versions wrap into one.
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
