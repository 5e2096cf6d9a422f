//! Reads the options of turns, which frontmatter, `raymond.yaml`, graphs and programs share.
//!
//! ```yaml
//! effort: low
//! tools: [Read, Grep, Bash]
//! allowed_tools: ["Bash(cargo test:*)"]
//! permission_mode: plan
//! append_system_prompt: Answer in one paragraph.
//! mcp_config: servers.json
//! env: { RUST_LOG: debug }
//! ```
//!
//! A value is read from a tree that knows its places, so each language only has to build such a tree. Mistakes are
//! collected, and a mistake is never fatal for the rest.

use std::collections::BTreeMap;

use raymond_model::model::ModelName;
use raymond_model::turn_options::{
    ApprovalPolicy, BackgroundWork, EffortLevel, EnvValue, OnDenied, OnLostSession, PermissionMode,
    SettingSource, StartupMode, TurnOptions,
};
use serde_json::{Value, json};
use strum::VariantArray;

use crate::hint::{closest, instead_of, is_slip};
use crate::schema::shape;
use crate::source::SourcePlace;
pub use crate::turn_options::files::embed_files;
use crate::yaml::{Error, YamlContent, YamlEntry, YamlValue};

mod files;

/// Defines how the options are written: the key of each, its keyword in programs, the reader of its value, and its
/// values as JSON Schema.
macro_rules! written_options {
    ($($key:ident $keyword:literal: $read:expr => $shape:expr,)*) => {
        /// The keys, as frontmatter and graphs write them.
        pub const KEYS: [&str; 24] = [$(stringify!($key)),*];

        /// The keys, as programs write them.
        pub const KEYWORDS: [&str; KEYS.len()] = [$($keyword),*];

        /// The values of each key, as JSON Schema.
        pub(crate) const SHAPES: [(&str, fn() -> Value); KEYS.len()] =
            [$((stringify!($key), || $shape)),*];

        /// Reads the value of a key; another key has no effect.
        fn read_option(options: &mut TurnOptions, key: &str, node: &YamlValue) -> Result<(), Error> {
            match key {
                $(stringify!($key) => options.$key = Some($read(key, node)?),)*
                _ => {}
            }
            Ok(())
        }
    };
}

written_options! {
    effort "effort": variant => shape::variants(EffortLevel::VARIANTS),
    tools "tools": list(tool) => texts(),
    allowed_tools "allowed-tools": list(tool_rule) => texts(),
    disallowed_tools "disallowed-tools": list(tool_rule) => texts(),
    permission_mode "permission-mode": permission_mode =>
        shape::one_of(PermissionMode::NAMES.map(|(name, _)| name)),
    append_system_prompt "append-system-prompt": system_prompt => shape::text(),
    system_prompt_file "system-prompt-file": files::path => shape::text(),
    mcp_config "mcp-config": files::configs => files::server_shape(),
    strict_mcp "strict-mcp": switch => shape::boolean(),
    settings "settings": files::config => files::config_shape(),
    setting_sources "setting-sources": list(setting_source) =>
        one_or_more(shape::variants(SettingSource::VARIANTS)),
    agents "agents": files::config => files::config_shape(),
    add_dirs "add-dirs": list(files::inside) => texts(),
    plugin_dirs "plugin-dirs": list(files::inside) => texts(),
    max_turns "max-turns": count(1) => shape::count(),
    max_thinking_tokens "max-thinking-tokens": count(0) =>
        json!({ "type": ["integer", "string"], "minimum": 0, "pattern": r"^\+?[0-9]+$" }),
    background "background": variant => shape::variants(BackgroundWork::VARIANTS),
    env "env": environment => environment_shape(),
    fallback_model "fallback-model": list(model) => texts(),
    startup "startup": variant => shape::variants(StartupMode::VARIANTS),
    on_denied "on-denied": variant => shape::variants(OnDenied::VARIANTS),
    on_lost_session "on-lost-session": variant => shape::variants(OnLostSession::VARIANTS),
    permissions "permissions": variant => shape::variants(ApprovalPolicy::VARIANTS),
    run_command "run-command": switch => shape::boolean(),
}

/// Returns the key that a key stands for: the option `--allow-tool` has the same name in a file.
pub fn canonical(key: &str) -> &str {
    match key {
        "allow_tool" | "allow_tools" => "allowed_tools",
        other => other,
    }
}

/// The places of options in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionPlaces(Vec<(String, Option<String>, SourcePlace)>);

impl OptionPlaces {
    /// Returns the place of a text in the value of a key, or the place of the whole value.
    pub fn of(&self, key: &str, text: Option<&str>) -> Option<SourcePlace> {
        let find = |text: Option<&str>| {
            self.0.iter().find(|(known, value, _)| known == key && value.as_deref() == text)
        };
        find(text).or_else(|| find(None)).map(|(_, _, place)| *place)
    }

    /// Returns whether no option has a place.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn note(&mut self, key: &str, node: &YamlValue) {
        self.0.push((key.to_owned(), None, node.at));
        for (place, text) in node.texts() {
            self.0.push((key.to_owned(), Some(text.text.to_string()), place));
        }
        if let YamlContent::Map(entries) = &node.value {
            let name = |entry: &YamlEntry| (key.to_owned(), Some(entry.key.to_string()), entry.at);
            self.0.extend(entries.iter().map(name));
        }
    }
}

/// The options of a file as far as they can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenOptions {
    pub options: TurnOptions,
    /// The places of the options.
    pub places: OptionPlaces,
    /// The mistakes in them.
    pub faults: Vec<Error>,
}

impl WrittenOptions {
    /// Reads the options of a file. A value that is not a mapping has no options; the caller reports that mistake.
    pub(crate) fn of(root: &YamlValue) -> Self {
        Self::read(root.entries())
    }

    /// Reads the options among the entries of a mapping, and ignores other entries.
    pub(crate) fn read(entries: &[YamlEntry]) -> Self {
        let mut written = Self::default();
        for entry in entries {
            let key = canonical(&entry.key);
            if KEYS.contains(&key) {
                written.places.note(key, &entry.value);
                let read = read_option(&mut written.options, key, &entry.value);
                written.faults.extend(read.err());
            }
        }
        written
    }
}

/// Reads the name of a model.
///
/// # Errors
/// A text that says why it cannot be one.
pub fn model(name: &str) -> Result<ModelName, String> {
    ModelName::parse(name).map_err(|error| error.to_string())
}

// Hints about the names of models, which find a slip in an alias before a run costs money.
//
// A name that is not known here is not an error, because Claude Code decides which models exist.

/// The aliases that Claude Code 2.1.197 to 2.1.330 know.
const ALIASES: [&str; 7] = ["sonnet", "opus", "haiku", "fable", "best", "default", "opusplan"];

/// The end of an alias that stands for a larger context.
const LARGE_CONTEXT: &str = "[1m]";

/// The codes of the warnings with these hints: of graphs, programs and prompts.
pub const HINT_CODES: [&str; 3] = ["WF104", "SX219", "RF403"];

/// Returns a hint about a name that is neither a known alias nor looks like a full name.
pub fn model_hint(model: &ModelName) -> Option<String> {
    let name = model.as_str();
    let alias = name.strip_suffix(LARGE_CONTEXT).unwrap_or(name);
    let is_full = name.contains("claude") || name.contains(['/', ':', '.', '@']);
    if is_full || ALIASES.iter().any(|known| known.eq_ignore_ascii_case(alias)) {
        return None;
    }
    let meant = closest(alias, ALIASES).map(|alias| format!("did you mean `{alias}`?"));
    let meant = meant.unwrap_or_else(|| "raymond passes it to Claude Code unchanged".to_owned());
    Some(format!("`{name}` is not a known model alias; {meant}"))
}

// Options that are lists: tools, rules, sources, and the environment.

/// Returns the reader of a list, or of a single text that stands for a list of one.
fn list<T>(
    read: impl Fn(&str) -> Result<T, String>,
) -> impl Fn(&str, &YamlValue) -> Result<Vec<T>, Error> {
    move |key, node| {
        let entry = |node: &YamlValue| {
            let wanted = || {
                Error::new(
                    node.at,
                    format!("`{key}` is a list of texts, and this is {}", node.sort()),
                )
            };
            read(node.as_written().ok_or_else(wanted)?).map_err(|why| Error::new(node.at, why))
        };
        match &node.value {
            YamlContent::List(list) => list.iter().map(entry).collect(),
            YamlContent::Text(text) if outer_parts(&text.text).len() > 1 => {
                let parts = outer_parts(&text.text).into_iter().map(str::trim);
                let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
                // Only a text of a YAML file has a range there; this one is from a program.
                let list = if text.range.is_empty() {
                    format!("(\"{}\")", parts.join("\" \""))
                } else {
                    format!("[{}]", parts.join(", "))
                };
                Err(Error::new(node.at, format!("`{key}` is a list; write {list}")))
            }
            _ => Ok(vec![entry(node)?]),
        }
    }
}

/// Returns one value or a list of them, as JSON Schema.
fn one_or_more(item: Value) -> Value {
    json!({ "anyOf": [item.clone(), shape::list(item)] })
}

/// Returns a text or a list of texts, as JSON Schema.
fn texts() -> Value {
    one_or_more(shape::text())
}

/// Returns the parts of a text between the commas outside of brackets.
fn outer_parts(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_outer = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth <= 0
    };
    text.split(is_outer).collect()
}

/// Reads the name of a tool.
fn tool(text: &str) -> Result<String, String> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '*');
    if text.starts_with('-') || text.is_empty() || !text.chars().all(is_name) {
        let rule = if text.contains('(') {
            "; a rule such as `Bash(cargo test:*)` stands in `allowed_tools` or `disallowed_tools`"
        } else {
            "; write for example Read, or [] for no tools"
        };
        return Err(format!("`{text}` is not the name of a tool{rule}"));
    }
    Ok(text.to_owned())
}

/// Reads a rule: the name of a tool, or a tool and its use in brackets.
///
/// # Errors
/// A text that says what is expected.
pub fn tool_rule(text: &str) -> Result<String, String> {
    let (name, rest) = text.split_once('(').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let is_single_use =
        |rest: &str| rest.len() > 1 && rest.find(['(', ')']) == Some(rest.len() - 1);
    let closes = rest.is_none_or(is_single_use);
    if tool(name).is_err() || !closes || text.chars().any(char::is_control) {
        return Err(format!(
            "`{}` is not a rule; write a tool, such as WebFetch, or a tool and what it is used for without further brackets, such as Bash(cargo test:*)",
            text.escape_debug()
        ));
    }
    Ok(text.to_owned())
}

/// Reads the name of a settings file.
fn setting_source(text: &str) -> Result<SettingSource, String> {
    by_name("setting_sources", text, &names())
}

/// Reads the environment: a list of names to pass, or a mapping of names to values.
fn environment(_key: &str, node: &YamlValue) -> Result<BTreeMap<String, EnvValue>, Error> {
    let mut env = BTreeMap::new();
    add_variables(node, &mut env)?;
    Ok(env)
}

fn add_variables(node: &YamlValue, env: &mut BTreeMap<String, EnvValue>) -> Result<(), Error> {
    match &node.value {
        YamlContent::List(list) => {
            return list.iter().try_for_each(|item| add_variables(item, env));
        }
        YamlContent::Map(entries) => {
            for YamlEntry { key, value, .. } in entries.iter() {
                let name = variable(key).map_err(|why| Error::new(value.at, why))?;
                let set = match (&value.value, value.as_written()) {
                    (YamlContent::Null, _) => EnvValue::Pass,
                    (_, Some(text)) if !text.contains('\0') => EnvValue::Set(text.to_owned()),
                    _ => {
                        let message =
                            format!("the value of `{name}` is a text; put quotes around it");
                        return Err(Error::new(value.at, message));
                    }
                };
                env.insert(name, set);
            }
        }
        _ => {
            let wanted = "`env` is a list of names to pass, or a mapping NAME: value";
            let name = node.as_written().ok_or_else(|| Error::new(node.at, wanted))?;
            let name = variable(name).map_err(|why| Error::new(node.at, why))?;
            env.insert(name, EnvValue::Pass);
        }
    }
    Ok(())
}

/// Returns names to pass, or a mapping of names to values, as JSON Schema.
fn environment_shape() -> Value {
    let name = json!({ "type": "string", "pattern": r"^(?!RAYMOND_)[A-Za-z_][A-Za-z0-9_]*$" });
    let value = json!({ "type": ["string", "number", "boolean", "null"] });
    let values = json!({ "type": "object", "propertyNames": name, "additionalProperties": value });
    one_or_more(json!({ "anyOf": [name, values] }))
}

/// Reads the name of an environment variable.
fn variable(name: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(is_word)
    {
        let hint = match name.split_once('=') {
            Some((name, value)) => format!("; write {{ {name}: {value} }}"),
            None => String::new(),
        };
        return Err(format!("`{name}` is not the name of an environment variable{hint}"));
    }
    if name.starts_with("RAYMOND_") {
        return Err(format!("`{name}` is set by raymond itself; leave it out"));
    }
    Ok(name.to_owned())
}

// Values of options that are not lists: names, texts, switches and counts.

/// The longest text that is passed as an argument, in bytes: the system takes no longer ones.
const MAX_ARGUMENT_BYTES: usize = 100_000;

/// Returns the values of a kind, with their names.
fn names<T: VariantArray + Copy + Into<&'static str>>() -> Vec<(&'static str, T)> {
    T::VARIANTS.iter().map(|&value| (value.into(), value)).collect()
}

/// Reads a value that has a name.
fn by_name<T: Copy>(key: &str, name: &str, names: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, value)) = names.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let instead = instead_of(name, names.iter().map(|(known, _)| *known), "use");
    Err(format!("unknown value `{name}` of `{key}`; {instead}"))
}

fn named<T: Copy>(key: &str, node: &YamlValue, names: &[(&str, T)]) -> Result<T, Error> {
    let all = || names.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    let wanted =
        || Error::new(node.at, format!("`{key}` is one of {}, not {}", all(), node.sort()));
    by_name(key, node.as_written().ok_or_else(wanted)?, names)
        .map_err(|why| Error::new(node.at, why))
}

fn variant<T: VariantArray + Copy + Into<&'static str>>(
    key: &str,
    node: &YamlValue,
) -> Result<T, Error> {
    named(key, node, &names())
}

fn permission_mode(key: &str, node: &YamlValue) -> Result<PermissionMode, Error> {
    named(key, node, &PermissionMode::NAMES)
}

/// Reads a text of a system prompt.
fn system_prompt(key: &str, node: &YamlValue) -> Result<String, Error> {
    let why = match node.as_written() {
        None => format!("`{key}` is a text, not {}", node.sort()),
        Some(text) if text.trim().is_empty() => {
            format!("`{key}` is empty; write a text, or leave the key out")
        }
        Some(text) if text.len() > MAX_ARGUMENT_BYTES => format!(
            "`{key}` is {} bytes long, and may have {MAX_ARGUMENT_BYTES}; put it into the prompt",
            text.len()
        ),
        Some(text) if text.contains('\0') => format!("`{key}` has a zero byte in it; remove it"),
        Some(text) => return Ok(text.to_owned()),
    };
    Err(Error::new(node.at, why))
}

fn switch(key: &str, node: &YamlValue) -> Result<bool, Error> {
    match node.value {
        YamlContent::Bool(value) => Ok(value),
        _ => Err(Error::new(node.at, format!("`{key}` is true or false, not {}", node.sort()))),
    }
}

/// Returns the reader of a whole number from `least` on.
fn count(least: u32) -> impl Fn(&str, &YamlValue) -> Result<u32, Error> {
    move |key, node| {
        let number = node.as_written().and_then(|text| text.parse().ok());
        let wanted = || format!("`{key}` is a whole number from {least} to {}", u32::MAX);
        number.filter(|number| *number >= least).ok_or_else(|| Error::new(node.at, wanted()))
    }
}

// Names of tools that are probably misspelt, and rules without effect. Claude Code accepts all of them silently.

/// The built-in tools of the supported versions.
const TOOLS: [&str; 38] = [
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "LSP",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Write",
];

/// Returns hints on misspelt names of Claude Code's tools, and on rules for tools that are not offered.
pub fn tool_name_hints(options: &TurnOptions, places: &OptionPlaces) -> Vec<Error> {
    let lists = [
        ("tools", &options.tools),
        ("allowed_tools", &options.allowed_tools),
        ("disallowed_tools", &options.disallowed_tools),
    ];
    let all = lists
        .into_iter()
        .flat_map(|(key, list)| list.iter().flatten().map(move |rule| (key, rule.as_str())));
    let hints = all.filter_map(|(key, rule)| {
        let message = misspelt(tool_of(rule))?;
        let at = places.of(key, Some(rule)).unwrap_or(SourcePlace::START);
        Some(Error { at, message })
    });
    hints.chain(idle_rules(options, places)).collect()
}

/// Returns hints on rules for tools that are not offered.
fn idle_rules(options: &TurnOptions, places: &OptionPlaces) -> Vec<Error> {
    let Some(offered) = options.tools.as_ref() else { return Vec::new() };
    let is_offered =
        |name: &str| offered.iter().any(|tool| is_ruled_by(tool, name) || !is_known(tool));
    let hint = |rule: &String| {
        let name = tool_of(rule);
        if !is_known(name) || is_offered(name) {
            return None;
        }
        let at = places.of("allowed_tools", Some(rule)).unwrap_or(SourcePlace::START);
        let message =
            format!("`tools` does not offer `{name}`, so `{rule}` allows nothing; add it there");
        Some(Error { at, message })
    };
    options.allowed_tools.iter().flatten().filter_map(hint).collect()
}

/// Returns whether rules that name a tool hold for another: rules for `Edit` are for all that change files, rules for
/// `Read` for all that read them.
fn is_ruled_by(tool: &str, name: &str) -> bool {
    let group: &[&str] = match name {
        "Edit" => &["MultiEdit", "NotebookEdit", "Write"],
        "Read" => &["Glob", "Grep", "LS", "NotebookRead"],
        _ => &[],
    };
    tool == name || group.contains(&tool)
}

/// Returns why a rule that the starter of a run gave all states allows nothing; `states` are the options of their
/// turns, if all are known.
pub fn idle_rule(rule: &str, states: &[TurnOptions]) -> Option<String> {
    let name = tool_of(rule);
    if let Some(hint) = misspelt(name) {
        return Some(hint);
    }
    let forbids = |options: &TurnOptions| {
        let is_denied = |denied: &String| denied == rule || denied == name;
        let offers = |tool: &String| is_ruled_by(tool, name) || !is_known(tool);
        options.disallowed_tools.iter().flatten().any(is_denied)
            || options
                .tools
                .as_ref()
                .is_some_and(|tools| is_known(name) && !tools.iter().any(offers))
            || options.permission_mode == Some(PermissionMode::Plan)
    };
    let is_idle = !states.is_empty() && states.iter().all(forbids);
    is_idle.then(|| {
        format!(
            "no state may use `{name}`: see their `tools`, `disallowed_tools` and `permission_mode`"
        )
    })
}

fn misspelt(name: &str) -> Option<String> {
    if is_known(name) || name.starts_with("mcp__") {
        return None;
    }
    let is_meant = |known: &&str| name.eq_ignore_ascii_case(known) || is_slip(name, known);
    let similar = TOOLS.into_iter().find(is_meant)?;
    Some(format!("`{name}` is not a known tool of Claude Code; did you mean `{similar}`?"))
}

fn tool_of(rule: &str) -> &str {
    rule.split('(').next().unwrap_or_default().trim()
}

fn is_known(name: &str) -> bool {
    TOOLS.contains(&name)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod model_hint_tests {
    use super::*;

    fn hint(name: &str) -> Option<String> {
        model_hint(&ModelName::parse(name).expect("a name"))
    }

    #[test]
    fn known_aliases_and_full_names_have_no_hint() {
        for name in
            ["opus", "Sonnet", "opus[1m]", "claude-x-9", "us.vendor.x-v1:0", "models/x", "x@1"]
        {
            assert_eq!(hint(name), None, "{name}");
        }
    }

    #[test]
    fn misspelled_or_unknown_alias_gets_hint() {
        let meant = "`sonet` is not a known model alias; did you mean `sonnet`?";
        assert_eq!(hint("sonet").as_deref(), Some(meant));
        assert!(hint("haku[1m]").is_some_and(|hint| hint.ends_with("did you mean `haiku`?")));
        let other = "`gpt` is not a known model alias; raymond passes it to Claude Code unchanged";
        assert_eq!(hint("gpt").as_deref(), Some(other));
    }
}

#[cfg(test)]
mod tool_names_tests {
    use serde_json::json;

    use super::*;

    fn hints(options: serde_json::Value) -> Vec<String> {
        let options = serde_json::from_value(options).expect("options");
        let found = tool_name_hints(&options, &OptionPlaces::default());
        found.into_iter().map(|fault| fault.message).collect()
    }

    #[test]
    fn misspelled_tool_gets_suggestion_and_other_names_do_not() {
        let messages =
            hints(json!({ "tools": ["Raed", "Mine"], "disallowed_tools": ["bash(ls)"] }));
        assert_eq!(
            messages,
            [
                "`Raed` is not a known tool of Claude Code; did you mean `Read`?",
                "`bash` is not a known tool of Claude Code; did you mean `Bash`?",
            ]
        );
        assert!(hints(json!({ "allowed_tools": ["mcp__x__y", "WebFetch"] })).is_empty());
    }

    #[test]
    fn rule_of_starter_is_idle_if_it_is_misspelt_or_no_state_may_use_its_tool() {
        let of = |options: serde_json::Value| serde_json::from_value(options).expect("options");
        let states = |all: &[serde_json::Value]| all.iter().cloned().map(of).collect::<Vec<_>>();
        let idle = |rule: &str, all: &[serde_json::Value]| idle_rule(rule, &states(all)).is_some();
        assert!(idle("Bsh(ls)", &[json!({})]) && idle("webfetch", &[]));
        assert!(!idle("Bash(ls)", &[]) && !idle("mcp__a", &[json!({ "tools": ["mcp__a"] })]));
        let forbidding = [
            json!({ "tools": ["Read"] }),
            json!({ "disallowed_tools": ["Bash"] }),
            json!({ "disallowed_tools": ["Bash(ls)"] }),
            json!({ "permission_mode": "plan" }),
        ];
        assert!(idle("Bash(ls)", &forbidding));
        assert!(!idle("Bash(ls)", &[forbidding[0].clone(), json!({})]));
        assert!(!idle("Bash(ls)", &[json!({ "disallowed_tools": ["Bash(rm)"] })]));
    }

    #[test]
    fn rule_for_tool_not_offered_gets_hint() {
        let messages =
            hints(json!({ "tools": ["Read"], "allowed_tools": ["Bash(ls:*)", "Read(./**)"] }));
        assert_eq!(
            messages,
            ["`tools` does not offer `Bash`, so `Bash(ls:*)` allows nothing; add it there"]
        );
    }
}
