//! The answer to an approval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApprovalRequest, ApprovalRule, RuleScope};
use crate::id::StateName;

/// The answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum ApprovalVerdict {
    /// The call runs, once.
    Allow,
    /// The call runs, and Claude Code does not ask for calls that these rules cover.
    AllowAlways {
        /// The rules.
        rules: Vec<ApprovalRule>,
        /// The turns that they are for.
        scope: RuleScope,
    },
    /// The call does not run.
    Deny {
        /// The reason, which the agent is told; empty for none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
}

/// The word before the reason of a denial.
const DENY: &str = "deny";
const ALLOW_ALWAYS: &str = "allow-always";
const ALLOW_IN_RUN: &str = "allow-always-in-run";

impl ApprovalVerdict {
    /// Reads an answer: the name of a verdict, or the number under which the question shows it. `prompt` is the prompt
    /// of the turn, with its folder.
    ///
    /// # Errors
    /// The answers that would be valid, in words.
    pub fn read(given: &str, request: &ApprovalRequest, prompt: StateName) -> Result<Self, String> {
        Self::read_for(given, request, || RuleScope::State(prompt))
    }

    fn read_for(
        given: &str,
        request: &ApprovalRequest,
        own_scope: impl FnOnce() -> RuleScope,
    ) -> Result<Self, String> {
        let question = request.question("");
        let text = given.trim();
        if let Some(reason) = text.strip_prefix(DENY).and_then(|rest| rest.strip_prefix(':')) {
            return Ok(Self::Deny { reason: reason.trim().to_owned() });
        }
        let by_number = || {
            let number: usize = text.parse().ok()?;
            question.options.get(number.checked_sub(1)?).map(|option| option.id.as_str())
        };
        let always = |scope| Self::AllowAlways { rules: request.rules.clone(), scope };
        let text = by_number().unwrap_or(text);
        if let Some((word @ ("allow" | ALLOW_ALWAYS | ALLOW_IN_RUN), rules)) = text.split_once(':')
        {
            let rules = ApprovalRule::parse_all(rules)?;
            request.check_rules(&rules)?;
            let scope = if word == ALLOW_IN_RUN { RuleScope::Run } else { own_scope() };
            return Ok(Self::AllowAlways { rules, scope });
        }
        match text {
            "allow" => Ok(Self::Allow),
            DENY => Ok(Self::Deny { reason: String::new() }),
            ALLOW_ALWAYS | ALLOW_IN_RUN if request.rules.is_empty() => Err(
                "Claude Code offers no rule for this call; use allow, deny or allow-always: RULE"
                    .to_owned(),
            ),
            ALLOW_ALWAYS => Ok(always(own_scope())),
            ALLOW_IN_RUN => Ok(always(RuleScope::Run)),
            _ => {
                let ids: Vec<&str> =
                    question.options.iter().map(|option| option.id.as_str()).collect();
                Err(format!(
                    "use one of {}, \"deny: REASON\" or \"allow-always: RULE\"",
                    ids.join(", ")
                ))
            }
        }
    }

    /// Checks whether a text is an answer.
    ///
    /// # Errors
    /// The answers that would be valid, in words.
    pub fn check(given: &str, request: &ApprovalRequest) -> Result<(), String> {
        Self::read_for(given, request, || RuleScope::Run).map(drop)
    }

    /// Returns the name of the answer.
    pub fn id(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::AllowAlways { scope: RuleScope::State(_), .. } => ALLOW_ALWAYS,
            Self::AllowAlways { scope: RuleScope::Run, .. } => ALLOW_IN_RUN,
            Self::Deny { .. } => DENY,
        }
    }

    /// Returns whether the call may run.
    pub fn allows(&self) -> bool {
        match self {
            Self::Allow | Self::AllowAlways { .. } => true,
            Self::Deny { .. } => false,
        }
    }

    /// Returns it in words.
    pub fn phrase(&self) -> String {
        match self {
            Self::Allow => "allowed".to_owned(),
            Self::AllowAlways { rules, scope } => {
                let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
                let place = match scope {
                    RuleScope::State(state) => state.to_string(),
                    RuleScope::Run => "the whole run".to_owned(),
                };
                format!("allowed, and from now on {} in {place}", rules.join(", "))
            }
            Self::Deny { reason } if reason.is_empty() => "denied".to_owned(),
            Self::Deny { reason } => format!("denied: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn verdict_is_read_by_name_number_or_with_reason() {
        let rule = ApprovalRule { tool: "Bash".into(), content: Some("touch a *".into()) };
        let request = |rules| {
            let input = json!({ "command": "touch a" });
            ApprovalRequest::new(("t".into(), "Bash".into()), (&input, "c".into()), rules)
        };
        let state = || StateName::parse("START.md").expect("a name");
        let ruled = request(vec![rule.clone()]);
        let read = |text: &str| ApprovalVerdict::read(text, &ruled, state());
        let always = |scope| Ok(ApprovalVerdict::AllowAlways { rules: vec![rule.clone()], scope });
        assert_eq!(read(" allow "), Ok(ApprovalVerdict::Allow));
        assert_eq!(read("2"), always(RuleScope::State(state())));
        assert_eq!(read("allow-always-in-run"), always(RuleScope::Run));
        let denied = |reason: &str| Ok(ApprovalVerdict::Deny { reason: reason.into() });
        assert_eq!(read("4"), denied(""));
        assert_eq!(read("deny: allow"), denied("allow"));
        for wrong in ["alow", "", "Allow", "yes", "0", "6", "denyx"] {
            let error = read(wrong).expect_err(wrong);
            assert!(error.starts_with("use one of allow, "), "{error}");
        }
        let wider = ApprovalRule { tool: "Bash".into(), content: Some("touch:*".into()) };
        let widely = |scope| Ok(ApprovalVerdict::AllowAlways { rules: vec![wider.clone()], scope });
        for text in ["5", "allow: Bash(touch:*)", "allow-always: Bash(touch:*)"] {
            assert_eq!(read(text), widely(RuleScope::State(state())), "{text}");
        }
        assert_eq!(read("allow-always-in-run: Bash(touch:*)"), widely(RuleScope::Run));
        for rule in ["", "Bash(tuoch:*)", "Bsh(touch:*)", "WebFetch", "Bash(a(b)"] {
            assert!(read(&format!("allow: {rule}")).is_err(), "{rule}");
        }
        let without = ApprovalVerdict::read("allow-always", &request(Vec::new()), state());
        assert!(without.is_err_and(|error| error.contains("no rule")));
    }
}
