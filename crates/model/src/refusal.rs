//! Tools that Claude Code refused to run in a turn: their inputs, the reasons, and the rules that would allow them.
//!
//! A record names each distinct call once and counts its repetitions. A record is bounded in its number of calls and
//! in the length of each text. Calls beyond that are only counted.

use std::fmt::Write as _;

use crate::words::joined_words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::rule::rules_that_allow;

mod rule;

/// The distinct calls that one turn's record names.
pub const NAMED_PER_TURN: usize = 16;

/// The distinct calls that a whole run names.
pub const NAMED_PER_RUN: usize = 32;

/// The number of bytes that are kept of a call's input, and of the reason for its refusal.
pub const MAX_TEXT_BYTES: usize = 200;

/// The number of rules that are kept for one call.
const MAX_RULES: usize = 8;

/// The keys of a tool's input that describe a call best, the best first.
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

/// A call of a tool that was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRefusal {
    /// The tool's name.
    pub tool: String,
    /// The part of its input that tells what it is about, such as the command, cut to 200 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// The reason that Claude Code gave, cut to 200 bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The permission rules that would have allowed it, all of them together; none if no rule would.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The number of times the same call was refused.
    #[serde(default = "once", skip_serializing_if = "is_once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_once(times: &u32) -> bool {
    *times == 1
}

impl ToolRefusal {
    /// Describes one refused call by its tool, the whole input and the reason that was given.
    pub fn new(tool: &str, input: &Value, why: &str) -> Self {
        let mut allow = rule::rules_that_allow(tool, input, why);
        if allow.iter().any(|rule| rule.len() > MAX_TEXT_BYTES) || allow.len() > MAX_RULES {
            allow = vec![tool.to_owned()];
        }
        Self {
            tool: cut(tool),
            input: cut(&subject(input)),
            why: cut(first_sentence(why)),
            allow,
            times: 1,
        }
    }
}

/// The refused calls of a turn, or of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolRefusals {
    /// The distinct calls, in the order in which they were refused first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolRefusal>,
    /// The number of further calls that are not named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl ToolRefusals {
    /// Returns whether no call was refused.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.more == 0
    }

    /// Returns how many calls were refused, repetitions included.
    pub fn count(&self) -> u32 {
        self.calls.iter().fold(self.more, |count, call| count.saturating_add(call.times))
    }

    /// Adds a refused call: an equal one is counted again, and beyond `named` distinct ones it is only
    /// counted.
    pub fn add(&mut self, refusal: &ToolRefusal, named: usize) {
        let is_same =
            |known: &&mut ToolRefusal| known.tool == refusal.tool && known.input == refusal.input;
        if let Some(known) = self.calls.iter_mut().find(is_same) {
            known.times = known.times.saturating_add(refusal.times);
        } else if self.calls.len() < named {
            self.calls.push(refusal.clone());
        } else {
            self.more = self.more.saturating_add(refusal.times);
        }
    }

    /// Adds all refused calls of others.
    pub fn add_all(&mut self, others: &Self, named: usize) {
        for refusal in &others.calls {
            self.add(refusal, named);
        }
        self.more = self.more.saturating_add(others.more);
    }

    /// Returns the rules that would have allowed all named calls, each once.
    pub fn allow(&self) -> Vec<&str> {
        let mut rules: Vec<&str> = Vec::new();
        for rule in self.calls.iter().flat_map(|call| &call.allow) {
            if !rules.contains(&rule.as_str()) {
                rules.push(rule);
            }
        }
        rules
    }
}

/// Returns the part of a tool's input that tells what the call is about, on one line.
pub fn subject(input: &Value) -> String {
    let Value::Object(fields) = input else { return String::new() };
    let telling = TELLING.iter().find_map(|key| fields.get(*key)?.as_str());
    let text = telling.or_else(|| fields.values().find_map(Value::as_str)).unwrap_or_default();
    one_line(text)
}

fn one_line(text: &str) -> String {
    joined_words(&text.replace(char::is_control, " "))
}

/// Returns the beginning of a text that fits the bound, with a mark where it is cut.
pub(crate) fn cut(text: &str) -> String {
    const MARK: char = '…';
    let text = one_line(text);
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES - MARK.len_utf8());
    format!("{}{MARK}", text[..end].trim_end())
}

/// Returns a reason without the text that Claude Code adds for the model.
fn first_sentence(why: &str) -> &str {
    why.split_once(" IMPORTANT: ").map_or(why, |(first, _)| first)
}

// The parts of a shell command and their first words, as the permission rules for commands use them.

/// Programs whose second word says what they do.
const TWO_WORDS: [&str; 35] = [
    "apt",
    "apt-get",
    "aws",
    "az",
    "brew",
    "bun",
    "bundle",
    "cargo",
    "composer",
    "conda",
    "deno",
    "docker",
    "dotnet",
    "env",
    "gcloud",
    "gem",
    "gh",
    "git",
    "go",
    "helm",
    "kubectl",
    "nix",
    "npm",
    "npx",
    "pip",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "sudo",
    "systemctl",
    "terraform",
    "uv",
    "xargs",
    "yarn",
];

/// Words of the shell that come before a command.
const BEFORE: [&str; 10] =
    ["!", "do", "elif", "else", "if", "then", "time", "until", "while", "nohup"];

/// Words of the shell that begin something other than a command.
const NO_COMMAND: [&str; 3] = ["for", "done", "fi"];

/// Returns the first words of the parts of a command, each once: of the parts that `named` contains, or of all if it
/// contains none. `None` if the command cannot be taken apart, or no rule covers one of the parts.
fn prefixes(command: &str, named: Option<&str>) -> Option<Vec<String>> {
    let mut commands: Vec<&str> =
        parts(command)?.into_iter().filter_map(without_shell_words).collect();
    if commands.len() > 1 {
        commands.retain(|part| words(part).next() != Some("cd"));
    }
    let named = named.unwrap_or_default();
    let leaves_the_directory = named.starts_with("cd ") || named.contains(", cd ");
    if leaves_the_directory {
        return None;
    }
    let is_named = |part: &&str| named.contains(without_redirection(part));
    let named: Vec<&str> = commands.iter().copied().filter(is_named).collect();
    let needed = if named.is_empty() { commands } else { named };
    let mut prefixes: Vec<String> = Vec::new();
    for part in needed {
        let prefix = prefix(part)?;
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    (!prefixes.is_empty()).then_some(prefixes)
}

/// Returns the commands between the operators; `None` if only a shell can take the text apart.
fn parts(command: &str) -> Option<Vec<&str>> {
    let bytes = command.as_bytes();
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    let mut quote = None;
    while at < bytes.len() {
        let (byte, next) = (bytes[at], bytes.get(at + 1).copied());
        match (quote, byte) {
            (Some(b'\''), b'\'') | (Some(b'"'), b'"') => quote = None,
            (Some(b'\''), _) => {}
            (_, b'\\') => at += 1,
            (_, b'`') | (None, b'(' | b')' | b'{' | b'}') => return None,
            (_, b'$') if next == Some(b'(') => return None,
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'<') if next == Some(b'<') => return None,
            (None, b'&') if next == Some(b'>') || at > 0 && bytes[at - 1] == b'>' => {}
            (None, b'&') if next != Some(b'&') => return None,
            (None, b';' | b'\n' | b'|' | b'&') => {
                parts.push(command[begin..at].trim());
                let is_double = matches!(byte, b'|' | b'&') && matches!(next, Some(b'|' | b'&'));
                at += usize::from(is_double);
                begin = at + 1;
            }
            (Some(_) | None, _) => {}
        }
        at += 1;
    }
    if quote.is_some() {
        return None;
    }
    parts.push(command.get(begin..).unwrap_or_default().trim());
    parts.retain(|part| !part.is_empty());
    Some(parts)
}

/// Returns a part without the words of the shell before it; `None` if nothing is left.
fn without_shell_words(mut part: &str) -> Option<&str> {
    loop {
        let first = words(part).next()?;
        if NO_COMMAND.contains(&first) {
            return None;
        }
        if !BEFORE.contains(&first) {
            return Some(part);
        }
        part = part[first.len()..].trim_start();
    }
}

/// Returns the first words of a command, up to the word that names its action.
fn prefix(part: &str) -> Option<String> {
    let mut words = words(part).peekable();
    let mut prefix: Vec<&str> = Vec::new();
    while let Some(word) = words.next_if(|word| is_assignment(word)) {
        prefix.push(word);
    }
    let mut program = words.next()?;
    if program == "timeout" {
        let limit = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        if !prefix.is_empty() {
            prefix.extend([program, limit]);
        }
        program = words.next()?;
    }
    prefix.push(program);
    if TWO_WORDS.contains(&program) {
        prefix.extend(words.next_if(|word| is_subcommand(word)));
    }
    prefix.iter().all(|word| is_plain(word)).then(|| prefix.join(" "))
}

fn without_redirection(part: &str) -> &str {
    let command = part.split(['<', '>']).next().unwrap_or_default();
    let is_cut = command.len() < part.len();
    let descriptor = |c: char| c.is_ascii_digit() || c == '&';
    if is_cut { command.trim_end_matches(descriptor).trim_end() } else { command }
}

fn words(part: &str) -> impl Iterator<Item = &str> {
    part.split_ascii_whitespace()
}

fn is_assignment(word: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(is_name))
}

fn is_subcommand(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic()) && is_plain(word)
}

/// Returns whether a word stands for itself in the shell and in a rule.
fn is_plain(word: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./+=@%:~".contains(c);
    !word.is_empty() && word.chars().all(is_plain)
}

// Refused tools in words: what was refused, and what to type so that it is allowed.

/// The calls that one sentence names.
const NAMED: usize = 4;

/// The rules that one sentence names.
const RULES: usize = 12;

/// The rule that allows every command.
const EVERY_COMMAND: &str = "Bash";

/// The characters of a call's input that a sentence shows.
const MAX_INPUT_CHARS: usize = 60;

/// Returns the sentence that closes a run: what was refused, how often, and what would allow it.
pub fn closing_line(refusals: &ToolRefusals) -> Option<String> {
    let mut line = headline(refusals)?;
    if let Some(advice) = advice(refusals) {
        let them = if refusals.count() == 1 { "it" } else { "them" };
        let _ = write!(line, "; allow {them} with: {advice}");
    } else if let Some(first) = refusals.calls.first().filter(|first| !first.why.is_empty()) {
        let _ = write!(line, "; the reason: {}", first.why);
    }
    Some(line)
}

/// Returns what was refused, such as: 3 tools were refused: Bash `curl …` (2), `WebFetch` …
pub fn headline(refusals: &ToolRefusals) -> Option<String> {
    let were = match refusals.count() {
        0 => return None,
        1 => "1 tool was refused".to_owned(),
        count => format!("{count} tools were refused"),
    };
    let mut calls: Vec<String> = refusals.calls.iter().take(NAMED).map(call).collect();
    let named = refusals.calls.iter().take(NAMED);
    let named = named.fold(0, |count: u32, call| count.saturating_add(call.times));
    let rest = refusals.count().saturating_sub(named);
    if rest > 0 {
        calls.push(format!("{rest} more"));
    }
    Some(format!("{were}: {}", calls.join(", ")))
}

/// Returns the arguments that would have allowed what was refused; none if no rule would. A rule that
/// allows every command comes last, with the reason for it.
pub fn advice(refusals: &ToolRefusals) -> Option<String> {
    let (every, rules): (Vec<&str>, Vec<&str>) =
        refusals.allow().into_iter().partition(|rule| *rule == EVERY_COMMAND);
    let needs_it = |call: &&ToolRefusal| call.allow.iter().any(|rule| rule == EVERY_COMMAND);
    let example = refusals.calls.iter().find(needs_it).map(|call| shortened(&call.input));
    let example = example.unwrap_or_default();
    if rules.is_empty() {
        return (!every.is_empty()).then(|| {
            format!(
                "--allow-tool '{EVERY_COMMAND}', which allows every command: no narrower rule covers `{example}`"
            )
        });
    }
    let quoted: Vec<String> = rules.iter().take(RULES).map(|rule| quoted(rule)).collect();
    let mut advice = format!("--allow-tool {}", quoted.join(" --allow-tool "));
    let rest = rules.len().saturating_sub(RULES);
    if rest > 0 {
        let _ = write!(advice, " (and {rest} more)");
    }
    if !every.is_empty() {
        let _ = write!(
            advice,
            "; no narrower rule than '{EVERY_COMMAND}', which allows every command, covers `{example}`"
        );
    }
    Some(advice)
}

/// Returns the notice for a person at the moment of a refusal.
pub fn notice(refusal: &ToolRefusal) -> String {
    format!("refused: {}", call(refusal))
}

fn call(refusal: &ToolRefusal) -> String {
    let mut text = refusal.tool.clone();
    if !refusal.input.is_empty() {
        let _ = write!(text, " `{}`", shortened(&refusal.input));
    }
    if refusal.times > 1 {
        let _ = write!(text, " ({})", refusal.times);
    }
    text
}

fn shortened(input: &str) -> String {
    match input.char_indices().nth(MAX_INPUT_CHARS) {
        Some((end, _)) => format!("{}…", input[..end].trim_end()),
        None => input.to_owned(),
    }
}

/// Returns a rule as one word for a shell.
fn quoted(rule: &str) -> String {
    format!("'{}'", rule.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bash(command: &str) -> ToolRefusal {
        ToolRefusal::new("Bash", &json!({ "command": command }), "This command requires approval")
    }

    #[test]
    fn equal_refusals_are_merged_and_excess_is_only_counted() {
        let mut refusals = ToolRefusals::default();
        assert!(refusals.is_empty());
        for command in ["curl a", "curl b", "curl a", "curl c"] {
            refusals.add(&bash(command), 2);
        }
        let named: Vec<_> = refusals.calls.iter().map(|call| (&*call.input, call.times)).collect();
        assert_eq!(named, [("curl a", 2), ("curl b", 1)]);
        assert_eq!((refusals.more, refusals.count()), (1, 4));
        let mut run = ToolRefusals::default();
        run.add_all(&refusals, 10);
        run.add_all(&refusals, 10);
        assert_eq!((run.calls.len(), run.count()), (2, 8));
        assert_eq!(run.allow(), ["Bash(curl:*)"]);
    }

    #[test]
    fn refusal_texts_are_truncated_at_char_boundary() {
        let refusal = ToolRefusal::new("Bash", &json!({ "command": "ü".repeat(500) }), "no\n  way");
        assert!(refusal.input.len() <= MAX_TEXT_BYTES && refusal.input.ends_with("ü…"));
        assert_eq!(refusal.why, "no way");
        assert_eq!(subject(&json!({ "prompt": "x", "url": "u" })), "u");
        assert_eq!(subject(&json!({ "odd": 1, "other": "two\twords" })), "two words");
        assert_eq!(subject(&json!(7)), "");
    }

    #[test]
    fn empty_refusal_fields_are_omitted_from_json() {
        let refusals = ToolRefusals { calls: vec![bash("curl a")], more: 0 };
        let stored = serde_json::to_value(&refusals).expect("JSON");
        let expected = json!({ "calls": [{
            "tool": "Bash",
            "input": "curl a",
            "why": "This command requires approval",
            "allow": ["Bash(curl:*)"],
        }] });
        assert_eq!(stored, expected);
        assert_eq!(serde_json::from_value::<ToolRefusals>(stored).expect("read"), refusals);
        let oldest: ToolRefusals = serde_json::from_str("{}").expect("all may be left out");
        assert!(oldest.is_empty());
    }
}

#[cfg(test)]
mod phrase_tests {
    use super::*;

    fn refusal(tool: &str, input: &str, allow: &[&str], times: u32) -> ToolRefusal {
        ToolRefusal {
            tool: tool.to_owned(),
            input: input.to_owned(),
            why: "Permission to use it has been denied.".to_owned(),
            allow: allow.iter().map(|rule| (*rule).to_owned()).collect(),
            times,
        }
    }

    fn line(calls: Vec<ToolRefusal>, more: u32) -> String {
        closing_line(&ToolRefusals { calls, more }).expect("a line")
    }

    #[test]
    fn closing_line_names_refused_calls_and_allowing_rules() {
        let curl = refusal("Bash", "curl a", &["Bash(curl:*)"], 2);
        let fetch = refusal("WebFetch", "http://e.org/", &["WebFetch(domain:e.org)"], 1);
        assert_eq!(
            line(vec![curl.clone(), fetch], 0),
            "3 tools were refused: Bash `curl a` (2), WebFetch `http://e.org/`; allow them with: --allow-tool 'Bash(curl:*)' --allow-tool 'WebFetch(domain:e.org)'"
        );
        let single = ToolRefusal { times: 1, ..curl };
        assert_eq!(
            line(vec![single], 0),
            "1 tool was refused: Bash `curl a`; allow it with: --allow-tool 'Bash(curl:*)'"
        );
        assert_eq!(closing_line(&ToolRefusals::default()), None);
    }

    #[test]
    fn refusal_without_allowing_rule_shows_its_reason() {
        assert_eq!(
            line(vec![refusal("Bash", "git push", &[], 1)], 0),
            "1 tool was refused: Bash `git push`; the reason: Permission to use it has been denied."
        );
    }

    #[test]
    fn rule_allowing_every_command_is_advised_with_warning() {
        let odd = refusal("Bash", "curl $(whoami)", &["Bash"], 1);
        let only = "--allow-tool 'Bash', which allows every command: no narrower rule covers `curl $(whoami)`";
        let refusals = |calls| ToolRefusals { calls, more: 0 };
        assert_eq!(advice(&refusals(vec![odd.clone()])).as_deref(), Some(only));
        let curl = refusal("Bash", "curl a", &["Bash(curl:*)"], 1);
        let both = "--allow-tool 'Bash(curl:*)'; no narrower rule than 'Bash', which allows every command, covers `curl $(whoami)`";
        assert_eq!(advice(&refusals(vec![odd, curl])).as_deref(), Some(both));
    }

    #[test]
    fn many_or_long_refused_calls_are_shortened() {
        let calls =
            (0..6).map(|n| refusal("Bash", &format!("{n} {}", "x".repeat(80)), &["a'b"], 1));
        let line = line(calls.collect(), 5);
        assert!(line.starts_with("11 tools were refused: Bash `0 xxx"), "{line}");
        assert!(line.contains("x…`, 7 more; allow them with: --allow-tool 'a'\\''b'"), "{line}");
        let shown = notice(&refusal("mcp__a__b", "", &[], 1));
        assert_eq!(shown, "refused: mcp__a__b");
    }
}
