//! Scripted replies: they replace the model when a workflow is tried out or tested.
//!
//! `replies.yaml` lists for each state an agent's answers on its first, second, … turn there. Each agent counts
//! for itself, so a forked workflow gives the same run every time. The states of a folder below are listed as
//! `folder/START.md`, the node of a graph as `workflow.yaml#node`, a branch of it as `workflow.yaml#node.branch`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use serde_json::{Value, json};

use crate::domain::id::{Folder, StateName};
use crate::domain::money::Usd;
use crate::domain::time::millis;
use crate::language::position::SourcePlace;
use crate::language::schema::shape;
use crate::language::yaml::content::YamlContent;
use crate::language::yaml::tree::{self, YamlFileKind};
use crate::language::yaml::{self, YamlErrors};

/// The file in the scope that holds them.
pub const FILE: &str = "replies.yaml";

/// All scripted replies of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ScriptedReplies(BTreeMap<String, Vec<ScriptedReply>>);

/// One scripted reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptedReply {
    /// The text, with placeholders as in the state's prompt.
    pub text: String,
    /// The stated cost.
    pub cost: Usd,
    /// The duration in milliseconds.
    pub delay_ms: u64,
    /// True if the reply serves all later turns too.
    pub repeat: bool,
}

/// The reasons that there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file has a mistake.
    #[error("{path}:{error}")]
    Invalid {
        /// The file.
        path: String,
        /// The mistake and its place.
        error: yaml::Error,
    },
    /// The script has no reply for this turn.
    #[error("{path}: {}", exhausted(.state, *.listed, *.wanted))]
    Exhausted {
        /// The file.
        path: String,
        /// The state, with its folder.
        state: String,
        /// The number of replies that the script lists.
        listed: usize,
        /// The number of the wanted reply, from 1.
        wanted: usize,
    },
}

fn exhausted(state: &str, listed: usize, wanted: usize) -> String {
    match listed {
        0 => format!("{state} has no replies; add `{state}:` and a list of them"),
        1 => format!(
            "{state} has 1 reply, and this is turn {wanted} there; add one, or `repeat: true` to it"
        ),
        _ => format!(
            "{state} has {listed} replies, and this is turn {wanted} there; add one, or `repeat: true` to the last"
        ),
    }
}

impl ScriptedReplies {
    /// Reads the file's text; `path` is for the message.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the place.
    pub fn parse(path: &str, yaml: &str) -> Result<Self, Error> {
        let (replies, errors) = Self::examine(yaml);
        errors
            .or_else_first(replies)
            .map_err(|error| Error::Invalid { path: path.to_owned(), error })
    }

    /// Reads the file's text to its end; returns the replies that are right, and all mistakes.
    #[must_use]
    pub fn examine(yaml: &str) -> (Self, YamlErrors) {
        let mut errors = YamlErrors::default();
        let mut replies = Self::default();
        let root = yaml::parse(YamlFileKind::REPLIES, yaml, &mut errors);
        let Some(root) = root.filter(|root| !root.is_null()) else { return (replies, errors) };
        let YamlContent::Map(entries) = &root.value else {
            return (errors.keep(yaml::from_tree(&root)).unwrap_or_default(), errors);
        };
        for entry in entries.iter() {
            let listed = match &entry.value.value {
                YamlContent::List(list) => {
                    list.iter().filter_map(|one| errors.keep(yaml::from_tree(one))).collect()
                }
                _ => errors.keep(yaml::from_tree(&entry.value)).unwrap_or_default(),
            };
            replies.0.insert(entry.key.to_string(), listed);
        }
        (replies, errors)
    }

    /// Returns the reply to an agent's turn in a state of the scope, or of a folder below it; `visit` counts from
    /// 0.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if the state lists too few.
    pub fn reply(
        &self,
        path: &str,
        folder: Option<&Folder>,
        state: &StateName,
        visit: u32,
    ) -> Result<&ScriptedReply, Error> {
        let state = match folder {
            Some(folder) => format!("{folder}/{state}"),
            None => state.to_string(),
        };
        let of_node = || self.0.get(node_of_branch(&state)?);
        let listed = self.0.get(&state).or_else(of_node).map(Vec::as_slice).unwrap_or_default();
        let visit = visit as usize;
        listed.get(visit).or_else(|| listed.last().filter(|last| last.repeat)).ok_or_else(|| {
            Error::Exhausted {
                path: path.to_owned(),
                state,
                listed: listed.len(),
                wanted: visit + 1,
            }
        })
    }
}

/// Returns the name of a branch of a node, as the script lists it after the `#`.
#[must_use]
pub fn branch_key(node: &str, branch: &str) -> String {
    format!("{node}.{branch}")
}

/// Returns the key of the node that a branch is of, which serves all branches without replies of their own.
fn node_of_branch(key: &str) -> Option<&str> {
    let (node, branch) = key.rsplit_once('.')?;
    (node.contains('#') && !branch.contains('#')).then_some(node)
}

/// Returns the states that a readable script answers for, each with its place.
#[must_use]
pub fn states(yaml: &str) -> Vec<(String, SourcePlace)> {
    let root = tree::parse(YamlFileKind::REPLIES, yaml).0;
    let Some(YamlContent::Map(entries)) = root.map(|root| root.value) else { return Vec::new() };
    entries.iter().map(|entry| (entry.key.to_string(), entry.at)).collect()
}

listed_keys! {
    #[serde(deny_unknown_fields)]
    struct DetailedReply {
        /// The text, with placeholders as in the state's prompt.
        reply: String => shape::text,
        /// The stated cost, in US dollars.
        cost: Option<f64> => || json!({ "type": "number", "minimum": 0 }),
        /// The time that the turn takes.
        delay: Option<String> => shape::duration,
        /// True if the reply serves all later turns too.
        repeat: Option<bool> => shape::boolean,
    }
}

/// Returns the properties of the file as JSON Schema: each key is a state, with the list of its replies.
pub(super) fn file_shape() -> Value {
    let detailed = shape::mapping(DetailedReply::KEYS, &["reply"]);
    let reply = json!({ "anyOf": [{ "type": "string" }, detailed] });
    json!({
        "type": "object",
        "additionalProperties": {
            "type": "array",
            "items": reply,
            "description": "The replies to the turns of an agent in this state, in their order.",
        },
    })
}

impl<'de> Deserialize<'de> for ScriptedReply {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReplyVisitor)
    }
}

/// A visitor instead of an untagged enum, so that a mistake keeps its own message and place.
struct ReplyVisitor;

impl<'de> Visitor<'de> for ReplyVisitor {
    type Value = ScriptedReply;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "a reply: a text, or a mapping with `reply` and optionally `cost`, `delay`, `repeat`",
        )
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ScriptedReply, E> {
        Ok(ScriptedReply { text: text.to_owned(), ..ScriptedReply::default() })
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<ScriptedReply, M::Error> {
        let detailed = DetailedReply::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let delay = detailed.delay.as_deref().map(millis).transpose().map_err(de::Error::custom)?;
        let cost = detailed.cost.unwrap_or_default();
        if cost < 0.0 {
            return Err(de::Error::custom("a cost is not negative"));
        }
        Ok(ScriptedReply {
            text: detailed.reply,
            cost: Usd::from_dollars(cost),
            delay_ms: delay.unwrap_or(0),
            repeat: detailed.repeat.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "A.md:\n  - first\n  - reply: second\n    cost: 0.02\n    delay: 200ms\nB.md:\n  - { reply: again, repeat: true }\n";

    fn state(name: &str) -> StateName {
        StateName::parse(name).expect("a state")
    }

    #[test]
    fn each_turn_takes_next_reply_and_missing_reply_is_error() {
        let replies = ScriptedReplies::parse("replies.yaml", YAML).expect("valid");
        let reply = |name, visit| replies.reply("replies.yaml", None, &state(name), visit);
        assert_eq!(reply("A.md", 0).map(|reply| reply.text.as_str()), Ok("first"));
        let second = reply("A.md", 1).expect("a second");
        assert_eq!((second.cost, second.delay_ms), (Usd::from_dollars(0.02), 200));
        assert_eq!(reply("B.md", 7).map(|reply| reply.text.as_str()), Ok("again"));
        assert_eq!(
            reply("A.md", 2).expect_err("none").to_string(),
            "replies.yaml: A.md has 2 replies, and this is turn 3 there; add one, or `repeat: true` to the last"
        );
    }

    #[test]
    fn all_mistakes_of_a_file_are_found() {
        let yaml = "A.md: text\nB.md:\n  - { reply: x, costs: 1 }\n  - right\n  - { reply: y, delay: soon }\n";
        let (replies, errors) = ScriptedReplies::examine(yaml);
        let lines: Vec<u64> = errors.all().iter().map(|error| error.line).collect();
        assert_eq!(lines, [1, 3, 5], "{errors:?}");
        let right = replies.reply("r", None, &state("B.md"), 0).map(|reply| reply.text.as_str());
        assert_eq!(right, Ok("right"));
    }

    #[test]
    fn an_empty_file_has_no_replies() {
        for text in ["", "# none\n"] {
            assert_eq!(
                ScriptedReplies::parse("r", text),
                Ok(ScriptedReplies::default()),
                "{text:?}"
            );
            assert!(states(text).is_empty());
        }
    }

    #[test]
    fn states_are_listed_with_their_locations() {
        let place = |line| SourcePlace { line, column: 1 };
        let expected = [("A.md".to_owned(), place(1)), ("B.md".to_owned(), place(6))];
        assert_eq!(states(YAML), expected);
    }

    #[test]
    fn state_in_folder_uses_replies_under_folder_path() {
        let replies =
            ScriptedReplies::parse("r", "A.md: [outer]\na/b/A.md: [inner]\n").expect("valid");
        let folder = Folder::parse("a/b").expect("a folder");
        let reply = |folder, name| replies.reply("r", folder, &state(name), 0);
        let text = |folder| reply(folder, "A.md").map(|reply| reply.text.as_str());
        assert_eq!((text(None), text(Some(&folder))), (Ok("outer"), Ok("inner")));
        let missing = reply(Some(&folder), "B.md").expect_err("none").to_string();
        assert_eq!(missing, "r: a/b/B.md has no replies; add `a/b/B.md:` and a list of them");
    }

    #[test]
    fn branch_has_its_own_replies_or_those_of_its_node() {
        let yaml = "w.yaml#look.one: [first]\nw.yaml#look: [any]\n";
        let replies = ScriptedReplies::parse("r", yaml).expect("valid");
        let reply = |name: &str| replies.reply("r", None, &state(name), 0);
        let text = |name: &str| reply(name).map(|reply| reply.text.as_str());
        assert_eq!((text("w.yaml#look.one"), text("w.yaml#look.two")), (Ok("first"), Ok("any")));
        let missing = reply("w.yaml#other.one").expect_err("none").to_string();
        assert!(missing.contains("add `w.yaml#other.one:` and a list of them"), "{missing}");
        assert!(reply("w.md").is_err());
    }

    #[test]
    fn invalid_replies_are_error_with_location() {
        let message =
            |yaml| ScriptedReplies::parse("w/replies.yaml", yaml).expect_err("invalid").to_string();
        let unknown = message("A.md:\n  - { reply: x, costs: 1 }\n");
        assert!(unknown.starts_with("w/replies.yaml:2:") && unknown.contains("costs"), "{unknown}");
        let delay = message("A.md:\n  - { reply: x, delay: soon }\n");
        assert!(delay.contains("`soon` is not a duration"), "{delay}");
        assert!(message("A.md: text\n").starts_with("w/replies.yaml:1:"));
    }
}
