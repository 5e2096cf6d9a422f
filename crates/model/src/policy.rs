//! The transitions that a state allows, the judgement of replies against them, reminders, and one-word verdicts.
//!
//! A policy entry matches exactly on tag, target, `return` and `next`, on the timeout of a question and the
//! state that follows it, and on every variable it names. Variables it does not name are free. With a single
//! entry whose text is not the agent's own, a reply without any tag means that entry. A result whose text the entry
//! fixes matches that text alone.

use serde::{Deserialize, Serialize};

use super::id::{ScopePath, StateName};
use super::transition::{
    ANY_LIST, InvalidTransition, OverruledTransition, TagName, Transition, Variables,
};

/// The transitions that a state allows; an empty list allows all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransitionPolicy {
    /// The entries, in the order of the prompt's frontmatter. A result's payload is ignored if it is empty.
    pub allowed: Vec<Transition>,
    /// True if one reply may have several `<fork>` tags.
    #[serde(default)]
    pub many_forks: bool,
    /// True if the only entry is taken regardless of the tags in the reply.
    #[serde(default)]
    pub force_implicit: bool,
}

/// The tags that were found in the final message of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyTags {
    /// Each complete tag, in order.
    pub tags: Vec<Result<Transition, InvalidTransition>>,
    /// The texts that the reply shows to people.
    pub shown: Vec<String>,
    /// True if there are more tags than were read.
    pub cut: bool,
    /// Prose that looks like a tag, for the message: unclosed, malformed or unknown tags.
    pub near_misses: Vec<String>,
}

/// A transition that may be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedTransition {
    pub transition: Transition,
    /// True if the reply had no tag and the policy left only one way.
    pub implicit: bool,
    /// The transition that was asked for instead, with the name of the overruler.
    pub overruled: Option<Box<OverruledTransition>>,
}

/// A breach of the protocol by a reply. The agent can repair it if its state has a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// The reply says nothing.
    #[error("the reply is empty")]
    Empty,
    /// The reply has no tag at all.
    #[error("the reply has no transition tag{}", list_near_misses(.near_misses))]
    NoTag {
        /// The texts that looked like a tag.
        near_misses: Vec<String>,
    },
    /// There is more than one tag.
    #[error("the reply has {} transition tags, exactly one is needed: {}{}", .tags.len(), .tags.join(", "), if_forks(.tags))]
    SeveralTags {
        /// All that were found, as written.
        tags: Vec<String>,
    },
    /// There are several tags in a state that may fork many, but they are not forks with the same `next`.
    #[error(
        "the reply has {} transition tags; several may stand together only if all are <fork> tags with the same next: {}",
        .tags.len(),
        .tags.join(", ")
    )]
    NotTogether {
        /// All that were found, as written.
        tags: Vec<String>,
    },
    /// There are more forks than are read.
    #[error(
        "the reply has too many transition tags, and only {read} of them were read; fork fewer in one reply, or all with one tag and a list of them, such as each=\"items.json\""
    )]
    TooManyTags {
        /// The number of tags that were read.
        read: usize,
    },
    /// A `<fork>` is not possible as it was asked for.
    #[error("{asked}: {why}")]
    Fork {
        /// The transition that was asked for.
        asked: String,
        /// The error, and its remedy.
        why: String,
    },
    /// There is one tag, but its pieces do not fit.
    #[error("{0}")]
    Invalid(#[from] InvalidTransition),
    /// There is one tag, but the state does not allow it.
    #[error("{asked} is not an allowed transition of this state{}", .nearest.as_ref().map(|nearest| format!(", which allows {nearest}")).unwrap_or_default())]
    NotAllowed {
        /// The transition that was asked for.
        asked: String,
        /// The allowed transition to the same states, if there is one.
        nearest: Option<String>,
    },
    /// The answer is not of the form that is needed, or no transition fits it.
    #[error("{why}")]
    Answer {
        /// The required form, and the error.
        why: String,
    },
    /// The transition names a state that cannot be entered.
    #[error("{asked}: {why}")]
    NoSuchState {
        /// The transition that was asked for.
        asked: String,
        /// The error in the state, with a hint.
        why: String,
    },
}

/// The remedy for people, if all of the tags are forks.
pub(crate) const IF_FORKS: &str = " (`forks: many` in the state's frontmatter allows several)";

fn if_forks(tags: &[String]) -> &'static str {
    let is_fork = |tag: &String| tag.starts_with("<fork");
    if tags.iter().all(is_fork) { IF_FORKS } else { "" }
}

fn list_near_misses(near_misses: &[String]) -> String {
    if near_misses.is_empty() {
        String::new()
    } else {
        format!("; found {}", near_misses.join(", "))
    }
}

impl AcceptedTransition {
    /// Returns the transition of a reply that is a result as it stands.
    pub fn plain_result(text: &str) -> Self {
        let transition = Transition::Result {
            payload: text.to_owned(),
            variables: Variables::new(),
            structured: false,
        };
        Self { transition, implicit: true, overruled: None }
    }
}

impl TransitionPolicy {
    /// Returns a policy that allows only a result.
    pub fn result() -> Self {
        let result = AcceptedTransition::plain_result("").transition;
        Self { allowed: vec![result], ..Self::default() }
    }

    /// Returns whether the policy has no entry. Then every transition is allowed, and no reminder can be made.
    pub fn is_open(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Returns whether a transition may be taken.
    pub fn allows(&self, transition: &Transition) -> bool {
        self.is_open() || self.allowed.iter().any(|entry| matches(entry, transition))
    }

    /// Returns the allowed transition with the same tag to the same states, or the result that needs attributes.
    pub fn nearest(&self, asked: &Transition) -> Option<&Transition> {
        let has_attributes = |entry: &Transition| matches!(entry, Transition::Result { variables, .. } if !variables.is_empty());
        let is_near = |entry: &&Transition| {
            entry.tag() == asked.tag()
                && (asked.states().next().is_some() || has_attributes(entry))
                && entry.states().eq(asked.states())
        };
        self.allowed.iter().find(is_near)
    }

    fn not_allowed(&self, transition: &Transition, asked: String) -> ProtocolViolation {
        let nearest = self.nearest(transition).map(Transition::in_short);
        ProtocolViolation::NotAllowed { asked, nearest }
    }

    /// Returns the one transition of several tags, if these are allowed forks that lead to the same state.
    fn together(
        &self,
        tags: &[Result<Transition, InvalidTransition>],
    ) -> Result<AcceptedTransition, ProtocolViolation> {
        let forks: Vec<Transition> = tags.iter().cloned().collect::<Result<_, _>>()?;
        let Some(transition) = Transition::together(&forks) else {
            let tags = forks.iter().map(ToString::to_string).collect();
            return Err(ProtocolViolation::NotTogether { tags });
        };
        match forks.iter().find(|fork| !self.allows(fork)) {
            Some(asked) => Err(self.not_allowed(asked, asked.in_short())),
            None => Ok(AcceptedTransition { transition, implicit: false, overruled: None }),
        }
    }

    /// Judges the tags that were found in a reply.
    ///
    /// # Errors
    /// The [`ProtocolViolation`], if there is not exactly one allowed transition.
    pub fn judge(&self, reading: ReplyTags) -> Result<AcceptedTransition, ProtocolViolation> {
        if let Some(transition) = self.implied().filter(|_| self.force_implicit) {
            return Ok(AcceptedTransition { transition, implicit: true, overruled: None });
        }
        if reading.tags.len() > 1 {
            if self.many_forks && reading.cut {
                return Err(ProtocolViolation::TooManyTags { read: reading.tags.len() });
            }
            if self.many_forks {
                return self.together(&reading.tags);
            }
            let shown = |tag: &Result<Transition, InvalidTransition>| match tag {
                Ok(transition) => transition.to_string(),
                Err(error) => error.to_string(),
            };
            return Err(ProtocolViolation::SeveralTags {
                tags: reading.tags.iter().map(shown).collect(),
            });
        }
        let Some(asked) = reading.tags.into_iter().next() else {
            let no_tag = ProtocolViolation::NoTag { near_misses: reading.near_misses };
            let transition = self.implied().ok_or(no_tag)?;
            return Ok(AcceptedTransition { transition, implicit: true, overruled: None });
        };
        let transition = asked?;
        if self.allows(&transition) {
            Ok(AcceptedTransition { transition, implicit: false, overruled: None })
        } else {
            Err(self.not_allowed(&transition, self.refused(&transition)))
        }
    }

    /// Returns a refused tag as error messages show it. If the policy fixes a text, the text of a result is part of it.
    fn refused(&self, asked: &Transition) -> String {
        match asked {
            Transition::Result { payload, .. } if self.allowed.iter().any(has_fixed_text) => {
                let text = payload.trim();
                format!("<result>{}</result>", &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)])
            }
            _ => asked.in_short(),
        }
    }

    /// Returns the transition that a reply without a tag means, if the policy leaves only one.
    pub fn implied(&self) -> Option<Transition> {
        match self.allowed.as_slice() {
            [only] if only.tag() == TagName::Ask => None,
            [only] if only.tag() == TagName::Result && !has_fixed_text(only) => None,
            [Transition::Fork { each: Some(each), .. }] if each.list == ANY_LIST => None,
            [only] => Some(only.clone()),
            [] | [_, _, ..] => None,
        }
    }
}

/// The longest text of a refused result that error messages show, in bytes.
const MAX_SHOWN_BYTES: usize = 100;

/// Returns whether an entry is a result with a fixed text.
fn has_fixed_text(entry: &Transition) -> bool {
    matches!(entry, Transition::Result { payload, .. } if !payload.is_empty())
}

/// Returns whether the text of a result is the text that an entry fixes.
fn same_text(entry: &Transition, asked: &Transition) -> bool {
    match (entry, asked) {
        (Transition::Result { payload: fixed, .. }, Transition::Result { payload, .. }) => {
            fixed.is_empty() || fixed.trim() == payload.trim()
        }
        _ => true,
    }
}

fn matches(entry: &Transition, asked: &Transition) -> bool {
    entry.tag() == asked.tag()
        && keeps_stack(entry) == keeps_stack(asked)
        && same_text(entry, asked)
        && written(entry) == written(asked)
        && entry.continuation() == asked.continuation()
        && entry.ask_timeout() == asked.ask_timeout()
        && same_spread(entry, asked)
        && entry.variables().iter().all(|(name, value)| asked.variables().get(name) == Some(value))
}

/// Returns the state that is entered, by a tag of either name.
fn written(transition: &Transition) -> Option<(Option<&str>, &StateName)> {
    transition.entered().map(|(scope, state)| (scope.map(ScopePath::as_written), state))
}

fn keeps_stack(transition: &Transition) -> bool {
    matches!(transition, Transition::Reset { keeps_stack: true, .. })
}

/// Returns whether a fork has the list and the directory that an entry names; `each: any` leaves the list open.
fn same_spread(entry: &Transition, asked: &Transition) -> bool {
    let (Transition::Fork { each: list, cwd: named, .. }, Transition::Fork { each, cwd, .. }) =
        (entry, asked)
    else {
        return true;
    };
    let lists = match (list, each) {
        (Some(list), Some(each)) => {
            list.name == each.name && (list.list == ANY_LIST || list.list == each.list)
        }
        (list, each) => list == each,
    };
    lists && named == cwd
}

// The prompt that asks an agent to repair its reply, made from the state's policy.
//
// It is sent in the same session, so it says only what was wrong and what is allowed. Without a policy there is nothing
// to list, so no reminder is made.

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

// Verdicts: the one word of a list that an answer has to have.

/// Returns the word of a list that occurs in a text as a separate word.
///
/// # Errors
/// [`ProtocolViolation::Answer`] if it has none of them, or more than one.
pub fn verdict<'word>(text: &str, words: &'word [String]) -> Result<&'word str, ProtocolViolation> {
    let found: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| has_word(text, word)).collect();
    let why = match found.as_slice() {
        [word] => return Ok(word),
        [] => format!("it has none of the words {}", words.join(", ")),
        several => format!("it has {}, where one of them is needed", several.join(" and ")),
    };
    Err(ProtocolViolation::Answer { why })
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
mod tests;

#[cfg(test)]
mod reminder_tests {
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
        let text = output_reminder("{\"type\":\"object\"}", &ProtocolViolation::Answer { why });
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
