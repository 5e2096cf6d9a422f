//! The tool calls of a turn, made by any program, and the texts of models, files and programs made safe to print.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use strum::IntoStaticStr;

use super::refusal::{ToolRefusal, cut, subject};
use super::time::{Timestamp, seconds};
use super::words::joined_words;

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
    pub input: Value,
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
        let of_call = self.refusal();
        self.outcome == ToolOutcome::Refused
            && of_call.tool == refusal.tool
            && of_call.input == refusal.input
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

// Makes texts of models, files and programs safe to print.
//
// A printable text has no character that controls a terminal, is invisible, or changes the direction of the text around
// it. Such a character is written as its number, like `\u{1b}`. All text for people goes through here. Programs read
// the original text, as JSON in which these characters are escaped.

/// The length that [`one_line`] cuts a text to, in bytes.
const LINE_LENGTH: usize = 80;

/// Returns whether a character controls a terminal, is invisible, or changes the direction of text. The line feed
/// counts too: only [`printable`] keeps it.
pub fn is_unprintable(c: char) -> bool {
    c.is_control() || is_invisible(c) || is_directional(c)
}

/// Returns whether a character has no width, or breaks a line invisibly. The two selectors between text and emoji do
/// not count.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2028}'..='\u{2029}'
        | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0d}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a character controls the direction of text.
fn is_directional(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a text of several lines in which every other unprintable character is written as its number.
pub fn printable(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    shown(&text, |c| match c {
        '\n' => Some("\n"),
        '\t' => Some("\t"),
        _ => None,
    })
}

/// Returns a text on a single line, so that no part of it looks like another line.
pub fn printable_line(text: &str) -> String {
    shown(text.trim_end_matches(['\n', '\r']), |c| match c {
        '\n' => Some("\\n"),
        '\r' => Some("\\r"),
        '\t' => Some(" "),
        _ => None,
    })
}

/// Returns a text of several lines on a single one, with blanks between them.
pub fn joined_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    printable_line(&lines.collect::<Vec<_>>().join(" "))
}

/// Returns a text in which all lines but the first are indented, so that none of them looks like another message.
pub fn printable_block(text: &str) -> String {
    let text = printable(text);
    let mut lines = text.lines();
    let mut block = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        block.push_str(if line.is_empty() { "\n" } else { "\n  " });
        block.push_str(line);
    }
    block
}

/// Returns the beginning of a text on one line, its blanks and line breaks as single blanks.
pub fn one_line(text: &str) -> String {
    flat(text, LINE_LENGTH)
}

/// Returns the beginning of a text on one line, up to a length in bytes.
pub fn flat(text: &str, longest: usize) -> String {
    beginning(printable_line(&joined_words(text)), longest)
}

/// Returns the beginning of a text, up to a length in characters, with a mark where it is cut.
pub fn first_characters(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the beginning of a text, up to a length in bytes, with a mark where it is cut.
pub fn beginning(mut text: String, longest: usize) -> String {
    let cut = text.floor_char_boundary(longest);
    if cut < text.len() {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// Returns JSON with the same values, without characters that control a terminal or are invisible.
pub fn printable_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        // In JSON these are blanks between the values; in a text they are escaped already.
        if matches!(c, '\n' | '\t' | '\r') || !is_unprintable(c) {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}

fn shown(text: &str, escape: impl Fn(char) -> Option<&'static str>) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match escape(c) {
            Some(as_is) => shown.push_str(as_is),
            None if is_unprintable(c) => shown.extend(c.escape_unicode()),
            None => shown.push(c),
        }
    }
    shown
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
        let mut call_line = call("Bash", input.clone(), ToolOutcome::Failed);
        assert_eq!(call_line.line(), "Bash  curl a  failed");
        call_line.duration_ms = Some(1234);
        call_line.parent = Some("p".to_owned());
        assert_eq!(call_line.line(), "subagent Bash  curl a  failed  1.2s");
        let refused = call("Bash", input.clone(), ToolOutcome::Refused);
        assert_eq!(refused.line(), "Bash  curl a  refused: This command requires approval.");
        let recorded = ToolRefusal::new("Bash", &input, "");
        assert!(refused.is_named_by(&recorded) && !call_line.is_named_by(&recorded));
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

#[cfg(test)]
mod printable_tests {
    use super::*;

    /// Each kind of what a text must not do, with what is shown instead.
    const KINDS: [(&str, &str); 14] = [
        ("\u{1b}]52;c;AAAA\u{7}", r"\u{1b}]52;c;AAAA\u{7}"),
        ("\u{1b}[2J", r"\u{1b}[2J"),
        ("a\u{8}b\u{0}", r"a\u{8}b\u{0}"),
        ("\u{7f}", r"\u{7f}"),
        ("\u{9b}2J\u{9d}0;x\u{9c}\u{85}", r"\u{9b}2J\u{9d}0;x\u{9c}\u{85}"),
        ("\u{202e}cod.exe\u{202c}", r"\u{202e}cod.exe\u{202c}"),
        ("\u{2066}x\u{2069}\u{200f}\u{61c}", r"\u{2066}x\u{2069}\u{200f}\u{61c}"),
        ("pass\u{200b}word\u{200d}\u{feff}", r"pass\u{200b}word\u{200d}\u{feff}"),
        ("\u{2028}\u{2029}", r"\u{2028}\u{2029}"),
        ("\u{b}\u{c}", r"\u{b}\u{c}"),
        ("over\rwritten", r"over\u{d}written"),
        ("\u{e0041}\u{e0042}", r"\u{e0041}\u{e0042}"),
        ("so\u{ad}ft \u{3164}", r"so\u{ad}ft \u{3164}"),
        ("größer 日本 ❤\u{fe0f} é e\u{301} �", "größer 日本 ❤\u{fe0f} é e\u{301} �"),
    ];

    #[test]
    fn lines_are_joined_by_blanks() {
        assert_eq!(joined_lines("a  b\n\n  c\r\nd\u{1b}\n"), r"a  b c d\u{1b}");
    }

    #[test]
    fn unprintable_characters_are_escaped_by_code_point() {
        for (text, expected) in KINDS {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable("a\tb\r\nc\n"), "a\tb\nc\n");
    }

    #[test]
    fn text_cannot_start_unindented_output_line() {
        assert_eq!(printable_line("a\nerror: b\r\n\tc\rd\n\n"), r"a\nerror: b\r\n c\rd");
        assert_eq!(printable_line("a\u{2028}b\u{85}c"), r"a\u{2028}b\u{85}c");
        assert_eq!(printable_block("a\nerror: b\n\nc\n"), "a\n  error: b\n\n  c");
        assert_eq!(flat(" a \n b\u{2028}c\u{1b}d", 80), r"a b c\u{1b}d");
        assert_eq!(flat("äöü", 3), "ä…");
    }

    #[test]
    fn beginning_ends_between_characters() {
        for (longest, bytes, characters) in
            [(0, "…", "…"), (1, "…", "ä…"), (2, "ä…", "äö…"), (3, "ä…", "äöü"), (6, "äöü", "äöü")]
        {
            assert_eq!(beginning("äöü".to_owned(), longest), bytes);
            assert_eq!(first_characters("äöü", longest), characters);
        }
    }

    #[test]
    fn every_control_and_format_character_is_unprintable() {
        let seen = |c: char| matches!(c, '\u{fe0e}' | '\u{fe0f}');
        let ranges = [0..=0x1f, 0x7f..=0x9f, 0x200b..=0x200f, 0x2028..=0x202e, 0x2060..=0x206f];
        for c in ranges.into_iter().flatten().filter_map(char::from_u32).filter(|&c| !seen(c)) {
            assert!(is_unprintable(c), "{c:?}");
        }
    }

    #[test]
    fn escaped_json_parses_to_same_value() {
        for (text, _) in KINDS {
            let value = serde_json::json!({ text: [text], "plain": 1 });
            for json in [value.to_string(), serde_json::to_string_pretty(&value).expect("JSON")] {
                let escaped = printable_json(&json);
                let hidden = escaped.chars().find(|&c| is_unprintable(c) && c != '\n');
                assert_eq!(hidden, None, "{escaped}");
                assert_eq!(
                    serde_json::from_str::<serde_json::Value>(&escaped).expect("JSON"),
                    value
                );
            }
        }
        assert_eq!(printable_json("{\n  \"a\": \"ä\"\n}\n"), "{\n  \"a\": \"ä\"\n}\n");
    }
}
