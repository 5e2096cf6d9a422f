//! The rules that a person has given with an answer, in the words of Claude Code.
//!
//! A rule is one that Claude Code itself suggests for the call, the file of an edit, or one that the person writes.
//! raymond passes the rules to Claude Code when a process starts. In a process that runs already, raymond lets a call run
//! only if a rule covers it for certain; otherwise a person is asked.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::StateName;
use crate::widening::split_rules;

/// A permission rule: a tool, and the calls of it that it is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRule {
    /// The tool.
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

    /// Returns whether it can be given to Claude Code as an argument. An argument with several rules is split at commas
    /// and parentheses, so one that has them in its content cannot: Claude Code asks again then.
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
    /// The rule.
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
    use super::*;

    fn bash(content: &str) -> ApprovalRule {
        ApprovalRule { tool: "Bash".into(), content: Some(content.into()) }
    }

    #[test]
    fn edited_file_has_rule_only_if_its_path_is_no_pattern() {
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
    fn rule_with_separators_of_arguments_is_no_argument() {
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
        let own = granted(RuleScope::State(state("START.md")));
        assert!(own.is_for(&state("START.md")) && !own.is_for(&state("NEXT.md")));
        assert!(granted(RuleScope::Run).is_for(&state("NEXT.md")));
    }
}
