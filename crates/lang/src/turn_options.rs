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
use raymond_model::turn_options::{EnvValue, PermissionMode, SettingSource, TurnOptions};
use strum::VariantArray;

use crate::hint::{closest, is_slip};
use crate::source::SourcePlace;
pub use crate::turn_options::files::embed_files;
use crate::yaml;
use crate::yaml::{YamlContent, YamlEntry, YamlValue};

mod files;

/// The keys, as frontmatter and graphs write them. Programs write `-` in place of `_`.
pub const KEYS: [&str; 24] = [
    "effort",
    "tools",
    "allowed_tools",
    "disallowed_tools",
    "permission_mode",
    "append_system_prompt",
    "system_prompt_file",
    "mcp_config",
    "strict_mcp",
    "settings",
    "setting_sources",
    "agents",
    "add_dirs",
    "plugin_dirs",
    "max_turns",
    "max_thinking_tokens",
    "background",
    "env",
    "fallback_model",
    "startup",
    "on_denied",
    "on_lost_session",
    "permissions",
    "run_command",
];

/// The keys, as programs write them.
pub const DASHED_KEYS: [&str; 24] = [
    "effort",
    "tools",
    "allowed-tools",
    "disallowed-tools",
    "permission-mode",
    "append-system-prompt",
    "system-prompt-file",
    "mcp-config",
    "strict-mcp",
    "settings",
    "setting-sources",
    "agents",
    "add-dirs",
    "plugin-dirs",
    "max-turns",
    "max-thinking-tokens",
    "background",
    "env",
    "fallback-model",
    "startup",
    "on-denied",
    "on-lost-session",
    "permissions",
    "run-command",
];

/// A mistake in an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionFault {
    /// Its place in the file.
    pub at: SourcePlace,
    /// The mistake and its fix.
    pub message: String,
}

impl From<OptionFault> for yaml::Error {
    fn from(OptionFault { at, message }: OptionFault) -> Self {
        Self::at(at, message)
    }
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
            self.0.iter().find(|(own, value, _)| own == key && value.as_deref() == text)
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
            let names = entries.iter();
            self.0.extend(names.map(|one| (key.to_owned(), Some(one.key.to_string()), one.at)));
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
    pub faults: Vec<OptionFault>,
}

impl WrittenOptions {
    /// Reads the options of a file. A value that is not a mapping has no options; the caller reports that mistake.
    pub(crate) fn of(root: &YamlValue) -> Self {
        match &root.value {
            YamlContent::Map(entries) => Self::read(entries),
            YamlContent::Null
            | YamlContent::Bool(_)
            | YamlContent::Number(_)
            | YamlContent::Text(_)
            | YamlContent::List(_) => Self::default(),
        }
    }

    /// Reads the options among the entries of a mapping, and ignores other entries.
    pub(crate) fn read(entries: &[YamlEntry]) -> Self {
        let mut written = Self::default();
        for entry in entries {
            let key = canonical(&entry.key);
            if KEYS.contains(&key) {
                written.places.note(key, &entry.value);
                written.read_value(key, &entry.value);
            }
        }
        written
    }

    /// Reads the value of one key.
    fn read_value(&mut self, key: &str, node: &YamlValue) {
        let Self { options, faults, .. } = self;
        let mut keep = |fault: Result<(), OptionFault>| faults.extend(fault.err());
        match key {
            "effort" => {
                keep(named(key, node, &names(), &mut options.effort));
            }
            "permission_mode" => {
                keep(named(key, node, &PermissionMode::NAMES, &mut options.permission_mode));
            }
            "background" => {
                keep(named(key, node, &names(), &mut options.background));
            }
            "on_denied" => keep(named(key, node, &names(), &mut options.on_denied)),
            "on_lost_session" => {
                keep(named(key, node, &names(), &mut options.on_lost_session));
            }
            "permissions" => {
                keep(named(key, node, &names(), &mut options.permissions));
            }
            "startup" => keep(named(key, node, &names(), &mut options.startup)),
            "append_system_prompt" => {
                keep(prompt(key, node, &mut options.append_system_prompt));
            }
            "strict_mcp" => keep(switch(key, node, &mut options.strict_mcp)),
            "run_command" => keep(switch(key, node, &mut options.run_command)),
            "max_turns" => keep(count(key, node, 1, &mut options.max_turns)),
            "max_thinking_tokens" => {
                keep(count(key, node, 0, &mut options.max_thinking_tokens));
            }
            "settings" => keep(files::config(key, node, &mut options.settings)),
            "agents" => keep(files::config(key, node, &mut options.agents)),
            "mcp_config" => keep(files::configs(key, node, &mut options.mcp_config)),
            "system_prompt_file" => keep(files::path(key, node, &mut options.system_prompt_file)),
            "tools" => keep(each(key, node, tool, &mut options.tools)),
            "allowed_tools" => {
                keep(each(key, node, tool_rule, &mut options.allowed_tools));
            }
            "disallowed_tools" => {
                keep(each(key, node, tool_rule, &mut options.disallowed_tools));
            }
            "setting_sources" => {
                let source =
                    |text: &str| by_name("setting_sources", text, &names::<SettingSource>());
                keep(each(key, node, source, &mut options.setting_sources));
            }
            "add_dirs" => keep(each(key, node, files::inside, &mut options.add_dirs)),
            "plugin_dirs" => keep(each(key, node, files::inside, &mut options.plugin_dirs)),
            "fallback_model" => {
                keep(each(key, node, super::manifest::model, &mut options.fallback_model));
            }
            "env" => keep(environment(node, &mut options.env)),
            _ => {}
        }
    }
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

/// Reads a list, or a single text that stands for a list of one.
fn each<T>(
    key: &str,
    node: &YamlValue,
    read: impl Fn(&str) -> Result<T, String>,
    into: &mut Option<Vec<T>>,
) -> Result<(), OptionFault> {
    let one = |node: &YamlValue| {
        let text = scalar(node).ok_or_else(|| {
            fault(node, format!("`{key}` is a list of texts, and this is {}", node.sort()))
        })?;
        read(&text).map_err(|why| fault(node, why))
    };
    let list = match &node.value {
        YamlContent::List(list) => list.iter().map(one).collect::<Result<Vec<_>, _>>()?,
        YamlContent::Text(text) if outer_parts(&text.text).len() > 1 => {
            let parts = outer_parts(&text.text);
            let parts: Vec<&str> =
                parts.into_iter().map(str::trim).filter(|p| !p.is_empty()).collect();
            // Only a text of a YAML file has a range there; this one is from a program.
            let list = if text.range.is_empty() {
                format!("(\"{}\")", parts.join("\" \""))
            } else {
                format!("[{}]", parts.join(", "))
            };
            return Err(fault(node, format!("`{key}` is a list; write {list}")));
        }
        _ => vec![one(node)?],
    };
    *into = Some(list);
    Ok(())
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
    let is_one_use = |rest: &str| rest.len() > 1 && rest.find(['(', ')']) == Some(rest.len() - 1);
    let closes = rest.is_none_or(is_one_use);
    if tool(name).is_err() || !closes || text.chars().any(char::is_control) {
        return Err(format!(
            "`{}` is not a rule; write a tool, such as WebFetch, or a tool and what it is used for without further brackets, such as Bash(cargo test:*)",
            text.escape_debug()
        ));
    }
    Ok(text.to_owned())
}

/// Reads the environment: a list of names to pass, or a mapping of names to values.
fn environment(
    node: &YamlValue,
    into: &mut Option<BTreeMap<String, EnvValue>>,
) -> Result<(), OptionFault> {
    let mut env = BTreeMap::new();
    add_variables(node, &mut env)?;
    *into = Some(env);
    Ok(())
}

fn add_variables(
    node: &YamlValue,
    env: &mut BTreeMap<String, EnvValue>,
) -> Result<(), OptionFault> {
    match &node.value {
        YamlContent::List(list) => return list.iter().try_for_each(|one| add_variables(one, env)),
        YamlContent::Map(entries) => {
            for entry in entries.iter() {
                let name = variable(&entry.key).map_err(|why| fault(&entry.value, why))?;
                let value = match (&entry.value.value, scalar(&entry.value)) {
                    (YamlContent::Null, _) => EnvValue::Pass,
                    (_, Some(text)) if !text.contains('\0') => EnvValue::Set(text),
                    _ => {
                        let message =
                            format!("the value of `{name}` is a text; put quotes around it");
                        return Err(fault(&entry.value, message));
                    }
                };
                env.insert(name, value);
            }
        }
        _ => {
            let name = scalar(node).ok_or_else(|| {
                fault(node, "`env` is a list of names to pass, or a mapping NAME: value")
            })?;
            let name = variable(&name).map_err(|why| fault(node, why))?;
            env.insert(name, EnvValue::Pass);
        }
    }
    Ok(())
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

fn fault(node: &YamlValue, message: impl Into<String>) -> OptionFault {
    OptionFault { at: node.at, message: message.into() }
}

/// Returns the text of a scalar as it is written: numbers and booleans are texts here, too.
fn scalar(node: &YamlValue) -> Option<String> {
    node.as_written().map(str::to_owned)
}

/// Returns the values of a kind, with their names.
fn names<T: VariantArray + Copy + Into<&'static str>>() -> Vec<(&'static str, T)> {
    T::VARIANTS.iter().map(|&value| (value.into(), value)).collect()
}

/// Reads a value that has a name.
fn by_name<T: Copy>(key: &str, name: &str, names: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, value)) = names.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let known = || names.iter().map(|(known, _)| *known);
    let meant = closest(name, known()).map(|meant| format!("did you mean `{meant}`?"));
    let meant = meant.unwrap_or_else(|| {
        let all: Vec<&str> = known().collect();
        format!("use {}", all.join(", "))
    });
    Err(format!("unknown value `{name}` of `{key}`; {meant}"))
}

fn named<T: Copy>(
    key: &str,
    node: &YamlValue,
    names: &[(&str, T)],
    into: &mut Option<T>,
) -> Result<(), OptionFault> {
    let all = || names.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
    let text = scalar(node)
        .ok_or_else(|| fault(node, format!("`{key}` is one of {}, not {}", all(), node.sort())))?;
    *into = Some(by_name(key, &text, names).map_err(|why| fault(node, why))?);
    Ok(())
}

/// Reads a text of a system prompt.
fn prompt(key: &str, node: &YamlValue, into: &mut Option<String>) -> Result<(), OptionFault> {
    let text = scalar(node);
    let text =
        text.ok_or_else(|| fault(node, format!("`{key}` is a text, not {}", node.sort())))?;
    if text.trim().is_empty() {
        return Err(fault(node, format!("`{key}` is empty; write a text, or leave the key out")));
    }
    if text.len() > MAX_ARGUMENT_BYTES {
        let message = format!(
            "`{key}` is {} bytes long, and may have {MAX_ARGUMENT_BYTES}; put it into the prompt",
            text.len()
        );
        return Err(fault(node, message));
    }
    if text.contains('\0') {
        return Err(fault(node, format!("`{key}` has a zero byte in it; remove it")));
    }
    *into = Some(text);
    Ok(())
}

fn switch(key: &str, node: &YamlValue, into: &mut Option<bool>) -> Result<(), OptionFault> {
    let YamlContent::Bool(value) = node.value else {
        return Err(fault(node, format!("`{key}` is true or false, not {}", node.sort())));
    };
    *into = Some(value);
    Ok(())
}

fn count(
    key: &str,
    node: &YamlValue,
    least: u32,
    into: &mut Option<u32>,
) -> Result<(), OptionFault> {
    let number = scalar(node).and_then(|text| text.parse().ok());
    let number = number.filter(|number| *number >= least);
    let wanted = || format!("`{key}` is a whole number from {least} to {}", u32::MAX);
    *into = Some(number.ok_or_else(|| fault(node, wanted()))?);
    Ok(())
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
pub fn tool_name_hints(options: &TurnOptions, places: &OptionPlaces) -> Vec<OptionFault> {
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
        Some(OptionFault { at, message })
    });
    hints.chain(idle_rules(options, places)).collect()
}

/// Returns hints on rules for tools that are not offered.
fn idle_rules(options: &TurnOptions, places: &OptionPlaces) -> Vec<OptionFault> {
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
        Some(OptionFault { at, message })
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
        let told = hints(json!({ "tools": ["Raed", "Mine"], "disallowed_tools": ["bash(ls)"] }));
        assert_eq!(
            told,
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
        let told =
            hints(json!({ "tools": ["Read"], "allowed_tools": ["Bash(ls:*)", "Read(./**)"] }));
        assert_eq!(
            told,
            ["`tools` does not offer `Bash`, so `Bash(ls:*)` allows nothing; add it there"]
        );
    }
}
