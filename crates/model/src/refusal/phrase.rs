//! Refused tools in words: what was refused, and what to type so that it is allowed.

use std::fmt::Write as _;

use super::{ToolRefusal, ToolRefusals};

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
        let one = ToolRefusal { times: 1, ..curl };
        assert_eq!(
            line(vec![one], 0),
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
