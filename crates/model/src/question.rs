//! A question to a person, and the answer.
//!
//! A graph's `user_prompt` and a prompt's `<ask>` share this mechanism. A question is plain data while an agent
//! waits for the answer, and the first valid answer wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::{AgentId, StateName};
use super::transition::Transition;

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The name it is answered under: the node of a graph, or the state a prompt's answer leads to.
    pub node: String,
    /// The text of the question.
    pub text: String,
    /// A short label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The options to choose from; if empty, the answer is free text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<QuestionOption>,
    /// True if a text other than an option is an answer too.
    #[serde(default)]
    pub free: bool,
}

/// One of the answers that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionOption {
    /// The id of the option.
    pub id: String,
    /// The label that a person reads.
    pub label: String,
    /// The meaning of the option.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// The option, or `other` for free text.
    pub id: String,
    /// The text that was given, unchanged.
    pub raw: String,
}

/// An answer from outside, not yet checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerCommand {
    /// The agent that asks; by default, any agent that asks under that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The step in which the agent asks, so that the answer does not count when the same question is asked
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The name under which the question was asked.
    pub node: String,
    /// The answer, as it was given.
    pub text: String,
}

impl AnswerCommand {
    /// Creates an answer to any agent that asks under a name.
    pub fn to(node: &str, text: &str) -> Self {
        Self { agent: None, step: None, node: node.to_owned(), text: text.to_owned() }
    }
}

/// The id of an answer that is not an option.
pub const OTHER: &str = "other";

/// A text that is not an answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("WF504 `{given}` is not an answer to {node}: {expected}")]
pub struct InvalidAnswer {
    /// The text that was given.
    pub given: String,
    /// The question.
    pub node: String,
    /// The answers that would be valid, in words.
    pub expected: String,
}

impl Question {
    /// Returns the question that a prompt asks by its transition, and the state that the answer leads to.
    pub fn of(transition: &Transition) -> Option<(Self, &StateName)> {
        let Transition::Ask { question, next, .. } = transition else { return None };
        let question = Self {
            node: next.to_string(),
            text: question.clone(),
            header: None,
            options: Vec::new(),
            free: true,
        };
        Some((question, next))
    }

    /// Reads a text as an answer: an option by its number, counted from 1, its id or its label, or free text
    /// where that is allowed. An id goes before a number, and a number before a label, because a person sees
    /// the number in front of the options.
    ///
    /// # Errors
    /// [`InvalidAnswer`].
    pub fn read(&self, given: &str) -> Result<Answer, InvalidAnswer> {
        let text = given.trim();
        let by_number = || {
            let number: usize = text.parse().ok()?;
            self.options.get(number.checked_sub(1)?)
        };
        let same = |name: &str| name.trim().eq_ignore_ascii_case(text);
        let chosen =
            self.options.iter().find(|option| option.id == text).or_else(by_number).or_else(|| {
                self.options.iter().find(|option| same(&option.id) || same(&option.label))
            });
        if let Some(option) = chosen {
            return Ok(Answer { id: option.id.clone(), raw: given.to_owned() });
        }
        if (self.free || self.options.is_empty()) && !text.is_empty() {
            return Ok(Answer { id: OTHER.to_owned(), raw: given.to_owned() });
        }
        Err(InvalidAnswer {
            given: given.to_owned(),
            node: self.node.clone(),
            expected: self.expected(),
        })
    }

    fn expected(&self) -> String {
        if self.options.is_empty() {
            return "give some text".to_owned();
        }
        let ids: Vec<&str> = self.options.iter().map(|option| option.id.as_str()).collect();
        let free = if self.free { ", or a text of your own" } else { "" };
        format!("use one of {}{free}", ids.join(", "))
    }
}

/// An answer as a graph stores it: `{id, raw}`, perhaps with `is_option` and the `selected` element of a list.
struct StoredAnswer<'value> {
    id: &'value Value,
    raw: &'value Value,
    is_option: bool,
    has_element: bool,
}

impl<'value> StoredAnswer<'value> {
    fn of(value: &'value Value) -> Option<Self> {
        const KEYS: [&str; 4] = ["id", "raw", "is_option", "selected"];
        let fields = value.as_object()?;
        let (id, raw) = (fields.get("id")?, fields.get("raw")?);
        if !raw.is_string() || !fields.keys().all(|key| KEYS.contains(&&**key)) {
            return None;
        }
        let has_element = fields.contains_key("selected");
        let is_option = fields.get("is_option").and_then(Value::as_bool);
        Some(Self { id, raw, is_option: is_option.unwrap_or(id != OTHER), has_element })
    }
}

/// Returns a part of `raw` in a stored answer `{id, raw}`: `text` is a text that the person wrote, `selected` the id of
/// the chosen option. `None` if the value is no such answer, or if it has no such part.
pub fn raw_part<'value>(answer: &'value Value, part: &str) -> Option<&'value Value> {
    let answer = StoredAnswer::of(answer).filter(|answer| !answer.has_element)?;
    match part {
        "text" if !answer.is_option => Some(answer.raw),
        "selected" if answer.is_option => Some(answer.id),
        _ => None,
    }
}

/// Returns the text that a stored answer `{id, raw}` stands for: the id of the chosen option, or a text that the person
/// wrote. `None` if the value is no such answer.
pub fn answer_text(answer: &Value) -> Option<&str> {
    let answer = StoredAnswer::of(answer)?;
    let is_chosen = answer.is_option || answer.has_element;
    if is_chosen { answer.id } else { answer.raw }.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(free: bool) -> Question {
        let option = |id: &str, label: &str| QuestionOption {
            id: id.into(),
            label: label.into(),
            description: String::new(),
        };
        Question {
            node: "ask_type".into(),
            text: "Which?".into(),
            header: None,
            options: vec![option("git", "Git repository"), option("2", "Two")],
            free,
        }
    }

    #[test]
    fn option_is_matched_by_id_label_or_number() {
        let id = |given: &str| question(false).read(given).map(|answer| answer.id);
        assert_eq!(id("git"), Ok("git".into()));
        assert_eq!(id(" git REPOSITORY "), Ok("git".into()));
        assert_eq!(id("1"), Ok("git".into()));
        assert_eq!(id("2"), Ok("2".into()));
        let wrong = id("3").expect_err("no such option").to_string();
        assert_eq!(wrong, "WF504 `3` is not an answer to ask_type: use one of git, 2");
    }

    #[test]
    fn free_text_answer_is_accepted_where_allowed() {
        let answer = question(true).read("svn").expect("free text");
        assert_eq!((answer.id.as_str(), answer.raw.as_str()), (OTHER, "svn"));
        let open = Question { options: Vec::new(), ..question(false) };
        assert!(open.read("anything").is_ok() && open.read("  ").is_err());
    }

    #[test]
    fn raw_of_answer_has_text_or_selected_option() {
        let typed = serde_json::json!({"id": "other", "raw": "svn"});
        assert_eq!(raw_part(&typed, "text"), Some(&"svn".into()));
        assert_eq!(raw_part(&typed, "selected"), None);
        let chosen = serde_json::json!({"id": "git", "raw": "1"});
        assert_eq!(raw_part(&chosen, "selected"), Some(&"git".into()));
        assert_eq!(raw_part(&chosen, "text"), None);
        let option = serde_json::json!({"id": "other", "raw": "2", "is_option": true});
        assert_eq!(raw_part(&option, "selected"), Some(&"other".into()));
        let map = serde_json::json!({"id": "a", "raw": "b", "more": 1});
        assert_eq!(raw_part(&map, "selected"), None);
    }

    #[test]
    fn answer_is_its_option_or_its_text() {
        use serde_json::json;
        for (answer, text) in [
            (json!({"id": "git", "raw": "1"}), Some("git")),
            (json!({"id": "other", "raw": "svn"}), Some("svn")),
            (json!({"id": "other", "raw": "2", "is_option": true}), Some("other")),
            (json!({"id": "a", "raw": "A", "selected": {"id": "a", "n": 1}}), Some("a")),
            (json!({"id": "a", "raw": "b", "more": 1}), None),
            (json!({"id": "a", "raw": 1}), None),
            (json!("a"), None),
        ] {
            assert_eq!(answer_text(&answer), text, "{answer}");
        }
    }
}
