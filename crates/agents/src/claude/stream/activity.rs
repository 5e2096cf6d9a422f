//! The visible activity of a turn, for an observer: its last tool, its tokens so far, its last messages. Pure.
//!
//! The runtime reads a stream for the outcome of the turn; this parser reads it for display. It keeps only the end, and
//! skips lines it cannot read: the picture may have gaps.

use std::collections::{HashMap, VecDeque};

use raymond_model::refusal::subject;
use raymond_model::tool_call::beginning;
use raymond_model::turn_options::BackgroundWork;
use serde::Deserialize;

use crate::background::{BackgroundTasks, TurnRemainder};
use crate::claude::stream::SYNTHETIC;
use crate::claude::stream::approvals::reads_like_a_refusal;
use crate::claude::stream::line::{
    AssembledLine, ContentBlock, LineKind, PartialEvent, StreamLine, StreamLineAssembler,
    StreamMessage, get, text,
};

/// The number of bytes that are kept of one item of the conversation.
const MAX_ITEM_BYTES: usize = 4096;

/// The number of bytes that are kept of a tool's input or answer.
const MAX_TOOL_BYTES: usize = 400;

/// An item of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationItem {
    /// The model wrote this text.
    Text(String),
    /// The model called this tool, with this input.
    Tool(String),
    /// The tool gave this answer.
    Answer(String),
    /// Something happened, such as the end of the turn.
    Note(String),
}

/// The observed activity of a turn.
#[derive(Debug, Default)]
pub struct TurnActivity {
    lines: StreamLineAssembler,
    keep: usize,
    /// The tokens that each message of the model has taken.
    taken: HashMap<String, u64>,
    open_tools: Vec<String>,
    background: BackgroundTasks,
    has_answered: bool,
    /// True if the last item is a message that is still being written.
    is_writing: bool,
    /// Its last activity.
    pub doing: Option<String>,
    /// The tokens it has read and written so far; tokens that are read from the cache are not counted again.
    pub tokens: u64,
    /// The last items of its conversation.
    pub items: VecDeque<ConversationItem>,
    /// True if it has ended.
    pub ended: bool,
}

/// The tokens that a message has taken.
#[derive(Deserialize)]
struct MessageUsage {
    #[serde(default, rename = "input_tokens")]
    read: u64,
    #[serde(default, rename = "cache_creation_input_tokens")]
    kept: u64,
    #[serde(default, rename = "output_tokens")]
    written: u64,
}

impl TurnActivity {
    /// Returns the activity of a turn before anything is read; `keep` is the number of the last items that are kept.
    pub fn keeping(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Returns this activity as it was before anything was read.
    pub fn restarted(&self) -> Self {
        Self::keeping(self.keep)
    }

    /// Returns whether a tool is at work.
    pub fn is_at_work(&self) -> bool {
        !self.open_tools.is_empty()
    }

    /// Takes the next bytes of the stream. A line that is too long is skipped.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line| match line {
            AssembledLine::Whole(line) => self.line(line),
            AssembledLine::TooLong { .. } => {}
        });
        self.lines = lines;
    }

    fn line(&mut self, line: &[u8]) {
        if self.ended {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let Some(event) = StreamLine::parse(&text) else { return };
        match event.kind {
            LineKind::Assistant => self.assistant(&event),
            LineKind::User => self.user(&event),
            LineKind::System => self.system(&event),
            LineKind::Result => self.result(&event),
            LineKind::Partial if event.is_of_main_agent() => self.partial(&event),
            LineKind::Partial
            | LineKind::RateLimit
            | LineKind::ControlResponse
            | LineKind::ControlRequest
            | LineKind::ControlCancel
            | LineKind::Other => {}
        }
        let remainder = self.background.remainder(BackgroundWork::Wait);
        self.ended = self.has_answered && remainder == TurnRemainder::Nothing;
    }

    /// Shows a message while it is written. The whole message follows later in a separate line.
    fn partial(&mut self, event: &StreamLine<'_>) {
        let Some(part) = get::<PartialEvent<'_>>(event.event) else { return };
        match &*part.kind {
            "content_block_start" => {
                self.is_writing = false;
                let Some(block) = part.content_block else { return };
                match &*block.kind {
                    "text" => self.doing = Some("writing".to_owned()),
                    "thinking" => self.doing = Some("thinking".to_owned()),
                    "tool_use" => self.doing = text(block.name),
                    _ => {}
                }
            }
            "content_block_delta" => {
                let Some(delta) = part.delta.filter(|delta| delta.kind == "text_delta") else {
                    return;
                };
                self.doing = Some("writing".to_owned());
                self.write(text(delta.text));
            }
            _ => {}
        }
    }

    /// Adds to the message that is being written; only the end of a long one is kept.
    fn write(&mut self, piece: Option<String>) {
        let Some(piece) = piece.filter(|_| self.keep > 0) else { return };
        if self.is_writing
            && let Some(ConversationItem::Text(text)) = self.items.back_mut()
        {
            text.push_str(&piece);
            if text.len() > MAX_ITEM_BYTES {
                let cut = text.ceil_char_boundary(text.len() - MAX_ITEM_BYTES / 2);
                text.replace_range(..cut, "…");
            }
            return;
        }
        self.say(ConversationItem::Text, Some(piece), MAX_ITEM_BYTES);
        self.is_writing = true;
    }

    fn assistant(&mut self, event: &StreamLine<'_>) {
        let Some(message) = get::<StreamMessage<'_>>(event.message) else { return };
        if text(message.model).as_deref() == Some(SYNTHETIC) {
            return;
        }
        self.count(&message);
        if event.is_of_main_agent() && std::mem::take(&mut self.is_writing) {
            self.items.pop_back();
        }
        for content in &message.content {
            match &*content.kind {
                "tool_use" => self.tool(content),
                "text" => {
                    self.doing = Some("writing".to_owned());
                    self.say(ConversationItem::Text, text(content.text), MAX_ITEM_BYTES);
                }
                "thinking" => self.doing = Some("thinking".to_owned()),
                _ => {}
            }
        }
    }

    /// Counts the tokens of a message. A message comes in several lines, and each line has the total so far.
    fn count(&mut self, message: &StreamMessage<'_>) {
        let Some(usage) = get::<MessageUsage>(message.usage) else { return };
        let taken = usage.read + usage.kept + usage.written;
        let known = self.taken.entry(text(message.id).unwrap_or_default()).or_default();
        self.tokens += taken.saturating_sub(*known);
        *known = taken.max(*known);
    }

    fn tool(&mut self, content: &ContentBlock<'_>) {
        let name = text(content.name).unwrap_or_default();
        self.open_tools.extend(text(content.id));
        let about = subject(&get(content.input).unwrap_or_default());
        let about = beginning(about, MAX_TOOL_BYTES);
        let doing = if about.is_empty() { name } else { format!("{name}: {about}") };
        self.say(ConversationItem::Tool, Some(doing.clone()), MAX_TOOL_BYTES);
        self.doing = Some(doing);
    }

    fn user(&mut self, event: &StreamLine<'_>) {
        let Some(message) = get::<StreamMessage<'_>>(event.message) else { return };
        for content in message.content {
            let Some(answered) = text(content.tool_use_id) else { continue };
            self.open_tools.retain(|tool| *tool != answered);
            if get(content.is_error) == Some(true)
                && content.answer_text().is_some_and(|answer| reads_like_a_refusal(&answer))
            {
                let was = self.doing.take().unwrap_or_default();
                self.doing = Some(format!("refused: {was}"));
            }
            self.say(ConversationItem::Answer, content.answer_text(), MAX_TOOL_BYTES);
        }
    }

    fn system(&mut self, event: &StreamLine<'_>) {
        let subtype = text(event.subtype).unwrap_or_default();
        self.background.system(&subtype, event);
        if subtype == "api_retry" {
            let attempt: u32 = get(event.attempt).unwrap_or(1);
            self.doing = Some(format!("waiting for the API (attempt {attempt})"));
        }
    }

    fn result(&mut self, event: &StreamLine<'_>) {
        self.background.result(event);
        if event.origin.is_some() && !self.has_answered {
            return;
        }
        self.has_answered = true;
        self.open_tools.clear();
        let waits = self.background.names().map(|tasks| format!("waiting for {tasks}"));
        let failed = get(event.is_error).unwrap_or(false);
        let note = match &waits {
            _ if failed => format!("the turn failed: {}", text(event.result).unwrap_or_default()),
            Some(waits) => waits.clone(),
            None => "the turn is over".to_owned(),
        };
        self.doing = Some(waits.unwrap_or_else(|| "has answered".to_owned()));
        self.say(ConversationItem::Note, Some(note), MAX_ITEM_BYTES);
    }

    fn say(
        &mut self,
        kind: impl FnOnce(String) -> ConversationItem,
        text: Option<String>,
        longest: usize,
    ) {
        let Some(text) = text.filter(|_| self.keep > 0) else { return };
        self.is_writing = false;
        if self.items.len() == self.keep {
            self.items.pop_front();
        }
        self.items.push_back(kind(beginning(text, longest)));
    }
}

#[cfg(test)]
mod tests;
