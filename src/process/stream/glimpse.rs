//! What a turn is seen doing by someone who only looks on: its last tool, its tokens so far, the last
//! things it said. Pure.
//!
//! The runtime reads a stream for what the turn comes to, this one for what a person wants to see. It
//! keeps the end of it only, and what it cannot read it passes over: a picture may have gaps.

use std::collections::{HashMap, VecDeque};

use memchr::memchr;
use serde::Deserialize;
use serde_json::Value;

use super::line::{Content, Field, Line, Message, PartialEvent, get, text};
use super::refusals::reads_like_a_refusal;
use super::{LONGEST_LINE, SYNTHETIC, partial};

/// How much of one thing that was said is kept, in bytes.
const LONGEST: usize = 4096;

/// How much of what a tool was given, or gave, is kept.
const LONGEST_TOOL: usize = 400;

/// What of a tool's input tells best what it is about.
const TELLING: [&str; 9] = [
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "path",
    "url",
    "query",
    "description",
    "prompt",
];

/// One thing of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The model wrote this.
    Text(String),
    /// It called this tool, with this.
    Tool(String),
    /// The tool answered this.
    Answer(String),
    /// Something happened, such as the end of the turn.
    Note(String),
}

/// What has been seen of a turn.
#[derive(Debug, Default)]
pub struct Glimpse {
    partial: Vec<u8>,
    keep: usize,
    /// What each message of the model has taken.
    taken: HashMap<String, u64>,
    open_tools: Vec<String>,
    /// Whether the last thing said is a message that is still being written.
    is_writing: bool,
    /// What it was last seen doing.
    pub doing: Option<String>,
    /// The tokens it has read and written so far; what comes from the cache again is not counted again.
    pub tokens: u64,
    /// The last things it said.
    pub said: VecDeque<Said>,
    /// Whether it has come to its end.
    pub ended: bool,
}

/// What a message has taken.
#[derive(Deserialize)]
struct Usage {
    #[serde(default, rename = "input_tokens")]
    read: u64,
    #[serde(default, rename = "cache_creation_input_tokens")]
    kept: u64,
    #[serde(default, rename = "output_tokens")]
    written: u64,
}

impl Glimpse {
    /// Of a turn of which nothing has been seen, keeping so many of the last things said.
    #[must_use]
    pub fn keeping(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    /// The same before anything has been seen.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self::keeping(self.keep)
    }

    /// Whether a tool is at work.
    #[must_use]
    pub fn is_at_work(&self) -> bool {
        !self.open_tools.is_empty()
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr(b'\n', bytes) {
            let mut line = std::mem::take(&mut self.partial);
            line.extend_from_slice(&bytes[..end]);
            self.line(&line);
            bytes = &bytes[end + 1..];
        }
        if self.partial.len() < LONGEST_LINE {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn line(&mut self, line: &[u8]) {
        if self.ended {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let Ok(event) = serde_json::from_str::<Line<'_>>(&text) else { return };
        match &*event.kind {
            "assistant" => self.assistant(&event),
            "user" => self.user(&event),
            "system" => self.system(&event),
            "result" if event.origin.is_none() => self.result(&event),
            partial::KIND if is_main(&event) => self.partial(&event),
            _ => {}
        }
    }

    /// Shows a message while it is written; the whole of it follows later in a line of its own.
    fn partial(&mut self, event: &Line<'_>) {
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

    /// Adds to the message that is being written; of a long one the end is kept.
    fn write(&mut self, piece: Option<String>) {
        let Some(piece) = piece.filter(|_| self.keep > 0) else { return };
        if self.is_writing
            && let Some(Said::Text(text)) = self.said.back_mut()
        {
            text.push_str(&piece);
            if text.len() > LONGEST {
                let cut = text.ceil_char_boundary(text.len() - LONGEST / 2);
                text.replace_range(..cut, "…");
            }
            return;
        }
        self.say(Said::Text, Some(piece), LONGEST);
        self.is_writing = true;
    }

    fn assistant(&mut self, event: &Line<'_>) {
        let Some(message) = get::<Message<'_>>(event.message) else { return };
        if text(message.model).as_deref() == Some(SYNTHETIC) {
            return;
        }
        self.count(&message);
        if is_main(event) && std::mem::take(&mut self.is_writing) {
            self.said.pop_back();
        }
        for content in &message.content {
            match &*content.kind {
                "tool_use" => self.tool(content),
                "text" => {
                    self.doing = Some("writing".to_owned());
                    self.say(Said::Text, text(content.text), LONGEST);
                }
                "thinking" => self.doing = Some("thinking".to_owned()),
                _ => {}
            }
        }
    }

    /// A message comes in several lines, each of which tells what it has taken so far.
    fn count(&mut self, message: &Message<'_>) {
        let Some(usage) = get::<Usage>(message.usage) else { return };
        let taken = usage.read + usage.kept + usage.written;
        let known = self.taken.entry(text(message.id).unwrap_or_default()).or_default();
        self.tokens += taken.saturating_sub(*known);
        *known = taken.max(*known);
    }

    fn tool(&mut self, content: &Content<'_>) {
        let name = text(content.name).unwrap_or_default();
        self.open_tools.extend(text(content.id));
        let about = about(content.input);
        let doing = if about.is_empty() { name } else { format!("{name}: {about}") };
        self.say(Said::Tool, Some(doing.clone()), LONGEST_TOOL);
        self.doing = Some(doing);
    }

    fn user(&mut self, event: &Line<'_>) {
        let Some(message) = get::<Message<'_>>(event.message) else { return };
        for content in message.content {
            let Some(answered) = text(content.tool_use_id) else { continue };
            self.open_tools.retain(|tool| *tool != answered);
            if get(content.is_error) == Some(true)
                && answer(content.answer).is_some_and(|said| reads_like_a_refusal(&said))
            {
                let was = self.doing.take().unwrap_or_default();
                self.doing = Some(format!("refused: {was}"));
            }
            self.say(Said::Answer, answer(content.answer), LONGEST_TOOL);
        }
    }

    fn system(&mut self, event: &Line<'_>) {
        if text(event.subtype).as_deref() == Some("api_retry") {
            let attempt: u32 = get(event.attempt).unwrap_or(1);
            self.doing = Some(format!("waiting for the API (attempt {attempt})"));
        }
    }

    fn result(&mut self, event: &Line<'_>) {
        self.ended = true;
        self.open_tools.clear();
        self.doing = Some("has answered".to_owned());
        let failed = get(event.is_error).unwrap_or(false);
        let said = if failed {
            format!("the turn failed: {}", text(event.result).unwrap_or_default())
        } else {
            "the turn is over".to_owned()
        };
        self.say(Said::Note, Some(said), LONGEST);
    }

    fn say(&mut self, kind: impl FnOnce(String) -> Said, text: Option<String>, longest: usize) {
        let Some(text) = text.filter(|_| self.keep > 0) else { return };
        self.is_writing = false;
        if self.said.len() == self.keep {
            self.said.pop_front();
        }
        self.said.push_back(kind(beginning(text, longest)));
    }
}

/// Returns whether a line is of the agent itself, not of a sub-agent.
fn is_main(event: &Line<'_>) -> bool {
    event.parent_tool_use_id.is_none_or(|parent| parent.get() == "null")
}

/// What a tool was called for, on one line.
fn about(input: Field<'_>) -> String {
    let Some(Value::Object(input)) = get::<Value>(input) else { return String::new() };
    let telling = TELLING.iter().find_map(|key| input.get(*key)?.as_str());
    let text = match telling.or_else(|| input.values().find_map(Value::as_str)) {
        Some(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        None => String::new(),
    };
    beginning(text, LONGEST_TOOL)
}

/// What a tool gave: a text, or a list of them.
fn answer(content: Field<'_>) -> Option<String> {
    if let Some(said) = text(content) {
        return Some(said);
    }
    let parts: Vec<Content<'_>> = get(content)?;
    let texts: Vec<String> = parts.iter().filter_map(|part| text(part.text)).collect();
    Some(texts.join("\n")).filter(|text| !text.is_empty())
}

fn beginning(mut text: String, longest: usize) -> String {
    let cut = text.floor_char_boundary(longest);
    if cut < text.len() {
        text.truncate(cut);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":9000},"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"timeout":5,"command":"cargo\n test"}}]}}"#;
    const GREW: &str = r#"{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":10,"output_tokens":7},"content":[{"type":"text","text":"Let me see."}]}}"#;
    const DONE: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"3 passed"}]}]}}"#;
    const NEXT: &str = r#"{"type":"assistant","message":{"id":"m2","usage":{"output_tokens":100},"content":[{"type":"thinking","thinking":"…"}]}}"#;
    const END: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"ok"}"#;

    fn seen(lines: &[&str], piece: usize) -> Glimpse {
        let text = lines.join("\n") + "\n";
        let mut glimpse = Glimpse::keeping(3);
        for piece in text.as_bytes().chunks(piece) {
            glimpse.feed(piece);
        }
        glimpse
    }

    #[test]
    fn a_tool_at_work_is_named_with_what_it_is_about() {
        let glimpse = seen(&["no json", TOOL], 7);
        assert_eq!(glimpse.doing.as_deref(), Some("Bash: cargo test"));
        assert!(glimpse.is_at_work());
        assert_eq!(glimpse.tokens, 11, "what is in the cache was counted before");
    }

    #[test]
    fn a_message_in_several_lines_counts_once() {
        let glimpse = seen(&[TOOL, GREW, DONE, NEXT], 1000);
        assert_eq!((glimpse.tokens, glimpse.is_at_work()), (117, false));
        assert_eq!(glimpse.doing.as_deref(), Some("thinking"));
        let said = [
            Said::Tool("Bash: cargo test".into()),
            Said::Text("Let me see.".into()),
            Said::Answer("3 passed".into()),
        ];
        assert_eq!(glimpse.said, said);
    }

    #[test]
    fn only_the_last_things_are_kept_and_nothing_after_the_end() {
        let glimpse = seen(&[TOOL, GREW, DONE, END, TOOL], 50);
        assert!(glimpse.ended && !glimpse.is_at_work());
        assert_eq!(glimpse.said.len(), 3);
        assert_eq!(glimpse.said.back(), Some(&Said::Note("the turn is over".into())));
        assert_eq!(glimpse.doing.as_deref(), Some("has answered"));
    }

    fn part(text: &str) -> String {
        format!(
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},"parent_tool_use_id":null}}"#
        )
    }

    #[test]
    fn a_message_is_shown_while_it_is_written_and_once_when_it_is_whole() {
        let start = r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"parent_tool_use_id":null}"#;
        let (let_me, see) = (part("Let me"), part(" s"));
        let glimpse = seen(&[start, &let_me, &see], 11);
        assert_eq!(glimpse.said, [Said::Text("Let me s".into())]);
        assert_eq!(glimpse.doing.as_deref(), Some("writing"));
        let glimpse = seen(&[start, &let_me, &see, GREW, TOOL], 1000);
        let whole = [Said::Text("Let me see.".into()), Said::Tool("Bash: cargo test".into())];
        assert_eq!(glimpse.said, whole);
    }

    #[test]
    fn a_long_message_is_bounded_while_it_is_written_and_a_sub_agents_is_not_shown() {
        let mut glimpse = Glimpse::keeping(3);
        for _ in 0..3 * LONGEST {
            glimpse.feed(format!("{}\n", part("ö")).as_bytes());
        }
        let Some(Said::Text(text)) = glimpse.said.back() else { panic!("a text") };
        assert!(glimpse.said.len() == 1 && text.len() <= LONGEST + 8 && text.starts_with('…'));
        let other = part("sub").replace(":null", ":\"toolu_1\"");
        assert!(seen(&[&other], 50).said.is_empty());
        let mut nobody_reads = Glimpse::default();
        nobody_reads.feed(format!("{}\n", part("text")).as_bytes());
        assert!(nobody_reads.said.is_empty());
    }

    #[test]
    fn a_result_nobody_asked_for_is_not_the_end() {
        let other = r#"{"type":"result","result":"x","origin":{"kind":"task-notification"}}"#;
        assert!(!seen(&[other], 9).ended);
    }
}
