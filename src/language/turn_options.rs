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

mod files;
mod lists;
mod tool_names;
mod values;

use super::position::SourcePlace;
use super::yaml;
use super::yaml::content::{YamlContent, YamlEntry, YamlValue};
use crate::domain::turn_options::{PermissionMode, SettingSource, TurnOptions};

pub use self::files::embed_files;
pub use self::lists::rule as tool_rule;
pub use self::tool_names::{idle_rule, tool_name_hints};

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
    pub(in crate::language) fn of(root: &YamlValue) -> Self {
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
    pub(in crate::language) fn read(entries: &[YamlEntry]) -> Self {
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
                keep(values::named(key, node, &values::names(), &mut options.effort));
            }
            "permission_mode" => {
                keep(values::named(
                    key,
                    node,
                    &PermissionMode::NAMES,
                    &mut options.permission_mode,
                ));
            }
            "background" => {
                keep(values::named(key, node, &values::names(), &mut options.background));
            }
            "on_denied" => keep(values::named(key, node, &values::names(), &mut options.on_denied)),
            "on_lost_session" => {
                keep(values::named(key, node, &values::names(), &mut options.on_lost_session));
            }
            "permissions" => {
                keep(values::named(key, node, &values::names(), &mut options.permissions));
            }
            "startup" => keep(values::named(key, node, &values::names(), &mut options.startup)),
            "append_system_prompt" => {
                keep(values::prompt(key, node, &mut options.append_system_prompt));
            }
            "strict_mcp" => keep(values::switch(key, node, &mut options.strict_mcp)),
            "run_command" => keep(values::switch(key, node, &mut options.run_command)),
            "max_turns" => keep(values::count(key, node, 1, &mut options.max_turns)),
            "max_thinking_tokens" => {
                keep(values::count(key, node, 0, &mut options.max_thinking_tokens));
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
                    values::by_name("setting_sources", text, &values::names::<SettingSource>())
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

#[cfg(test)]
mod tests;
