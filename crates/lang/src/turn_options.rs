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
//! A value is read from a tree that knows its places, so each language only has to build one. Mistakes are
//! collected; one is never fatal for the rest.
//!
//! Hints about the names of models: a slip in an alias is found before a run is paid for.
//!
//! A name that is not known here is no error, because Claude Code decides which models there are.

use crate::hint::closest;
use crate::position::SourcePlace;
pub use crate::turn_options::files::embed_files;
pub use crate::turn_options::lists::rule as tool_rule;
pub use crate::turn_options::tool_names::{idle_rule, tool_name_hints};
use crate::yaml;
use crate::yaml::content::{YamlContent, YamlEntry, YamlValue};
use raymond_model::model::ModelName;
use raymond_model::turn_options::{PermissionMode, SettingSource, TurnOptions};

mod files;
mod lists;
mod tool_names;

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
    /// The options.
    pub options: TurnOptions,
    /// The places of the options.
    pub places: OptionPlaces,
    /// The mistakes in them.
    pub faults: Vec<OptionFault>,
}

impl WrittenOptions {
    /// Reads the options of a file. A value that is no mapping has no options; the caller reports that mistake.
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
                keep(lists::named(key, node, &lists::names(), &mut options.effort));
            }
            "permission_mode" => {
                keep(lists::named(key, node, &PermissionMode::NAMES, &mut options.permission_mode));
            }
            "background" => {
                keep(lists::named(key, node, &lists::names(), &mut options.background));
            }
            "on_denied" => keep(lists::named(key, node, &lists::names(), &mut options.on_denied)),
            "on_lost_session" => {
                keep(lists::named(key, node, &lists::names(), &mut options.on_lost_session));
            }
            "permissions" => {
                keep(lists::named(key, node, &lists::names(), &mut options.permissions));
            }
            "startup" => keep(lists::named(key, node, &lists::names(), &mut options.startup)),
            "append_system_prompt" => {
                keep(lists::prompt(key, node, &mut options.append_system_prompt));
            }
            "strict_mcp" => keep(lists::switch(key, node, &mut options.strict_mcp)),
            "run_command" => keep(lists::switch(key, node, &mut options.run_command)),
            "max_turns" => keep(lists::count(key, node, 1, &mut options.max_turns)),
            "max_thinking_tokens" => {
                keep(lists::count(key, node, 0, &mut options.max_thinking_tokens));
            }
            "settings" => keep(files::config(key, node, &mut options.settings)),
            "agents" => keep(files::config(key, node, &mut options.agents)),
            "mcp_config" => keep(files::configs(key, node, &mut options.mcp_config)),
            "system_prompt_file" => keep(files::path(key, node, &mut options.system_prompt_file)),
            "tools" => keep(lists::each(key, node, lists::tool, &mut options.tools)),
            "allowed_tools" => {
                keep(lists::each(key, node, lists::rule, &mut options.allowed_tools));
            }
            "disallowed_tools" => {
                keep(lists::each(key, node, lists::rule, &mut options.disallowed_tools));
            }
            "setting_sources" => {
                let source = |text: &str| {
                    lists::by_name("setting_sources", text, &lists::names::<SettingSource>())
                };
                keep(lists::each(key, node, source, &mut options.setting_sources));
            }
            "add_dirs" => keep(lists::each(key, node, files::inside, &mut options.add_dirs)),
            "plugin_dirs" => keep(lists::each(key, node, files::inside, &mut options.plugin_dirs)),
            "fallback_model" => {
                keep(lists::each(key, node, super::manifest::model, &mut options.fallback_model));
            }
            "env" => keep(lists::environment(node, &mut options.env)),
            _ => {}
        }
    }
}

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
