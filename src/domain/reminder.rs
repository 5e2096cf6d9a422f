//! The prompt that asks an agent to repair its reply, made from the state's policy.
//!
//! It is sent in the same session, so it says only what was wrong and what is allowed. Without a
//! policy there is nothing to list, so there is no reminder.

use super::policy::{Policy, Violation};
use super::transition::Transition;

/// The reminder for a reply that broke the protocol; `None` if the state has no policy.
#[must_use]
pub fn reminder(policy: &Policy, violation: &Violation) -> Option<String> {
    if policy.is_open() {
        return None;
    }
    let allowed: Vec<String> = policy.allowed.iter().map(line).collect();
    Some(format!(
        "Your last reply cannot be used: {violation}.\n\n\
         Do not repeat your work. Reply again and end with exactly one of these tags:\n\n{}\n",
        allowed.join("\n")
    ))
}

fn line(entry: &Transition) -> String {
    format!("- {entry}")
        .replace(">…</result>", ">your result</result>")
        .replace(">…</ask>", ">your question to a person</ask>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::transition::Tag;

    #[test]
    fn it_lists_every_allowed_transition() {
        let fork = [("next".to_owned(), "N.md".to_owned())];
        let verdict = [("verdict".to_owned(), "good".to_owned())];
        let policy = Policy {
            allowed: vec![
                Transition::from_parts(Tag::Goto, [], "A.md").expect("a goto"),
                Transition::from_parts(Tag::Fork, fork, "W.md").expect("a fork"),
                Transition::from_parts(Tag::Result, [], "").expect("a result"),
                Transition::from_parts(Tag::Result, verdict, "").expect("a result"),
            ],
            ..Policy::default()
        };
        let text =
            reminder(&policy, &Violation::NoTag { near_misses: vec![] }).expect("a reminder");
        assert!(text.contains("the reply has no transition tag."), "{text}");
        assert!(text.contains(
            "- <goto>A.md</goto>\n- <fork next=\"N.md\">W.md</fork>\n- <result>your result</result>\n- <result verdict=\"good\">your result</result>"));
    }

    #[test]
    fn without_a_policy_there_is_none() {
        assert_eq!(reminder(&Policy::default(), &Violation::NoTag { near_misses: vec![] }), None);
    }
}
