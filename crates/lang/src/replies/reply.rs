//! One scripted reply, as it is written in the file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::{Value, json};

use crate::hint::closest;
use crate::manifest::dollars;
use crate::schema::shape;
use crate::text_pattern::TextPattern;
use raymond_model::id::AgentId;
use raymond_model::money::Usd;
use raymond_model::scripted_fault::{FaultKind, ScriptedFault};
use raymond_model::time::millis;

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

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// The kind of a failure, as it is written.
struct WrittenFault(FaultKind);

impl<'de> Deserialize<'de> for WrittenFault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known: Vec<String> = FaultKind::ALL.iter().map(ToString::to_string).collect();
        let place = known.iter().position(|name| *name == text);
        place.map(|place| Self(FaultKind::ALL[place])).ok_or_else(|| {
            let meant = closest(&text, known.iter().map(String::as_str));
            let hint = meant.map(|name| format!("did you mean `{name}`?"));
            let all = || format!("write one of {}", known.join(", "));
            de::Error::custom(format!("`{text}` is not a failure; {}", hint.unwrap_or_else(all)))
        })
    }
}

/// A time, as it is written.
struct WrittenTime(u64);

impl<'de> Deserialize<'de> for WrittenTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        millis(&String::deserialize(deserializer)?).map(Self).map_err(de::Error::custom)
    }
}

/// An amount of money, as it is written.
#[derive(Default)]
struct WrittenCost(Usd);

impl<'de> Deserialize<'de> for WrittenCost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        dollars(&String::deserialize(deserializer)?).map(Self).map_err(de::Error::custom)
    }
}

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
    let known: Vec<String> = FaultKind::ALL.iter().map(ToString::to_string).collect();
    shape::one_of(known.iter().map(String::as_str))
}

/// Returns a reply as JSON Schema.
pub(super) fn reply_shape() -> Value {
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
            "a reply: a text, or a mapping with `reply` or `fail` and optionally `cost`, `delay`, `repeat`, `match`, `agent`, `files`, `delete`",
        )
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ScriptedReply, E> {
        Ok(ScriptedReply { text: text.to_owned(), ..ScriptedReply::default() })
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<ScriptedReply, M::Error> {
        let detailed = DetailedReply::deserialize(de::value::MapAccessDeserializer::new(map))?;
        detailed.checked().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
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
