//! Corpora: entries of a log about sources, a summary of the log, old log files, intents of a text, and plug-ins.
//!
//! Intents are in three-valued logic: flags that are T (true), F (false) or U (unknown), and rules for them.

use serde_json::{Map, Value, json};

use super::PackReader;
use crate::expression::{ValueTemplate, text};
use crate::graph::checked_graph::{ActionKind, PackAct, PackPerform};
use crate::graph::conditions::{work, work_with};
use crate::graph::interpreter::{ActionOutcome, GraphInterpreter, GraphYield, number};
use crate::graph::prompts::LOGS;
use crate::graph::reader::{GivenParameters, GraphReader};
use crate::yaml::YamlValue;
use raymond_model::graph_execution::GraphStateChange;
use raymond_model::operation::Operation;
use raymond_model::time::Timestamp;
use raymond_model::words::joined_words;

/// The pattern of `discover_installed_corpora`.
const CORPUS_PATTERN: &str = "hiivmind-corpus-*";

/// A day, in milliseconds.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Returns the reader of a type of consequences, unless it is an operation that takes its parameters unchanged.
pub(super) fn reader(kind: &str) -> Option<PackReader> {
    let read: PackReader = match kind {
        "discover_plugins" | "discover_installed_corpora" => {
            |reader, given| reader.discovered(given)
        }
        "update_config_index_metadata" => |reader, given| reader.index_metadata(given),
        "update_source_metadata" => |_, given| {
            let work = work(given, "update_source", &[])?;
            Some(ActionKind::World { work, store: None, prompt: None })
        },
        "parse_intent_flags" => |reader, given| reader.stored_act(given, intent_flags),
        "match_3vl_rules" => |reader, given| reader.stored_act(given, intent_rules),
        "log_source_status" => |reader, given| reader.logged_act(given, log_source_status),
        "log_source_changes" => |reader, given| reader.logged_act(given, log_source_changes),
        "log_index_update" => |reader, given| reader.logged_act(given, log_index_update),
        "log_session_snapshot" => |reader, given| reader.logged_act(given, log_session_snapshot),
        "apply_log_retention" => |reader, given| {
            reader.check_paths(given)?;
            Some(acted(apply_log_retention, given.all_but(&[])?, None))
        },
        "output_ci_summary" => {
            |_, given| Some(acted(output_ci_summary, given.template("format")?, None))
        }
        _ => return None,
    };
    Some(read)
}

fn acted(perform: PackPerform, given: ValueTemplate, store: Option<ValueTemplate>) -> ActionKind {
    ActionKind::Pack(PackAct { perform, given, store })
}

impl GraphReader<'_> {
    /// Reads a consequence that stores a value.
    fn stored_act(
        &mut self,
        given: &mut GivenParameters<'_>,
        perform: PackPerform,
    ) -> Option<ActionKind> {
        let store = self.store(given)?;
        Some(acted(perform, given.all_but(&["store_as"])?, store))
    }

    /// Reads a consequence that adds to the log.
    fn logged_act(
        &mut self,
        given: &mut GivenParameters<'_>,
        perform: PackPerform,
    ) -> Option<ActionKind> {
        self.variables.write("computed.log");
        Some(acted(perform, given.all_but(&[])?, None))
    }

    /// Reads `discover_plugins`, and `discover_installed_corpora`, which is the same with its own pattern. Plug-ins
    /// outside the workspace count only if the graph says so, because reading there takes a privilege.
    fn discovered(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        let pattern = match given.node("pattern") {
            Some(node) => node.json(),
            None => CORPUS_PATTERN.into(),
        };
        let mut parameters = json!({ "pattern": pattern });
        let kind = match given.written_boolean("user") {
            Some(false) => "discover_plugins",
            // A value that is known only at run time takes the privilege, too.
            user => {
                parameters["home"] = "${HOME}".into();
                if user.is_none() {
                    parameters["user"] = given.node("user")?.json();
                }
                "discover_user_plugins"
            }
        };
        let work = work_with(given, kind, ValueTemplate::parse(&parameters).ok()?);
        Some(ActionKind::World { work, store: self.store(given)?, prompt: None })
    }

    /// Reads `update_config_index_metadata`.
    fn index_metadata(&mut self, given: &mut GivenParameters<'_>) -> Option<ActionKind> {
        let mut fields = match given.node("fields").map(YamlValue::json) {
            None => Map::new(),
            Some(Value::Object(fields)) => fields,
            Some(_) => {
                let message = "`fields` of `update_config_index_metadata` is written out";
                self.report.error(given.at, "WF303", message);
                return None;
            }
        };
        for name in ["last_updated_at", "format"] {
            fields.extend(given.node(name).map(|node| (name.to_owned(), node.json())));
        }
        let parameters = ValueTemplate::parse(&json!({ "fields": fields })).ok()?;
        let work = work_with(given, given.kind, parameters);
        Some(ActionKind::World { work, store: None, prompt: None })
    }
}

impl GraphInterpreter {
    /// Returns the parameters of an entry of the log, with its time.
    fn log_entry_of(&mut self, act: &PackAct) -> Result<Map<String, Value>, String> {
        let Value::Object(mut entry) = self.fill(&act.given)? else {
            return Err("its parameters are not a map".to_owned());
        };
        entry.insert("timestamp".to_owned(), self.now_text.clone());
        Ok(entry)
    }

    fn push_to_log(&mut self, path: &[&str], value: Map<String, Value>) -> Result<(), String> {
        self.change(GraphStateChange::Push(self.log_keys(path), value.into()))
    }

    fn count_in_log(&mut self, path: &[&str]) -> Result<(), String> {
        let path = self.log_keys(path);
        let before = self.written(&path).and_then(Value::as_u64).unwrap_or_default();
        self.change(GraphStateChange::Set(path, (before + 1).into()))
    }
}

type Performed = Result<ActionOutcome, String>;

fn log_source_status(graph: &mut GraphInterpreter, act: &PackAct) -> Performed {
    let mut entry = graph.log_entry_of(act)?;
    entry.entry("action").or_insert_with(|| "pending".into());
    graph.count_in_log(&["sources", "checked"])?;
    graph.push_to_log(&["sources", "details"], entry)?;
    Ok(ActionOutcome::Done)
}

fn log_source_changes(graph: &mut GraphInterpreter, act: &PackAct) -> Performed {
    let mut entry = graph.log_entry_of(act)?;
    let changes = entry.shift_remove("changes").unwrap_or_default();
    for kind in ["added", "modified", "deleted"] {
        let files = changes.get(kind).cloned().unwrap_or_else(|| json!([]));
        entry.insert(format!("{kind}_files"), files);
    }
    graph.count_in_log(&["sources", "updated"])?;
    graph.push_to_log(&["changes"], entry)?;
    Ok(ActionOutcome::Done)
}

fn log_index_update(graph: &mut GraphInterpreter, act: &PackAct) -> Performed {
    let mut entry = graph.log_entry_of(act)?;
    let files = entry.shift_remove("files").unwrap_or_default();
    entry.insert("files_modified".to_owned(), files);
    let path = graph.log_keys(&["index_updates"]);
    graph.change(GraphStateChange::Set(path, entry.into()))?;
    Ok(ActionOutcome::Done)
}

fn log_session_snapshot(graph: &mut GraphInterpreter, act: &PackAct) -> Performed {
    let entry = graph.log_entry_of(act)?;
    graph.push_to_log(&["snapshots"], entry)?;
    Ok(ActionOutcome::Done)
}

/// Removes old log files.
fn apply_log_retention(graph: &mut GraphInterpreter, act: &PackAct) -> Performed {
    if let Some(came) = graph.take_result() {
        return came.map(|_| ActionOutcome::Done);
    }
    let given = graph.fill(&act.given)?;
    Ok(match retention(&given, graph.now)? {
        Some(remove) => ActionOutcome::Needs(GraphYield::Operation(remove)),
        None => ActionOutcome::Done,
    })
}

/// Returns the operation that removes old log files; `None` if all are kept.
fn retention(given: &Value, now: Timestamp) -> Result<Option<Operation>, String> {
    let number = |name: &str| {
        let number = number(&given[name]).and_then(|number| number.as_u64());
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| format!("WF403 `{name}` is not a number of {name}, 0 or more"))
    };
    let location = given["location"].as_str().unwrap_or(LOGS);
    let mut operation = json!({ "type": "apply_log_retention", "location": location });
    match given["strategy"].as_str() {
        Some("none") => return Ok(None),
        Some("days") => {
            let age = u64::from(number("days")?).saturating_mul(DAY_MS);
            let since = Timestamp(now.0.saturating_sub(age)).to_string();
            operation["since"] = since.chars().take(10).collect::<String>().into();
        }
        Some("count") => operation["count"] = number("count")?.into(),
        _ => {
            let strategy = &given["strategy"];
            return Err(format!("WF403 `strategy` is none, days or count, not {strategy}"));
        }
    }
    serde_json::from_value(operation).map(Some).map_err(|error| error.to_string())
}

/// Shows the summary of the log in a format.
fn output_ci_summary(graph: &mut GraphInterpreter, act: &PackAct) -> Performed {
    let format = graph.text(&act.given)?;
    let log = graph.written(&graph.log_keys(&[])).filter(|log| log.is_object());
    let log = log.ok_or("no log to summarize; begin it with `init_log`")?;
    let file = ["computed".to_owned(), "log_file_path".to_owned()];
    let file = graph.written(&file).cloned().unwrap_or_default();
    let summary = summary(log, file, &format)?;
    graph.shown.extend(summary);
    Ok(ActionOutcome::Done)
}

/// Returns the summary of a log in a format; `None` for `none`.
fn summary(log: &Value, file: Value, format: &str) -> Result<Option<String>, String> {
    let name = log["metadata"]["workflow_name"].as_str().unwrap_or("workflow");
    let facts = [
        ("outcome", log["execution"]["outcome"].clone()),
        ("sources_checked", log["sources"]["checked"].as_u64().unwrap_or_default().into()),
        ("sources_updated", log["sources"]["updated"].as_u64().unwrap_or_default().into()),
        ("duration_seconds", log["execution"]["duration_seconds"].clone()),
        ("log_file", file),
    ];
    let shown = |value: &Value| match value {
        Value::String(text) => joined_words(text),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    match format {
        "none" => Ok(None),
        "json" => {
            let map: Map<String, Value> =
                facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            Ok(Some(Value::Object(map).to_string()))
        }
        "plain" => {
            let name = prefix(name);
            let line = |(key, value): &(&str, Value)| {
                format!("{name}_{}={}", key.to_uppercase(), shown(value))
            };
            Ok(Some(facts.iter().map(line).collect::<Vec<_>>().join("\n")))
        }
        "github" => {
            let mut lines = vec![format!("::group::{}", joined_words(name))];
            lines.extend(facts.iter().map(|(key, value)| format!("{key}: {}", shown(value))));
            lines.push("::endgroup::".to_owned());
            for (kind, entries) in [("warning", &log["warnings"]), ("error", &log["errors"])] {
                for entry in entries.as_array().into_iter().flatten() {
                    lines.push(format!("::{kind}::{}", shown(&entry["message"])));
                }
            }
            Ok(Some(lines.join("\n")))
        }
        other => Err(format!("WF403 `format` is github, plain, json or none, not `{other}`")),
    }
}

/// Returns a name as that of a variable of the environment.
fn prefix(name: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(upper).collect()
}

/// Stores the flags of a text.
fn intent_flags(graph: &mut GraphInterpreter, act: &PackAct) -> Performed {
    let given = graph.fill(&act.given)?;
    graph.stored(act.store.as_ref(), flags_of(&given["input"], &given["flag_definitions"])?)
}

/// Stores the rules that fit flags.
fn intent_rules(graph: &mut GraphInterpreter, act: &PackAct) -> Performed {
    let given = graph.fill(&act.given)?;
    graph.stored(act.store.as_ref(), matches(&given["flags"], &given["rules"])?)
}

/// The number of rules that are listed as the best.
const MAX_TOP: usize = 3;

/// The lead that makes a rule the clear winner.
const CLEAR_LEAD: i64 = 2;

/// Returns the flags of a text: F if it has one of a flag's negative keywords, else T if it has one of its keywords,
/// else U.
fn flags_of(input: &Value, definitions: &Value) -> Result<Value, String> {
    let input = match input {
        Value::Null => String::new(),
        other => text(other).to_lowercase(),
    };
    let Value::Object(definitions) = definitions else {
        return Err("WF403 `flag_definitions` is not a map".to_owned());
    };
    let mut flags = Map::new();
    for (name, definition) in definitions {
        let has = |key: &str| match definition.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Array(words)) => {
                let mut words = words.iter().filter_map(Value::as_str).map(str::to_lowercase);
                Ok(words.any(|word| input.contains(&word)))
            }
            Some(_) => Err(format!("WF403 `{key}` of the flag `{name}` is not a list")),
        };
        let value = match (has("negative_keywords")?, has("keywords")?) {
            (true, _) => "F",
            (false, true) => "T",
            (false, false) => "U",
        };
        flags.insert(name.clone(), value.into());
    }
    Ok(Value::Object(flags))
}

/// Returns the rules that fit the flags, the best first. A rule is excluded if one of its conditions contradicts its
/// flag. Equal ones count 2, a known and an unknown one count 1.
fn matches(flags: &Value, rules: &Value) -> Result<Value, String> {
    let Value::Object(flags) = flags else {
        return Err("WF403 `flags` is not a map".to_owned());
    };
    let Value::Array(rules) = rules else {
        return Err("WF403 `rules` is not a list".to_owned());
    };
    let mut candidates: Vec<(i64, i64, &Value)> = Vec::new();
    for rule in rules {
        let conditions = match rule.get("conditions") {
            None | Some(Value::Null) => &Map::new(),
            Some(Value::Object(conditions)) => conditions,
            Some(_) => return Err("WF403 `conditions` of a rule is not a map".to_owned()),
        };
        let scores = conditions
            .iter()
            .map(|(name, wanted)| score(flags.get(name).and_then(Value::as_str), wanted.as_str()));
        if let Some(score) = scores.sum::<Option<i64>>() {
            let priority = rule.get("priority").and_then(Value::as_i64).unwrap_or_default();
            candidates.push((score, priority, rule));
        }
    }
    candidates.sort_by_key(|(score, priority, _)| (-score, -priority));
    let clear = match candidates.as_slice() {
        [] => false,
        [_] => true,
        [first, second, ..] => first.0 >= second.0 + CLEAR_LEAD,
    };
    let winner = candidates.first().filter(|_| clear).map(|(.., rule)| (*rule).clone());
    let listed = |some: &[(i64, i64, &Value)]| -> Vec<Value> {
        some.iter().map(|(score, _, rule)| json!({ "rule": rule, "score": score })).collect()
    };
    let top = &candidates[..candidates.len().min(MAX_TOP)];
    Ok(json!({
        "clear_winner": clear,
        "winner": winner,
        "top_candidates": listed(top),
        "all_candidates": listed(&candidates),
    }))
}

/// Returns the score of a condition; `None` if it contradicts its flag.
fn score(flag: Option<&str>, wanted: Option<&str>) -> Option<i64> {
    match (flag.unwrap_or("U"), wanted.unwrap_or("U")) {
        ("T", "T") | ("F", "F") => Some(2),
        ("T", "F") | ("F", "T") => None,
        ("T" | "F", _) | (_, "T" | "F") => Some(1),
        _ => Some(0),
    }
}

#[cfg(test)]
mod intents_tests {
    use super::*;

    fn definitions() -> Value {
        json!({
            "has_help": { "keywords": ["help", "?"] },
            "has_init": { "keywords": ["create"], "negative_keywords": ["don't create"] },
            "has_list": {},
        })
    }

    #[test]
    fn flag_is_false_by_negative_keyword_true_by_keyword_and_unknown_without() {
        let flags = |text: Value| flags_of(&text, &definitions()).expect("flags");
        let of =
            |help: &str, init: &str| json!({"has_help": help, "has_init": init, "has_list": "U"});
        assert_eq!(flags(json!("HELP me create")), of("T", "T"));
        assert_eq!(flags(json!("please don't create it")), of("U", "F"));
        assert_eq!(flags(Value::Null), of("U", "U"));
        let why = flags_of(&json!("x"), &json!({"a": {"keywords": "x"}})).expect_err("refused");
        assert_eq!(why, "WF403 `keywords` of the flag `a` is not a list");
        assert!(flags_of(&json!("x"), &json!([])).is_err());
    }

    #[test]
    fn best_rule_wins_with_a_lead_and_contradicted_rules_are_excluded() {
        let rules = json!([
            {"name": "help", "conditions": {"has_help": "T", "has_init": "F"}, "priority": 100},
            {"name": "init", "conditions": {"has_init": "T"}, "priority": 90},
            {"name": "both", "conditions": {"has_help": "T", "has_init": "T"}, "priority": 80},
        ]);
        let of = |help: &str, init: &str| {
            matches(&json!({"has_help": help, "has_init": init}), &rules).expect("matches")
        };
        let both = of("T", "T");
        assert_eq!(both["clear_winner"], true);
        assert_eq!(both["winner"]["name"], "both");
        assert_eq!(both["all_candidates"].as_array().map(Vec::len), Some(2));
        let help = of("T", "U");
        assert_eq!((&help["clear_winner"], &help["winner"]), (&json!(false), &Value::Null));
        assert_eq!(help["top_candidates"][0], json!({"rule": rules[0], "score": 3}));
        assert_eq!(help["top_candidates"][1]["rule"]["name"], "both");
        let none = matches(&json!({"a": "F"}), &json!([{"conditions": {"a": "T"}}]));
        assert_eq!(none.expect("matches")["clear_winner"], false);
    }
}
