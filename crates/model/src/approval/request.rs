//! The request of Claude Code to let a tool call run, and the rules that a person gives with an answer.

use std::fmt;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BoundedInput;
use crate::id::StateName;
use crate::question::{Question, QuestionOption};
use crate::refusal::rules_that_allow;
use crate::widening::{is_covered, is_single_command, split_rules};

/// The reason of Claude Code, if it asks about a command only because no rule allows it.
pub const NO_RULE: &str = "This command requires approval";

/// The number of rules that an answer gives at most. Claude Code suggests no more than a few for one call.
const MAX_RULES: usize = 16;

/// The tools that edit one file, named in their input.
const EDITORS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// A request of Claude Code to let a tool call run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequest {
    /// The id of the call, by which it is known from others.
    pub call: String,
    pub tool: String,
    pub input: BoundedInput,
    /// The checksum of its whole input.
    pub checksum: String,
    /// The edits that it makes to files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<FileEdit>,
    /// The id of the sub-agent that calls it, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
    /// The reason why Claude Code asks, if it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rules that would let calls like it run from now on; none if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ApprovalRule>,
}

/// A text of a file that is replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEdit {
    pub file: String,
    /// The text that is replaced; `None` if the whole file is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The text that takes its place.
    pub new: String,
}

impl ApprovalRequest {
    /// Creates a request from the call and the rules that Claude Code suggests. An edit without suggested rules gets
    /// one for its file.
    pub fn new(
        call: String,
        tool: String,
        input: &serde_json::Value,
        checksum: String,
        suggested: Vec<ApprovalRule>,
    ) -> Self {
        let input = BoundedInput::of(input);
        let is_editor = EDITORS.contains(&tool.as_str());
        let edits = if is_editor { edits(&input) } else { Vec::new() };
        let file = input.text("file_path").or_else(|| input.text("notebook_path"));
        let mut rules = suggested;
        if rules.is_empty() && is_editor && input.left_out_bytes == 0 {
            rules.extend(file.and_then(ApprovalRule::of_edited_file));
        }
        if rules.len() > MAX_RULES {
            rules.clear();
        }
        Self { call, tool, input, checksum, edits, subagent: None, reason: None, rules }
    }

    /// Returns what the call is about on one line: the tool and its input.
    pub fn summary(&self) -> String {
        let keys = ["command", "file_path", "notebook_path", "url", "pattern", "path", "query"];
        match keys.iter().find_map(|key| self.input.text(key)) {
            Some(text) => format!("{}: {text}", self.tool),
            None if self.input.value.is_null() => self.tool.clone(),
            None => format!("{} {}", self.tool, self.input.value),
        }
    }

    /// Returns it as a question to a person, under a name.
    pub fn question(&self, name: &str) -> Question {
        let option = |id: &str, label: String| QuestionOption {
            id: id.to_owned(),
            label,
            description: String::new(),
        };
        let mut options = vec![option("allow", "let this call run".to_owned())];
        if !self.rules.is_empty() {
            let rules: Vec<String> = self.rules.iter().map(ToString::to_string).collect();
            let rules = rules.join(", ");
            options.extend([
                option("allow-always", format!("and all of {rules} in this state")),
                option("allow-always-in-run", format!("and all of {rules} in this run")),
            ]);
        }
        options.push(option("deny", "refuse it; \"deny: REASON\" tells the agent why".to_owned()));
        options.extend(self.wider_rules().into_iter().map(|rules| {
            option(
                &format!("allow-always: {rules}"),
                format!("let it run, and all of {rules} in this state"),
            )
        }));
        Question {
            node: name.to_owned(),
            text: self.text(),
            header: Some("approval".to_owned()),
            options,
            free: false,
        }
    }

    /// Returns rules that cover this call and more than those which Claude Code suggests, the narrowest first.
    fn wider_rules(&self) -> Vec<String> {
        let mut wider = Vec::new();
        if let Some((most, _)) = self.single_command().and_then(|command| command.rsplit_once(' '))
            && most.contains(' ')
        {
            wider.push(format!("Bash({}:*)", most.trim_end()));
        }
        let first_words = self.rules_that_allow();
        if first_words.iter().all(|rule| rule.contains('(')) && !first_words.is_empty() {
            wider.push(first_words.join(", "));
        }
        let suggested = self.rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        wider.dedup();
        wider.retain(|rules| *rules != suggested && ApprovalRule::parse_all(rules).is_ok());
        wider
    }

    /// Returns the rules that together let this call run, as far as it is known why Claude Code asks.
    fn rules_that_allow(&self) -> Vec<String> {
        let why = self.reason.as_deref().unwrap_or_default();
        let is_whole = self.input.left_out_bytes == 0;
        let allow = || rules_that_allow(&self.tool, &self.input.value, why);
        is_whole.then(allow).unwrap_or_default()
    }

    /// Returns the command of a call that runs a single one, and that Claude Code asks about for no other reason.
    fn single_command(&self) -> Option<&str> {
        let command = self.input.text("command").filter(|_| self.tool == "Bash")?;
        let is_plain = self.input.left_out_bytes == 0 && self.reason.as_deref() == Some(NO_RULE);
        (is_plain && is_single_command(command)).then_some(command)
    }

    /// Returns whether rules that a person gave cover this call for certain: it is a single command, and Claude Code
    /// asks only because no rule allows it. Everything else may have further reasons that a rule does not settle.
    pub fn is_covered_by(&self, given: &[String]) -> bool {
        let command = self.single_command().map(|command| format!("Bash({command})"));
        command.is_some_and(|command| given.iter().any(|given| is_covered(&command, given)))
    }

    /// Checks that rules which a person writes are about this call.
    ///
    /// # Errors
    /// A text that says why not.
    pub fn check_rules(&self, rules: &[ApprovalRule]) -> Result<(), String> {
        let is_editor = |tool: &str| EDITORS.contains(&tool);
        let is_about = |rule: &&ApprovalRule| {
            let tools = (rule.tool.as_str(), self.tool.as_str());
            let wanted = match self.single_command() {
                Some(command) => vec![format!("Bash({command})")],
                None => self.rules_that_allow(),
            };
            let covers = |wanted: &String| is_covered(wanted, &rule.to_string());
            tools.0 == tools.1 && (wanted.is_empty() || wanted.iter().any(covers))
                || self.rules.contains(rule)
                || is_editor(tools.0) && is_editor(tools.1)
        };
        match rules.iter().find(|rule| !is_about(rule)) {
            None if rules.is_empty() => Err("write a rule after the colon".to_owned()),
            None => Ok(()),
            Some(rule) => Err(format!("`{rule}` does not cover this call, {}", self.summary())),
        }
    }

    /// Returns the call with its edits, or its whole input, and the reason why Claude Code asks.
    fn text(&self) -> String {
        let mut text = format!("may it run {}?", self.summary());
        for edit in &self.edits {
            let lines = |sign: char, content: &str, text: &mut String| {
                content.lines().for_each(|line| {
                    let _ = write!(text, "\n{sign} {line}");
                });
            };
            edit.old.iter().for_each(|old| lines('-', old, &mut text));
            lines('+', &edit.new, &mut text);
        }
        if self.edits.is_empty() {
            for (key, value) in self.input.value.as_object().into_iter().flatten() {
                let _ = match value.as_str() {
                    Some(value) => write!(text, "\n{key}: {value}"),
                    None => write!(text, "\n{key}: {value}"),
                };
            }
        }
        if self.input.left_out_bytes > 0 {
            let _ = write!(
                text,
                "\n({} more bytes of the input are not shown)",
                self.input.left_out_bytes
            );
        }
        if let Some(subagent) = &self.subagent {
            let _ = write!(text, "\nsub-agent: {subagent}");
        }
        if let Some(reason) = &self.reason {
            let _ = write!(text, "\nwhy it is asked: {reason}");
        }
        text
    }
}

/// Returns the edits that the input of an editing tool names.
fn edits(input: &BoundedInput) -> Vec<FileEdit> {
    let text =
        |value: &serde_json::Value, key: &str| value.get(key)?.as_str().map(ToOwned::to_owned);
    let whole = &input.value;
    let Some(file) = text(whole, "file_path").or_else(|| text(whole, "notebook_path")) else {
        return Vec::new();
    };
    let edit = |part: &serde_json::Value| {
        let new = text(part, "new_string")
            .or_else(|| text(part, "content"))
            .or_else(|| text(part, "new_source"))?;
        Some(FileEdit { file: file.clone(), old: text(part, "old_string"), new })
    };
    match whole.get("edits").and_then(serde_json::Value::as_array) {
        Some(parts) => parts.iter().filter_map(edit).collect(),
        None => edit(whole).into_iter().collect(),
    }
}

// The rules that a person has given with an answer, in the words of Claude Code.
//
// A rule is Claude Code's own suggestion for the call, the file of an edit, or a rule that the person writes. raymond
// passes the rules to Claude Code when a process starts. In a process that is already running, raymond lets a call run
// only if a rule certainly covers it. Otherwise it asks a person.

/// A permission rule: a tool, and the calls of it that it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRule {
    pub tool: String,
    /// The content of the rule, such as `touch a *`; `None` for all calls of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl ApprovalRule {
    /// Returns the rule for the edits of one file; `None` for a path that could be read as a pattern.
    pub fn of_edited_file(path: &str) -> Option<Self> {
        let is_plain = |c: char| !c.is_control() && !"*?[]{}!\\()".contains(c);
        let is_whole = path.starts_with('/') && !path.ends_with('/') && path.chars().all(is_plain);
        is_whole.then(|| Self { tool: "Edit".to_owned(), content: Some(format!("/{path}")) })
    }

    /// Reads rules as Claude Code writes them, separated by commas.
    ///
    /// # Errors
    /// A text that says what is expected.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let parse = |rule: &String| {
            let (tool, content) = match rule.split_once('(') {
                Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').unwrap_or("").to_owned())),
                None => (rule.as_str(), None),
            };
            let parsed = Self { tool: tool.to_owned(), content };
            parsed.fits_argument().then_some(parsed).ok_or_else(|| {
                format!("`{rule}` is not a rule; write a tool, or a tool and its use, such as Bash(cargo test:*)")
            })
        };
        split_rules(text).iter().map(parse).collect()
    }

    /// Returns whether it can be passed to Claude Code as an argument. An argument with several rules is split at
    /// commas and parentheses, so a rule with these characters in its content cannot be passed, and Claude Code asks
    /// again.
    pub fn fits_argument(&self) -> bool {
        let is_name = |c: char| c.is_alphanumeric() || "_-".contains(c);
        let is_plain = |c: char| !c.is_control() && !"(),\\".contains(c);
        let has_name = self.tool.starts_with(char::is_alphabetic) && self.tool.chars().all(is_name);
        has_name
            && self
                .content
                .as_ref()
                .is_none_or(|content| !content.trim().is_empty() && content.chars().all(is_plain))
    }
}

impl fmt::Display for ApprovalRule {
    /// Writes it as Claude Code does: `Bash(touch a *)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Some(content) => write!(f, "{}({content})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

/// The turns that a rule is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// The turns of one prompt, with its folder.
    State(StateName),
    /// All turns of the run.
    Run,
}

/// A rule that was given with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedRule {
    pub rule: ApprovalRule,
    /// The turns that it is for.
    pub scope: RuleScope,
    /// The number of the approval that it was given with.
    pub approval: u32,
    /// The plug-in that gave it; `None` if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl GrantedRule {
    /// Returns whether it is in force in the turns of a prompt, which is named with its folder.
    pub fn is_for(&self, prompt: &StateName) -> bool {
        match &self.scope {
            RuleScope::State(state) => state == prompt,
            RuleScope::Run => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(tool: &str, input: &serde_json::Value, rules: &[&str]) -> ApprovalRequest {
        let rule = |content: &&str| ApprovalRule {
            tool: tool.into(),
            content: Some((*content).to_owned()),
        };
        ApprovalRequest::new(
            "toolu_1".into(),
            tool.into(),
            input,
            "c".into(),
            rules.iter().map(rule).collect(),
        )
    }

    #[test]
    fn edits_are_shown_as_removed_and_added_lines() {
        let input = json!({
            "file_path": "/w/a",
            "edits": [
                { "old_string": "one\ntwo", "new_string": "1" },
                { "old_string": "x", "new_string": "y" },
            ],
        });
        let asked = request("MultiEdit", &input, &[]).question("a1");
        assert_eq!(asked.text, "may it run MultiEdit: /w/a?\n- one\n- two\n+ 1\n- x\n+ y");
        let written = request("Write", &json!({ "file_path": "/w/b", "content": "c" }), &[]);
        assert_eq!(written.edits, [FileEdit { file: "/w/b".into(), old: None, new: "c".into() }]);
        assert_eq!(written.rules[0].to_string(), "Edit(//w/b)");
    }

    #[test]
    fn rule_is_offered_only_if_claude_code_suggests_it() {
        let input = json!({ "command": "touch a", "description": "x" });
        let ids =
            |asked: Question| asked.options.into_iter().map(|option| option.id).collect::<Vec<_>>();
        let wider = "allow-always: Bash(touch:*)";
        assert_eq!(ids(request("Bash", &input, &[]).question("a1")), ["allow", "deny", wider]);
        let ruled = request("Bash", &input, &["touch a *"]);
        assert_eq!(
            ids(ruled.question("a1")),
            ["allow", "allow-always", "allow-always-in-run", "deny", wider]
        );
        assert!(ruled.question("a1").options[1].label.contains("Bash(touch a *)"));
        let many: Vec<String> = (0..=MAX_RULES).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(request("Bash", &input, &many).rules.is_empty());
    }

    #[test]
    fn wider_rules_are_offered_and_cover_calls() {
        let call = |command: &str| {
            let asked = request("Bash", &json!({ "command": command }), &[]);
            ApprovalRequest { reason: Some(NO_RULE.to_owned()), ..asked }
        };
        assert_eq!(
            call("python3 -m py_compile a.py").wider_rules(),
            ["Bash(python3 -m py_compile:*)", "Bash(python3:*)"]
        );
        assert_eq!(call("cargo test a").wider_rules(), ["Bash(cargo test:*)"]);
        assert!(call("echo $(id)").wider_rules().is_empty(), "only `Bash` covers it");
        let covered = |command: &str, rule: &str| call(command).is_covered_by(&[rule.to_owned()]);
        assert!(covered("python3 -m py_compile a.py", "Bash(python3 -m py_compile:*)"));
        assert!(covered("touch a", "Bash(touch a *)") && covered("touch a", "Bash"));
        for (command, rule) in [
            ("python3 x.py", "Bash(python3 -m py_compile:*)"),
            ("python3 -m py_compile a.py; rm -rf b", "Bash(python3 -m py_compile:*)"),
            ("python3 -m py_compile $(rm b)", "Bash(python3 -m py_compile:*)"),
            ("pythonx", "Bash(python:*)"),
            ("touch a", "WebFetch"),
            ("echo $(id)", "Bash"),
            ("git push # '\npython3 x.py #'", "Bash(git push:*)"),
            ("git push a\\>& python3 x.py", "Bash(git push:*)"),
            ("git push > .claude/settings.json", "Bash(git push:*)"),
            ("cd ..; rm x", "Bash(rm:*)"),
            ("touch a && touch /b", "Bash(touch:*)"),
        ] {
            assert!(!covered(command, rule), "{command}");
        }
        let path = "This command requires approval, /out/requires approval";
        for why in [Some("PreToolUse:Bash hook"), Some("ask rule"), Some(path), Some(""), None] {
            let asked = ApprovalRequest { reason: why.map(str::to_owned), ..call("touch a") };
            assert!(!asked.is_covered_by(&["Bash(touch:*)".to_owned()]), "{why:?}");
        }
        let page = request("WebFetch", &json!({ "url": "http://a.test/" }), &[]);
        assert!(!page.is_covered_by(&["WebFetch(domain:a.test)".to_owned()]));
        let written = |request: ApprovalRequest, rule: &str| {
            request.check_rules(&ApprovalRule::parse_all(rule).expect("rules")).is_ok()
        };
        assert!(written(page.clone(), "WebFetch(domain:a.test)"));
        assert!(!written(page, "WebFetch(domain:b.test)"));
        assert!(!written(call("git fetch && git push"), "Bash(rm:*)"));
    }

    #[test]
    fn question_tells_what_is_left_out() {
        let long = request("Bash", &json!({ "command": "x".repeat(20_000) }), &[]);
        assert!(long.question("a1").text.contains("more bytes of the input are not shown"));
        let file = json!({ "file_path": "/w/b", "content": "x".repeat(20_000) });
        assert!(request("Write", &file, &[]).rules.is_empty(), "the file may be cut, too");
    }
}

#[cfg(test)]
mod rule_tests {
    use super::*;

    fn bash(content: &str) -> ApprovalRule {
        ApprovalRule { tool: "Bash".into(), content: Some(content.into()) }
    }

    #[test]
    fn edited_file_has_rule_only_if_its_path_is_not_a_pattern() {
        let rule = ApprovalRule::of_edited_file("/w/a b.txt").expect("a rule");
        assert_eq!(rule.to_string(), "Edit(//w/a b.txt)");
        for path in ["relative", "/w/*", "/w/a?", "/w/[a]", "/w/", "/w/a(b", "/w/!a", "/w/a\nb"] {
            assert_eq!(ApprovalRule::of_edited_file(path), None, "{path}");
        }
    }

    #[test]
    fn rules_are_read_as_claude_code_writes_them() {
        let texts = |text: &str| -> Result<Vec<String>, String> {
            Ok(ApprovalRule::parse_all(text)?.iter().map(ToString::to_string).collect())
        };
        assert_eq!(
            texts("Bash(python3 -m py_compile:*), WebFetch"),
            Ok(vec!["Bash(python3 -m py_compile:*)".to_owned(), "WebFetch".to_owned()])
        );
        for wrong in ["Bash(", "Bash()", "Bash(a", "--flag", "Bash(a(b))"] {
            assert!(texts(wrong).is_err_and(|why| why.contains("is not a rule")), "{wrong}");
        }
    }

    #[test]
    fn rule_with_separators_is_not_an_argument() {
        assert!(bash("touch a *").fits_argument());
        let whole = ApprovalRule { tool: "mcp__files__read".into(), content: None };
        assert!(whole.fits_argument());
        for content in ["echo (a)", "echo a,b", "echo a\\", "", " ", "a\nb"] {
            assert!(!bash(content).fits_argument(), "{content:?}");
        }
        for tool in ["--flag", "", "Bash(x)", "a b"] {
            let rule = ApprovalRule { tool: tool.into(), content: None };
            assert!(!rule.fits_argument(), "{tool:?}");
        }
    }

    #[test]
    fn rule_of_state_is_not_for_another() {
        let state = |name: &str| StateName::parse(name).expect("a name");
        let granted = |scope| GrantedRule { rule: bash("a"), scope, approval: 1, by: None };
        let granted_rule = granted(RuleScope::State(state("START.md")));
        assert!(granted_rule.is_for(&state("START.md")) && !granted_rule.is_for(&state("NEXT.md")));
        assert!(granted(RuleScope::Run).is_for(&state("NEXT.md")));
    }
}
