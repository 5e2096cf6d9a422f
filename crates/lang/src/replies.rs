//! Scripted replies: they replace the model when a workflow is tried out or tested.
//!
//! `replies.yaml` lists for each state an agent's answers on its first, second, … turn there. Each agent counts
//! for itself, so a forked workflow gives the same run every time. The states of a folder below are listed as
//! `folder/START.md`, the node of a graph as `workflow.yaml#node`, a branch of it as `workflow.yaml#node.branch`.

use std::collections::BTreeMap;

use raymond_model::cassette::{FaultKind, ScriptedFault};
use raymond_model::id::{AgentId, Folder, StateName};
use raymond_model::money::Usd;
use raymond_model::supervision::TurnTimeouts;
use raymond_model::time::millis;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};

use crate::hint::instead_of;
use crate::manifest::dollars;
use crate::schema::shape;
use crate::source::SourcePlace;
use crate::text_pattern::TextPattern;
use crate::yaml;
use crate::yaml::tree::YamlFileKind;
use crate::yaml::{NotText, TextOr, YamlContent, YamlErrors, YamlValue, tree};

/// The file in the scope that holds them.
pub const FILE: &str = "replies.yaml";

/// All scripted replies of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ScriptedReplies(BTreeMap<String, Vec<ScriptedReply>>);

/// The reason why a turn has no reply: a mistake in the file, or too few replies in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Returns a reply without mistakes, and adds all mistakes.
fn reply(written: &YamlValue, errors: &mut YamlErrors) -> Option<ScriptedReply> {
    let known = errors.all().len();
    let reply = yaml::examine_tree(written, errors);
    reply.filter(|_| errors.all().len() == known)
}

impl ScriptedReplies {
    /// Reads the file's text; `path` is for the message.
    ///
    /// # Errors
    /// [`Error`] with the place of the mistake.
    pub fn parse(path: &str, yaml: &str) -> Result<Self, Error> {
        let (replies, errors) = Self::examine(yaml);
        errors.or_else_first(replies).map_err(|error| Error(format!("{path}:{error}")))
    }

    /// Reads the file's text to its end; returns the replies that are right, and all mistakes.
    pub fn examine(yaml: &str) -> (Self, YamlErrors) {
        let mut errors = YamlErrors::default();
        let mut replies = Self::default();
        if let Some(root) = yaml::parse(YamlFileKind::REPLIES, yaml, &mut errors) {
            replies = Self::of_tree(&root, &mut errors);
        }
        (replies, errors)
    }

    /// Reads a tree to its end; returns the replies that are right, and adds the mistakes.
    pub(crate) fn of_tree(root: &YamlValue, errors: &mut YamlErrors) -> Self {
        let mut replies = Self::default();
        if root.is_null() {
            return replies;
        }
        let YamlContent::Map(entries) = &root.value else {
            return errors.keep(yaml::from_tree(root)).unwrap_or_default();
        };
        for entry in entries.iter() {
            if &*entry.key == "replies" && matches!(entry.value.value, YamlContent::Map(_)) {
                let message = "`replies` is not a state; the states are the keys of this file: remove this line and the indentation below it";
                errors.wrong(entry.at, message);
                continue;
            }
            let listed = match &entry.value.value {
                YamlContent::List(list) => {
                    list.iter().filter_map(|item| reply(item, errors)).collect()
                }
                // A reply alone is a list of one.
                YamlContent::Text(_) | YamlContent::Map(_) => {
                    reply(&entry.value, errors).into_iter().collect()
                }
                _ => errors.keep(yaml::from_tree(&entry.value)).unwrap_or_default(),
            };
            replies.0.insert(entry.key.to_string(), listed);
        }
        replies
    }

    /// Returns whether a reply of a key that fits any prompt and agent has `repeat` before the last of them.
    pub fn repeats_early(&self, key: &str) -> bool {
        let listed = self.0.get(key).into_iter().flatten();
        let is_plain = |reply: &&ScriptedReply| reply.agent.is_none() && reply.pattern.is_none();
        let plain: Vec<bool> = listed.filter(is_plain).map(|reply| reply.repeat).collect();
        plain.split_last().is_some_and(|(_, before)| before.contains(&true))
    }

    /// Returns the replies of a key; a branch of a node without any has those of the node.
    fn listed(&self, key: &str) -> &[ScriptedReply] {
        let of_node = || self.0.get(node_of_branch(key)?);
        self.0.get(key).or_else(of_node).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether the replies of a key depend on those that an agent was given before, besides their number:
    /// some match a prompt, or fail a turn that is then run again.
    pub fn depends_on_taken(&self, key: &str, limits: TurnTimeouts) -> bool {
        let listed = self.listed(key);
        let fails = |reply: &ScriptedReply| {
            reply.fault.is_some() || ScriptedFault::of_delay(reply.delay_ms, limits).is_some()
        };
        listed.iter().any(|reply| reply.pattern.is_some() || fails(reply))
    }

    /// Returns the reply to an agent's turn, and its place in the list, from 0: the first that matches the prompt and
    /// is not used up, or the next one of those that match any.
    ///
    /// # Errors
    /// [`Error`] if the state lists too few.
    pub fn reply(
        &self,
        path: &str,
        request: &ReplyRequest<'_>,
    ) -> Result<(usize, &ScriptedReply), Error> {
        let ReplyRequest { key, agent, visit, prompt, taken } = request;
        let listed = self.listed(key);
        let serves = |reply: &ScriptedReply| reply.agent.as_ref().is_none_or(|only| only == *agent);
        let for_agent = || listed.iter().enumerate().filter(|(_, reply)| serves(reply));
        let matching = for_agent().find(|(place, reply)| {
            let is_left = reply.repeat || !taken.is_some_and(|taken| taken.contains(place));
            reply.pattern.as_ref().is_some_and(|pattern| is_left && pattern.is_in(prompt))
        });
        let in_order: Vec<_> = for_agent().filter(|(_, reply)| reply.pattern.is_none()).collect();
        let is_plain = |place: &&usize| in_order.iter().any(|(plain, _)| plain == *place);
        let position = match taken {
            Some(taken) => taken.iter().filter(is_plain).count(),
            None => *visit as usize,
        };
        let next = || in_order.get(position).copied();
        let last = || in_order.last().copied().filter(|(_, reply)| reply.repeat);
        let found = matching.or_else(next).or_else(last);
        found.ok_or_else(|| {
            let wanted = position + 1;
            let why = match in_order.len() {
                count if listed.len() > count => {
                    ": none of its replies fits this prompt and agent and is left; add one without `match`, or `repeat: true` to one".to_owned()
                }
                0 => format!(" has no replies; add `{key}:` and a list of them"),
                1 => format!(
                    " has 1 reply, and this is turn {wanted} there (refused replies count); add one below it, or write `{{ reply: …, repeat: true }}`"
                ),
                count => format!(
                    " has {count} replies, and this is turn {wanted} there (refused replies count); add one, or write the last as `{{ reply: …, repeat: true }}`"
                ),
            };
            Error(format!("{path}: {key}{why}"))
        })
    }
}

/// Returns the key of the replies to a turn in a state of the scope, or of a folder below it.
pub fn key_of(folder: Option<&Folder>, state: &StateName) -> String {
    match folder {
        Some(folder) => format!("{}/{state}", folder.on_disk()),
        None => state.to_string(),
    }
}

/// A turn that asks for a reply.
#[derive(Debug, Clone, Copy)]
pub struct ReplyRequest<'turn> {
    /// The key of its replies.
    pub key: &'turn str,
    pub agent: &'turn AgentId,
    /// The number of turns that the agent has had there before.
    pub visit: u32,
    /// The prompt as it was filled.
    pub prompt: &'turn str,
    /// The places of the replies that the agent was given before, if the choice depends on them.
    pub taken: Option<&'turn [usize]>,
}

// The keys of a file of replies, with their places and lists, and the file as JSON Schema.

/// Returns the name of a branch of a node, as the script lists it after the `#`.
pub fn branch_key(node: &str, branch: &str) -> String {
    format!("{node}.{branch}")
}

/// Returns the key of the node that a branch belongs to, which serves all branches without their own replies.
fn node_of_branch(key: &str) -> Option<&str> {
    let (node, branch) = key.rsplit_once('.')?;
    (node.contains('#') && !branch.contains('#')).then_some(node)
}

/// Returns the states that a readable script answers for, each with its place.
pub fn states(yaml: &str) -> Vec<(String, SourcePlace)> {
    let root = tree::parse(YamlFileKind::REPLIES, yaml).0;
    let entries = root.iter().flat_map(YamlValue::entries);
    entries.map(|entry| (entry.key.to_string(), entry.at)).collect()
}

/// Returns the keys of a readable script, each with its list as JSON.
pub fn as_json(yaml: &str) -> BTreeMap<String, String> {
    let root = tree::parse(YamlFileKind::REPLIES, yaml).0;
    let entries = root.iter().flat_map(YamlValue::entries);
    entries.map(|entry| (entry.key.to_string(), entry.value.written_json())).collect()
}

/// Returns the properties of the file as JSON Schema: each key is a state, with the list of its replies.
pub(crate) fn file_shape() -> Value {
    let list = json!({ "type": "array", "items": reply_shape() });
    json!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [list, reply_shape()],
            "description": "The replies to the turns of an agent in this state, in their order; a reply alone is a list of one.",
        },
    })
}

/// One scripted reply, as it is written in the file.
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
    /// The agent that it serves; `None` if it serves all.
    pub agent: Option<AgentId>,
    /// The text that the prompt has to have in it.
    pub pattern: Option<TextPattern>,
    /// The failure of the turn, instead of an answer.
    pub fault: Option<ScriptedFault>,
    /// The files that the turn writes below the agent's working directory, with their texts.
    pub files: BTreeMap<FilePath, String>,
    /// The files that the turn removes.
    pub delete: Vec<FilePath>,
}

/// The path of a file below a working directory, without `..` in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePath(String);

impl FilePath {
    /// Reads the path of a file below the agent's working directory.
    ///
    /// # Errors
    /// The reason why it cannot be one.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::parse_below(text, "the agent's working directory")
    }

    /// Reads the path of a file below a folder, named as in a sentence.
    ///
    /// # Errors
    /// The reason why it cannot be one.
    pub fn parse_below(text: &str, folder: &str) -> Result<Self, String> {
        let why = if text.trim().is_empty() || text.ends_with('/') {
            "it names no file".to_owned()
        } else if text.starts_with('/') {
            "it begins at the root".to_owned()
        } else if text.split('/').any(|name| name == "..") {
            format!("`..` leads out of {folder}")
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(format!(
            "`{text}` is not the path of a file here: {why}; name a file below {folder}, such as notes/a.md"
        ))
    }

    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The kind of a failure, as it is written.
struct WrittenFault(FaultKind);

impl WrittenFault {
    fn parse(text: &str) -> Result<Self, String> {
        let named = FaultKind::ALL.iter().find(|kind| <&str>::from(*kind) == text);
        named.map(|kind| Self(*kind)).ok_or_else(|| {
            let known = FaultKind::ALL.iter().map(Into::into);
            format!("`{text}` is not a failure; {}", instead_of(text, known, "write one of"))
        })
    }
}

/// A time, as it is written.
struct WrittenTime(u64);

impl WrittenTime {
    fn parse(text: &str) -> Result<Self, String> {
        millis(text).map(Self)
    }
}

/// An amount of money, as it is written.
#[derive(Default)]
struct WrittenCost(Usd);

impl WrittenCost {
    fn parse(text: &str) -> Result<Self, String> {
        dollars(text).map(Self)
    }
}

read_from_text!(FilePath, WrittenFault, WrittenTime, WrittenCost);

listed_keys! {
    #[serde(deny_unknown_fields)]
    struct DetailedReply {
        /// The text, with placeholders as in the state's prompt.
        reply: Option<String> => shape::text,
        /// The failure of the turn instead of an answer.
        fail: Option<WrittenFault> => fault_shape,
        /// The time after which the usage limit resets; with `fail: limit`.
        resets: Option<WrittenTime> => shape::duration,
        /// The stated cost, in US dollars.
        cost: Option<WrittenCost> => || json!({ "type": ["number", "string"], "minimum": 0 }),
        /// The time that the turn takes.
        delay: Option<WrittenTime> => shape::duration,
        /// True if the reply serves all later turns too.
        repeat: Option<bool> => shape::boolean,
        /// A text, or an expression as /…/, that the prompt has to have in it.
        r#match: Option<TextPattern> => shape::text,
        /// The agent that the reply serves alone, such as main.2.
        agent: Option<AgentId> => || json!({ "type": "string", "pattern": r"^main(\.[0-9]+)*$" }),
        /// Files that the turn writes below the agent's working directory, each with its text; placeholders in it are
        /// filled.
        files: Option<BTreeMap<FilePath, String>> => || json!({
            "type": "object",
            "additionalProperties": shape::text(),
        }),
        /// Files that the turn removes.
        delete: Option<Vec<FilePath>> => || shape::list(json!({ "type": "string" })),
    }
}

fn fault_shape() -> Value {
    shape::variants(FaultKind::ALL)
}

/// Returns a reply as JSON Schema.
fn reply_shape() -> Value {
    let mut detailed = shape::mapping(DetailedReply::KEYS, &[]);
    detailed["anyOf"] = json!([{ "required": ["reply"] }, { "required": ["fail"] }]);
    json!({ "anyOf": [{ "type": "string" }, detailed] })
}

impl DetailedReply {
    /// Returns the reply, if its keys go together.
    fn checked(self) -> Result<ScriptedReply, String> {
        let kind = self.fail.as_ref().map(|fail| fail.0);
        let why = match (&self.reply, kind) {
            (None, None) => {
                "the key `reply` is missing here; or write `fail: crash` for a turn that fails"
            }
            (Some(_), Some(_)) => "a turn answers or fails: leave out `reply` or `fail`",
            (_, kind) if self.resets.is_some() && kind != Some(FaultKind::Limit) => {
                "`resets` belongs to `fail: limit`; leave it out here"
            }
            _ => "",
        };
        if !why.is_empty() {
            return Err(why.to_owned());
        }
        let resets_ms = self.resets.map(|time| time.0);
        Ok(ScriptedReply {
            text: self.reply.unwrap_or_default(),
            cost: self.cost.unwrap_or_default().0,
            delay_ms: self.delay.map_or(0, |time| time.0),
            repeat: self.repeat.unwrap_or_default(),
            agent: self.agent,
            pattern: self.r#match,
            fault: kind.map(|kind| ScriptedFault { kind, resets_ms }),
            files: self.files.unwrap_or_default(),
            delete: self.delete.unwrap_or_default(),
        })
    }
}

impl NotText for DetailedReply {
    const EXPECTED: &str = "a reply: a text, or a mapping with `reply` or `fail` and optionally `cost`, `delay`, `repeat`, `match`, `agent`, `files`, `delete`";
}

impl<'de> Deserialize<'de> for ScriptedReply {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match TextOr::<DetailedReply>::deserialize(deserializer)? {
            TextOr::Text(text) => Ok(Self { text, ..Self::default() }),
            TextOr::Other(detailed) => detailed.checked().map_err(de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourcePlace;
    use raymond_model::cassette::FaultKind;
    use raymond_model::money::Usd;

    const LIMITS: TurnTimeouts =
        TurnTimeouts { timeout_ms: 900, idle_timeout_ms: 500, shutdown_ms: 0 };

    const YAML: &str = "A.md:\n  - first\n  - reply: second\n    cost: 0.02\n    delay: 200ms\nB.md:\n  - { reply: again, repeat: true }\n";

    fn state(name: &str) -> StateName {
        StateName::parse(name).expect("a state")
    }

    /// Returns the text of the reply after those that were taken, or the message that there is none.
    fn taken<'script>(
        replies: &'script ScriptedReplies,
        key: &str,
        agent: &str,
        prompt: &str,
        taken: &[usize],
    ) -> Result<&'script str, String> {
        let agent = &AgentId::parse(agent).expect("an agent");
        let request = ReplyRequest { key, agent, visit: 0, prompt, taken: Some(taken) };
        let found = replies.reply("r", &request);
        found.map(|(_, reply)| reply.text.as_str()).map_err(|error| error.to_string())
    }

    #[test]
    fn each_turn_takes_next_reply_and_missing_reply_is_error() {
        let replies = ScriptedReplies::parse("replies.yaml", YAML).expect("valid");
        let agent = AgentId::main();
        let reply = |key, visit| {
            let request = ReplyRequest { key, agent: &agent, visit, prompt: "", taken: None };
            replies.reply("replies.yaml", &request).map(|(_, reply)| reply)
        };
        assert_eq!(reply("A.md", 0).map(|reply| reply.text.as_str()), Ok("first"));
        let second = reply("A.md", 1).expect("a second");
        assert_eq!((second.cost, second.delay_ms), (Usd::from_dollars(0.02), 200));
        assert_eq!(reply("B.md", 7).map(|reply| reply.text.as_str()), Ok("again"));
        assert_eq!(
            reply("A.md", 2).expect_err("none").to_string(),
            "replies.yaml: A.md has 2 replies, and this is turn 3 there (refused replies count); add one, or write the last as `{ reply: …, repeat: true }`"
        );
    }

    #[test]
    fn all_mistakes_of_a_file_are_found() {
        let yaml = "A.md: true\nB.md:\n  - { reply: x, costs: 1 }\n  - right\n  - { reply: y, delay: soon }\n";
        let (replies, errors) = ScriptedReplies::examine(yaml);
        let lines: Vec<u64> = errors.all().iter().map(|error| error.at.line).collect();
        assert_eq!(lines, [1, 3, 5], "{errors:?}");
        assert_eq!(taken(&replies, "B.md", "main", "", &[]), Ok("right"));
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
        let folder = Folder::parse("a/b").expect("a folder");
        assert_eq!(key_of(Some(&folder), &state("A.md")), "a/b/A.md");
        assert_eq!(key_of(None, &state("A.md")), "A.md");
        let replies = ScriptedReplies::parse("r", "a/b/A.md: [inner]\n").expect("valid");
        let missing = taken(&replies, "a/b/B.md", "main", "", &[]).expect_err("none");
        assert_eq!(missing, "r: a/b/B.md has no replies; add `a/b/B.md:` and a list of them");
    }

    #[test]
    fn branch_has_its_own_replies_or_those_of_its_node() {
        let yaml = "w.yaml#look.one: [first]\nw.yaml#look: [any]\n";
        let replies = ScriptedReplies::parse("r", yaml).expect("valid");
        let text = |key: &str| taken(&replies, key, "main", "", &[]);
        assert_eq!((text("w.yaml#look.one"), text("w.yaml#look.two")), (Ok("first"), Ok("any")));
        let missing = text("w.yaml#other.one").expect_err("none");
        assert!(missing.contains("add `w.yaml#other.one:` and a list of them"), "{missing}");
        assert!(text("w.md").is_err());
    }

    #[test]
    fn reply_that_matches_goes_before_those_in_order() {
        let yaml = "A.md:\n  - one\n  - { reply: cat, match: a cat }\n  - { reply: digits, match: '/[0-9]+/', repeat: true }\n  - two\n";
        let replies = ScriptedReplies::parse("r", yaml).expect("valid");
        assert!(
            replies.depends_on_taken("A.md", LIMITS) && !replies.depends_on_taken("B.md", LIMITS)
        );
        let text = |prompt: &str, before: &[usize]| taken(&replies, "A.md", "main", prompt, before);
        assert_eq!(text("see a cat", &[]), Ok("cat"));
        assert_eq!(text("see a cat", &[1]), Ok("one"), "it is used up");
        assert_eq!(text("see a cat", &[1, 0]), Ok("two"));
        assert_eq!(text("see 12", &[2, 2]), Ok("digits"), "it serves all");
        let none = text("see a dog", &[0, 1, 3]).expect_err("none is left");
        assert!(none.contains("none of its replies fits this prompt and agent"), "{none}");
    }

    #[test]
    fn reply_of_an_agent_serves_it_alone() {
        let yaml = "A.md:\n  - { reply: second, agent: main.2 }\n  - all\n  - { reply: again, agent: main.2 }\n";
        let replies = ScriptedReplies::parse("r", yaml).expect("valid");
        let text = |agent: &str, before: &[usize]| taken(&replies, "A.md", agent, "", before);
        assert_eq!(text("main.1", &[]), Ok("all"));
        assert_eq!(text("main.2", &[]), Ok("second"));
        assert_eq!((text("main.2", &[0]), text("main.2", &[0, 1])), (Ok("all"), Ok("again")));
    }

    #[test]
    fn turn_after_a_failed_turn_takes_the_next_reply() {
        let yaml = "A.md:\n  - { fail: limit, resets: 2s, cost: $0.5 }\n  - done\n";
        let replies = ScriptedReplies::parse("r", yaml).expect("valid");
        assert!(replies.depends_on_taken("A.md", LIMITS));
        let slow =
            ScriptedReplies::parse("r", "A.md: [{ reply: x, delay: 501ms }]\n").expect("valid");
        assert!(slow.depends_on_taken("A.md", LIMITS), "it stalls");
        assert_eq!(taken(&replies, "A.md", "main", "", &[0]), Ok("done"));
        let fault = replies.0["A.md"][0].fault;
        assert_eq!(fault, Some(ScriptedFault { kind: FaultKind::Limit, resets_ms: Some(2000) }));
    }

    #[test]
    fn invalid_replies_are_error_with_location() {
        let message =
            |yaml| ScriptedReplies::parse("w/replies.yaml", yaml).expect_err("invalid").to_string();
        let unknown = message("A.md:\n  - { reply: x, costs: 1 }\n");
        assert!(unknown.starts_with("w/replies.yaml:2:") && unknown.contains("costs"), "{unknown}");
        let delay = message("A.md:\n  - { reply: x, delay: soon }\n");
        assert!(delay.contains("`soon` is not a duration"), "{delay}");
        assert!(message("A.md: true\n").starts_with("w/replies.yaml:1:"));
    }
}

#[cfg(test)]
mod reply_tests {
    use crate::replies::ScriptedReplies;

    #[test]
    fn each_mistake_of_a_reply_has_its_place_and_a_hint() {
        let cases = [
            ("{ fail: crsh }", "2:13: `crsh` is not a failure; did you mean `crash`?"),
            (
                "{ fail: boom }",
                "2:13: `boom` is not a failure; write one of crash, timeout, stall, limit, malformed, refused",
            ),
            (
                "{ reply: x, fail: crash }",
                "2:5: a turn answers or fails: leave out `reply` or `fail`",
            ),
            (
                "{ reply: x, resets: 1s }",
                "2:5: `resets` belongs to `fail: limit`; leave it out here",
            ),
            (
                "{ cost: 1 }",
                "2:5: the key `reply` is missing here; or write `fail: crash` for a turn that fails",
            ),
            ("{ reply: x, cost: -1 }", "2:23: write an amount in US dollars, such as 2 or 0.50"),
            ("{ reply: x, cost: cheap }", "2:23: write an amount in US dollars, such as 2 or 0.50"),
            ("{ reply: x, agent: bob }", "2:24: `bob` is not an agent id"),
            ("{ reply: x, match: /(/ }", "2:24: `/(/` is not a regular expression"),
            (
                "{ reply: x, files: { ../a: x } }",
                "2:26: `../a` is not the path of a file here: `..` leads out",
            ),
            (
                "{ reply: x, delete: [/etc/passwd] }",
                "2:26: `/etc/passwd` is not the path of a file here: it begins at",
            ),
            ("fork: NEXT.md", "2:5: unknown key `fork`; write the tag as in a reply: `- <goto>"),
            ("{ reply: x, mach: y }", "2:17: unknown key `mach`; did you mean `match`?"),
        ];
        for (reply, message) in cases {
            let yaml = format!("A.md:\n  - {reply}\n");
            let error = ScriptedReplies::parse("r", &yaml).expect_err(reply).to_string();
            assert!(error.starts_with(&format!("r:{message}")), "{reply}: {error}");
        }
        let yaml = "replies:\n  START.md: <result>x</result>\n";
        let error = ScriptedReplies::parse("r", yaml).expect_err(yaml).to_string();
        assert!(error.starts_with("r:1:1: `replies` is not a state; the states are"), "{error}");
    }
}
