//! The permission rules of Claude Code that would have allowed a call it refused.
//!
//! Verified with the real program: a command is allowed by rules for the beginnings of all its parts, a page by a rule
//! for its domain, a file by a rule for its path. A command that Claude Code cannot take apart is covered by no rule
//! but the one for the whole tool. If a rule or plan mode denies a call, no further rule allows it.

use serde_json::Value;

use super::super::refusal;

/// Returns the rules that together would have allowed a call; none if no rule would.
pub(crate) fn rules_that_allow(tool: &str, input: &Value, why: &str) -> Vec<String> {
    if is_final(why) {
        return Vec::new();
    }
    let field = |key: &str| input.get(key).and_then(Value::as_str);
    let path = || ["file_path", "notebook_path", "path"].into_iter().find_map(field);
    let narrow = match tool {
        "Bash" => field("command").and_then(|command| of_command(command, why)),
        "WebFetch" => {
            field("url").and_then(domain).map(|host| vec![format!("WebFetch(domain:{host})")])
        }
        "Read" | "Glob" | "Grep" | "LS" | "NotebookRead" => of_path("Read", path(), ""),
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => of_path("Edit", path(), ""),
        _ => None,
    };
    narrow.unwrap_or_else(|| vec![tool.to_owned()])
}

/// Words of the reasons that Claude Code gives when it would have asked, and nobody could answer. They are the words
/// of 2.1.197 to 2.1.332. With 2.1.197, a hook whose own reason has these words counts as a question.
const QUESTIONS: [&str; 9] = [
    "require approval",
    "requires approval",
    "requires manual approval",
    "needs approval",
    "was blocked",
    "haven't granted it yet",
    "don't ask mode",
    "Contains ",
    "command contains ",
];

/// Returns whether a call was refused by something that comes before every rule that allows: a rule that
/// denies, plan mode, or a hook, whose reason can be any text.
fn is_final(why: &str) -> bool {
    let by_rule = why.contains("has been denied") && !why.contains("don't ask mode");
    let by_hook = why.starts_with("PreToolUse:");
    let is_question = why.is_empty() || QUESTIONS.iter().any(|words| why.contains(words));
    by_rule || by_hook || !is_question
}

fn of_command(command: &str, why: &str) -> Option<Vec<String>> {
    if let Some(path) = path_outside(why, "Output redirection to '") {
        return of_path("Edit", Some(path), "");
    }
    if let Some(path) = ["cat in '", "cd in '", "ls in '", "head in '", "tail in '"]
        .into_iter()
        .find_map(|begin| path_outside(why, begin))
    {
        let below = if why.starts_with("cd ") || why.starts_with("ls ") { "/**" } else { "" };
        return of_path("Read", Some(path), below);
    }
    let knows_the_parts = why.is_empty()
        || why.contains("requires approval")
        || why.contains("require approval: ")
        || why.contains("requires approval: ")
        || why.contains("don't ask mode")
        || why.contains("haven't granted it yet");
    if !knows_the_parts {
        return None;
    }
    let named = why.split_once("approval: ").map(|(_, named)| named);
    let prefixes = refusal::prefixes(command, named)?;
    Some(prefixes.into_iter().map(|prefix| format!("Bash({prefix}:*)")).collect())
}

/// Returns the path that a command was refused for, because it lies outside the working directory.
fn path_outside<'why>(why: &'why str, begin: &str) -> Option<&'why str> {
    let (path, rest) = why.strip_prefix(begin)?.split_once('\'')?;
    let is_outside = rest.starts_with(" was blocked") || rest.starts_with(" needs approval");
    is_outside.then_some(path)
}

/// Returns the rule for a path. The rule for an absolute path begins with two slashes. A path with characters that have
/// a meaning in rules has no rule.
fn of_path(tool: &str, path: Option<&str>, below: &str) -> Option<Vec<String>> {
    const SPECIAL: [char; 11] = ['(', ')', '*', '?', '[', ']', '{', '}', '\\', ',', '!'];
    let path = path.filter(|path| !path.is_empty() && !path.contains(SPECIAL))?;
    if path.chars().any(char::is_control) {
        return None;
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    let path = path.trim_end_matches('/');
    Some(vec![format!("{tool}({root}{path}{below})")])
}

/// Returns the host of a URL.
fn domain(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.split(':').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!host.is_empty() && host.chars().all(is_plain)).then_some(host)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ASKED: &str = "This command requires approval";

    fn bash(command: &str, why: &str) -> String {
        rules_that_allow("Bash", &json!({ "command": command }), why).join(" ")
    }

    #[test]
    fn each_part_of_command_gets_prefix_rule() {
        let table = [
            ("curl -s http://a/x", "Bash(curl:*)"),
            ("git push origin main", "Bash(git push:*)"),
            ("cargo test --lib > out 2>&1", "Bash(cargo test:*)"),
            ("git --version", "Bash(git:*)"),
            ("FOO=1 BAR=2 git push", "Bash(FOO=1 BAR=2 git push:*)"),
            ("timeout 5 wget -q a", "Bash(wget:*)"),
            ("FOO=1 timeout 5 wget -q a", "Bash(FOO=1 timeout 5 wget:*)"),
            ("time curl a", "Bash(curl:*)"),
            ("! curl a", "Bash(curl:*)"),
            ("sudo curl a", "Bash(sudo curl:*)"),
            ("./run.sh --x", "Bash(./run.sh:*)"),
            ("python3 -c \"print(1)\nprint(2)\"", "Bash(python3:*)"),
            (
                "curl a | jq '.x; .y' && touch b || tee c; dig d\nwget e",
                "Bash(curl:*) Bash(jq:*) Bash(touch:*) Bash(tee:*) Bash(dig:*) Bash(wget:*)",
            ),
            ("curl a; curl b", "Bash(curl:*)"),
            ("for i in 1 2; do dig a; done", "Bash(dig:*)"),
            ("if test -f x; then curl b; else dig c; fi", "Bash(test:*) Bash(curl:*) Bash(dig:*)"),
        ];
        for (command, expected) in table {
            assert_eq!(bash(command, ASKED), expected, "{command}");
        }
    }

    #[test]
    fn only_refused_parts_of_command_get_rule() {
        let why = "This Bash command contains multiple operations. The following part requires approval: tee a";
        assert_eq!(bash("ls && echo b | tee a", why), "Bash(tee:*)");
        assert_eq!(bash("cd . && tee a > b 2>&1", why), "Bash(tee:*)", "a redirection is left out");
        assert_eq!(bash("cd . && tee a", "don't ask mode"), "Bash(tee:*)");
        let why = "This Bash command contains multiple operations. The following parts require approval: FOO=1 git push origin, timeout 5 wget -q u";
        let command = "FOO=1 git push origin; timeout 5 wget -q u";
        assert_eq!(bash(command, why), "Bash(FOO=1 git push:*) Bash(wget:*)");
        let why = "This Bash command contains multiple operations. The following parts require approval: cd /tmp && touch zz, tee a";
        let command = "cd /tmp && touch zz | tee a";
        assert_eq!(bash(command, why), "Bash", "no rule for a part allows to leave the directory");
    }

    #[test]
    fn unsplittable_command_gets_rule_for_whole_tool() {
        for (command, why) in [
            ("curl $(whoami)", "Contains command_substitution"),
            ("curl `whoami`", ASKED),
            ("(curl a)", "This command uses shell operators that require approval for safety"),
            ("curl a &", ASKED),
            ("{ curl a; }", ASKED),
            ("cat <<EOF | curl a\nEOF", ASKED),
            ("diff <(curl a) b", ASKED),
            ("\"my program\" x", ASKED),
            ("$EDITOR x", ASKED),
            ("echo 'open", ASKED),
            ("", ASKED),
            ("cp a /x", "cp in '/x' was blocked. For security, …"),
        ] {
            assert_eq!(bash(command, why), "Bash", "{command}");
        }
    }

    #[test]
    fn refusal_by_hook_has_no_allowing_rule() {
        for why in ["no curls here", "PreToolUse:Bash hook error: it requires approval"] {
            assert_eq!(bash("curl a", why), "", "{why}");
        }
    }

    #[test]
    fn path_outside_directory_gets_path_rule() {
        let blocked =
            |what: &str| format!("{what} was blocked. For security, Claude Code may only …");
        assert_eq!(
            bash("cat /etc/hostname", &blocked("cat in '/etc/hostname'")),
            "Read(//etc/hostname)"
        );
        assert_eq!(bash("cd /tmp && ls", &blocked("cd in '/tmp'")), "Read(//tmp/**)");
        let newer = "Output redirection to '/tmp/o' needs approval. The path is outside …";
        assert_eq!(bash("echo hi > /tmp/o", newer), "Edit(//tmp/o)");
    }

    #[test]
    fn each_tool_gets_rule_in_its_form() {
        let table = [
            (
                "WebFetch",
                json!({"url": "https://user@example.org:8080/a?b=http://c"}),
                "WebFetch(domain:example.org)",
            ),
            ("WebFetch", json!({"url": "example.org"}), "WebFetch"),
            ("WebFetch", json!({"url": "http://[::1]/"}), "WebFetch"),
            ("Write", json!({"file_path": "/tmp/x", "content": "y"}), "Edit(//tmp/x)"),
            ("Edit", json!({"file_path": "src/a.rs"}), "Edit(src/a.rs)"),
            ("NotebookEdit", json!({"notebook_path": "/n.ipynb"}), "Edit(//n.ipynb)"),
            ("Read", json!({"file_path": "/etc/shadow"}), "Read(//etc/shadow)"),
            ("Read", json!({"file_path": "/odd (1)"}), "Read"),
            ("Grep", json!({"pattern": "x", "path": "/etc/"}), "Read(//etc)"),
            ("Glob", json!({"pattern": "x"}), "Glob"),
            ("WebSearch", json!({"query": "x"}), "WebSearch"),
            ("mcp__github__create_issue", json!({"title": "x"}), "mcp__github__create_issue"),
            ("Write", json!("odd"), "Write"),
        ];
        for (tool, input, expected) in table {
            let why = format!(
                "Claude requested permissions to use {tool}, but you haven't granted it yet."
            );
            assert_eq!(rules_that_allow(tool, &input, &why), [expected], "{tool} {input}");
        }
    }

    #[test]
    fn refusal_by_deny_rule_or_plan_mode_has_no_allowing_rule() {
        for why in [
            "Permission to use Bash with command git push has been denied.",
            "Cannot write to /work/w while in plan mode.",
        ] {
            assert_eq!(bash("git push", why), "");
        }
        let mode = "Permission to use Bash has been denied because Claude Code is running in don't ask mode.";
        assert_eq!(bash("git push", mode), "Bash(git push:*)");
    }
}
