//! The keys of a file of cases, for messages and for editors, and the permissions and ends that a case can name.

use serde_json::{Value, json};
use strum::{Display, IntoStaticStr, VariantArray};

use crate::replies;
use crate::schema::shape;
use crate::schema::shape::KeySpec;
use raymond_model::turn::FailureCause;

const fn key(name: &'static str, doc: &'static str, shape: fn() -> Value) -> KeySpec {
    KeySpec { name, doc, shape }
}

/// The keys of a case.
pub(super) const CASE: &[KeySpec] = &[
    key("name", "The name of the case; default the name of the file.", shape::text),
    key("entry", "The state that the run begins with, below the workflow's folder.", shape::text),
    key("input", "The text of {{input}}.", shape::text),
    key("variables", "Values for placeholders of all states.", texts),
    key(
        "answers",
        "Answers to questions: one, or a list for a question that is asked again.",
        lists,
    ),
    key(
        "facts",
        "Facts that hold when the run begins, by label: a value, or key and value.",
        facts,
    ),
    key("files", "Files in the working directory when the run begins, with their texts.", texts),
    key(
        "git",
        "True if the working directory is a git repository with these files committed.",
        shape::boolean,
    ),
    key(
        "replies",
        "The replies: a file beside the case, or keys that replace those of replies.yaml.",
        case_replies,
    ),
    key(
        "cassette",
        "The directory of a cassette beside the case, which answers in place of replies.",
        shape::text,
    ),
    key(
        "strict_replay",
        "True if an agent fails whose prompt differs from the one in the cassette.",
        shape::boolean,
    ),
    key("settings", "Options of `raymond run`, without dashes.", settings),
    key("time_limit", "The time after which the case fails; default 60s.", shape::duration),
    key("expect", "What is expected of the run.", expected),
];

/// The keys of the settings: options of `raymond run` that matter to a scripted run; and what they permit.
pub(super) const SETTINGS: [(&str, Option<CasePermission>); 20] = [
    ("allow_address", Some(CasePermission::AllowAddress)),
    ("allow_tools", Some(CasePermission::AllowTools)),
    ("backoff", None),
    ("branch", None),
    ("budget", None),
    ("idle_timeout", None),
    ("max_agents", None),
    ("max_procs", None),
    ("max_restarts", None),
    ("model", None),
    ("on_budget", None),
    ("on_exhausted", None),
    ("on_limit", None),
    ("order", None),
    ("permission_mode", Some(CasePermission::PermissionMode)),
    ("restart", None),
    ("shutdown", None),
    ("stagger", None),
    ("strict", None),
    ("timeout", None),
];

/// The keys of the expectations.
pub(super) const EXPECT: &[KeySpec] = &[
    key(
        "path",
        "The states of the first agent in their order, or a mapping of agents to theirs.",
        paths,
    ),
    key("result", "The result of the first agent.", text_rule),
    key("results", "The results of agents.", || map_of(text_rule())),
    key("agents", "The number of agents over the whole run.", count),
    key("cost_at_most", "The most that the run may cost, in US dollars.", dollars),
    key("turns_at_most", "The most turns that agents may take.", count),
    key("files", "Files in the working directory at the end.", file_rules),
    key("facts", "Facts at the end, by label; null if the fact does not hold.", texts_or_null),
    key("failure", "An agent fails: the cause, or a mapping of agent, cause and message.", failure),
    key(
        "status",
        "How the run ends; default completed, unless a failure or an exit code is expected.",
        statuses,
    ),
    key("exit", "The exit code of the run.", count),
    key("no_warning", "True if nothing may be warned of, and no agent reminded.", shape::boolean),
];

/// The keys of a rule about a text.
pub(super) const TEXT_RULE: &[KeySpec] = &[
    key("contains", "A text, or /…/, that has to be in it.", shape::text),
    key("schema", "A JSON Schema that it has to match.", object),
    key("fields", "Values that the object has at these paths.", object),
    key("golden", "A file beside the case whose text it has to equal.", shape::text),
];

/// The keys of an expected failure.
pub(super) const FAILURE: &[KeySpec] = &[
    key("agent", "The agent that fails.", shape::text),
    key("cause", "The kind of failure.", causes),
    key("message", "A text, or /…/, that has to be in the message.", shape::text),
];

/// The keys of a fact.
pub(super) const FACT: &[KeySpec] = &[
    key("key", "The key of the fact; default that of the run.", shape::text),
    key("value", "The value of the fact.", shape::text),
];

/// Returns the names of all causes of failures.
pub(super) fn cause_names() -> Vec<String> {
    let name = |cause: &FailureCause| serde_json::to_value(cause).ok()?.as_str().map(str::to_owned);
    FailureCause::ALL.iter().filter_map(name).collect()
}

fn object() -> Value {
    json!({ "type": "object" })
}

fn map_of(value: impl Into<Value>) -> Value {
    json!({ "type": "object", "additionalProperties": value.into() })
}

fn texts() -> Value {
    map_of(shape::text())
}

fn texts_or_null() -> Value {
    map_of(json!({ "type": ["string", "number", "boolean", "null"] }))
}

fn lists() -> Value {
    map_of(json!({ "anyOf": [shape::text(), shape::list(shape::text())] }))
}

fn facts() -> Value {
    let fact = json!({ "anyOf": [shape::text(), shape::mapping(FACT, &[])] });
    map_of(json!({ "anyOf": [fact, shape::list(fact.clone())] }))
}

fn case_replies() -> Value {
    let inline = replies::file_shape();
    json!({ "anyOf": [{ "type": "string" }, inline] })
}

fn settings() -> Value {
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    let any = json!({ "anyOf": [scalar, shape::list(scalar.clone())] });
    let properties: serde_json::Map<String, Value> =
        SETTINGS.iter().map(|(name, _)| ((*name).to_owned(), any.clone())).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn expected() -> Value {
    shape::mapping(EXPECT, &[])
}

fn path() -> Value {
    let set = json!({
        "type": "object",
        "properties": { "set": shape::list(shape::text()) },
        "required": ["set"],
        "additionalProperties": false,
    });
    json!({ "anyOf": [shape::list(shape::text()), set] })
}

fn paths() -> Value {
    json!({ "anyOf": [path(), map_of(path())] })
}

fn text_rule() -> Value {
    json!({ "anyOf": [shape::text(), shape::mapping(TEXT_RULE, &[])] })
}

fn file_rules() -> Value {
    map_of(json!({ "anyOf": [shape::boolean(), shape::mapping(TEXT_RULE, &[])] }))
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn dollars() -> Value {
    json!({ "type": ["number", "string"], "minimum": 0 })
}

fn causes() -> Value {
    shape::one_of(cause_names().iter().map(String::as_str))
}

fn failure() -> Value {
    json!({ "anyOf": [causes(), shape::mapping(FAILURE, &[])] })
}

fn statuses() -> Value {
    shape::variants(ExpectedStatus::VARIANTS)
}

/// Returns a file of cases as JSON Schema: one case, or a list of them.
pub(crate) fn file_shape() -> Value {
    let mut case = shape::mapping(CASE, &["expect"]);
    let list = json!({ "type": "array", "items": case.clone(), "description": "Several cases." });
    case["properties"]["cases"] = list;
    case["anyOf"] = json!([{ "required": ["expect"] }, { "required": ["cases"] }]);
    if let Some(case) = case.as_object_mut() {
        case.remove("required");
    }
    case
}

/// What a setting permits, which only a person may do in a live run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CasePermission {
    /// Graphs fetch from an address that is not public.
    AllowAddress,
    /// States use a tool without being asked.
    AllowTools,
    /// Claude Code asks for fewer permissions.
    PermissionMode,
}

/// The end that a case expects of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ExpectedStatus {
    /// All agents have ended well.
    Completed,
    /// An agent has failed.
    Failed,
    /// It is paused, and can be resumed.
    Paused,
    /// It waits for an answer, a signal or a person.
    Waiting,
}
