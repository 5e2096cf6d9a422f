//! A request of Claude Code to let a tool call run.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApprovalRule, BoundedInput};
use crate::question::{Question, QuestionOption};
use crate::refusal::rules_that_allow;
use crate::widening::{is_covered, is_single_command};

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
    /// The tool.
    pub tool: String,
    /// Its input.
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
    /// The file.
    pub file: String,
    /// The text that is replaced; `None` if the whole file is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The text that takes its place.
    pub new: String,
}

impl ApprovalRequest {
    /// Creates a request from the call and the rules that Claude Code suggests. An edit without suggested rules gets one
    /// for its file.
    pub fn new(
        (call, tool): (String, String),
        (input, checksum): (&serde_json::Value, String),
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
        let told = ["command", "file_path", "notebook_path", "url", "pattern", "path", "query"];
        match told.iter().find_map(|key| self.input.text(key)) {
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

    /// Returns whether rules that a person gave cover this call for certain: it is a single command, and Claude Code asks
    /// only because no rule allows it. Everything else may have further reasons that a rule does not settle.
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
            ("toolu_1".into(), tool.into()),
            (input, "c".into()),
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
    fn rule_is_offered_only_if_claude_code_suggests_one() {
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
