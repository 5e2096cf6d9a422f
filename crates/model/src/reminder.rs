//! The prompt that asks an agent to repair its reply, made from the state's policy.
//!
//! It is sent in the same session, so it says only what was wrong and what is allowed. Without a policy there is
//! nothing to list, so no reminder is made.
//!
//! Verdicts: the one word of a list that an answer has to have.

use crate::policy::{IF_FORKS, ProtocolViolation, TransitionPolicy};
use crate::transition::{ANY_LIST, Transition};

/// The placeholder for a list that the agent chooses itself.
const YOUR_LIST: &str = "your file or JSON list";

/// Returns the reminder for a reply that broke the protocol; `None` if the state has no policy.
pub fn reminder(policy: &TransitionPolicy, violation: &ProtocolViolation) -> Option<String> {
    if policy.is_open() {
        return None;
    }
    let allowed: Vec<String> = policy.allowed.iter().map(line).collect();
    let several =
        if policy.many_forks { ", or several <fork> tags with the same next" } else { "" };
    let first = match violation {
        ProtocolViolation::Fork { .. } => "Fix that first, or fork otherwise. Then reply again",
        _ => "Do not repeat your work. Reply again",
    };
    let why = violation.to_string().replace(IF_FORKS, "");
    Some(format!(
        "Your last reply cannot be used: {why}.\n\n\
         {first} and end with exactly one of these tags{several}:\n\n{}\n",
        allowed.join("\n")
    ))
}

/// Returns why the last reply was refused, if a prompt is a reminder.
pub fn refusal(prompt: &str) -> Option<&str> {
    prompt.strip_prefix("Your last reply cannot be used: ")?.lines().next()
}

/// The reminder for an empty reply where the state lists nothing to choose from.
pub const EMPTY_REPLY_REMINDER: &str = "Your last reply cannot be used: the reply is empty.\n\n\
     Do not repeat your work. Reply again, and give your answer as the text of the reply.\n";

/// Returns the reminder for an answer that is not the object that the state's schema asks for.
pub fn output_reminder(schema: &str, violation: &ProtocolViolation) -> String {
    let first = match violation {
        ProtocolViolation::Fork { .. } => "Fix that first, or answer otherwise.",
        _ => "Do not repeat your work.",
    };
    format!(
        "Your last reply cannot be used: {violation}.\n\n\
         {first} Give your answer again: with the tool StructuredOutput if you have it, else as one JSON \
         object and nothing else. It has to match this schema:\n\n{schema}\n"
    )
}

fn line(entry: &Transition) -> String {
    let mut shown = entry.clone();
    if let Transition::Fork { each: Some(each), .. } = &mut shown
        && each.list == ANY_LIST
    {
        YOUR_LIST.clone_into(&mut each.list);
    }
    if let Transition::Result { payload, .. } = entry
        && !payload.is_empty()
    {
        return format!("- {shown}").replace(">…<", &format!(">{payload}<"));
    }
    format!("- {shown}")
        .replace(">…</result>", ">your result</result>")
        .replace(">…</ask>", ">your question to a person</ask>")
}

/// Returns the word of a list that occurs in a text as a separate word.
///
/// # Errors
/// [`ProtocolViolation::Contract`] if it has none of them, or more than one.
pub fn verdict<'word>(text: &str, words: &'word [String]) -> Result<&'word str, ProtocolViolation> {
    let found: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| has_word(text, word)).collect();
    let why = match found.as_slice() {
        [word] => return Ok(word),
        [] => format!("it has none of the words {}", words.join(", ")),
        several => format!("it has {}, where one of them is needed", several.join(" and ")),
    };
    Err(ProtocolViolation::Contract { why })
}

/// Returns the prompt that asks for an answer with one of the words.
pub fn verdict_reminder(words: &[String], violation: &ProtocolViolation) -> String {
    format!(
        "Your last reply cannot be used: {violation}.\n\n\
         Do not repeat your work. Reply again, with exactly one of these words, written so: {}\n",
        words.join(", ")
    )
}

/// Returns whether a word stands in a text, and no letter, digit, `_` or `-` beside it.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transition::TagName;

    #[test]
    fn reminder_lists_every_allowed_transition() {
        let fork = [("next".to_owned(), "N.md".to_owned())];
        let verdict = [("verdict".to_owned(), "good".to_owned())];
        let policy = TransitionPolicy {
            allowed: vec![
                Transition::from_parts(TagName::Goto, [], "A.md").expect("a goto"),
                Transition::from_parts(TagName::Fork, fork, "W.md").expect("a fork"),
                Transition::from_parts(TagName::Result, [], "").expect("a result"),
                Transition::from_parts(TagName::Result, verdict, "").expect("a result"),
            ],
            ..TransitionPolicy::default()
        };
        let text = reminder(&policy, &ProtocolViolation::NoTag { near_misses: vec![] })
            .expect("a reminder");
        assert!(text.contains("the reply has no transition tag."), "{text}");
        assert!(text.contains(
            "- <goto>A.md</goto>\n- <fork next=\"N.md\">W.md</fork>\n- <result>your result</result>\n- <result verdict=\"good\">your result</result>"));
    }

    #[test]
    fn output_reminder_includes_json_schema() {
        let why = "at /score: 11 is greater than the maximum of 10".to_owned();
        let text = output_reminder("{\"type\":\"object\"}", &ProtocolViolation::Output { why });
        assert!(text.starts_with("Your last reply cannot be used: at /score: 11 is"), "{text}");
        assert!(text.contains("as one JSON object and nothing else"), "{text}");
        assert!(text.ends_with("\n\n{\"type\":\"object\"}\n"), "{text}");
    }

    #[test]
    fn reminder_explains_how_to_fork_many_agents() {
        let each = [("next", "N.md"), ("each", ANY_LIST)];
        let each = each.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let fork = Transition::from_parts(TagName::Fork, each, "W.md").expect("a fork");
        let policy = TransitionPolicy {
            allowed: vec![fork],
            many_forks: true,
            ..TransitionPolicy::default()
        };
        let text = reminder(&policy, &ProtocolViolation::NoTag { near_misses: vec![] })
            .expect("a reminder");
        assert!(text.contains(
            "exactly one of these tags, or several <fork> tags with the same next:\n\n- <fork next=\"N.md\" each=\"your file or JSON list\">W.md</fork>"), "{text}");
    }

    #[test]
    fn empty_policy_gives_no_reminder() {
        assert_eq!(
            reminder(
                &TransitionPolicy::default(),
                &ProtocolViolation::NoTag { near_misses: vec![] }
            ),
            None
        );
    }
}

#[cfg(test)]
mod verdict_tests {
    use super::*;

    #[test]
    fn verdict_is_the_only_word_of_the_list_in_the_text() {
        let words = ["APPROVE", "REVISE", "REVISE-ALL"].map(str::to_owned);
        let found = |text: &str| verdict(text, &words).map_err(|error| error.to_string());
        assert_eq!(found("Good.\n\n**APPROVE**"), Ok("APPROVE"));
        assert_eq!(found("REVISE-ALL, please"), Ok("REVISE-ALL"));
        assert_eq!(found("REVISE: or REVISE it"), Ok("REVISE"));
        let none = Err("it has none of the words APPROVE, REVISE, REVISE-ALL".to_owned());
        for text in ["approve", "APPROVED", "DISAPPROVE", "éAPPROVE", ""] {
            assert_eq!(found(text), none, "{text}");
        }
        let both = "it has APPROVE and REVISE, where one of them is needed";
        assert_eq!(found("I do not APPROVE: REVISE."), Err(both.to_owned()));
        let violation = verdict("", &words).expect_err("there is none");
        let reminder = verdict_reminder(&words, &violation);
        assert!(reminder.ends_with("written so: APPROVE, REVISE, REVISE-ALL\n"), "{reminder}");
    }
}
