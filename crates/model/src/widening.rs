//! Decides which options of a turn exceed the permissions that the run's starter gave.
//!
//! A state may narrow its permissions freely. It may widen them only as far as the starter said so:
//! by a permission mode, by rules with `--allow-tool`, or by `--trust`. Everything else is
//! refused before the turn starts. The decision is the same before a run and before a turn.
//!
//! These options widen: a permission mode above the run's; a rule that lets a tool run unasked which can change or
//! reach more than the working directory; settings, sub-agents and servers that bring rules, hooks or programs of
//! their own; the user's settings left out, because they may deny something; and variables that change which program
//! runs or what it talks to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::permission::RunPermission;
use super::settings::Settings;
use super::turn_options::{ConfigSource, EnvValue, PermissionMode, SettingSource, TurnOptions};

mod flags;
mod rules;
mod variables;

use flags::{ReplaceableFlag, mode_among};
use rules::is_harmless;
pub use rules::{is_covered, is_single_command, split_rules, without_granted_rules};
use variables::is_dangerous;

/// The permissions of a run that no state may exceed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionCeiling {
    mode: RunPermission,
    tools: Vec<String>,
    trusts_workflow: bool,
    /// Flags for Claude Code that the run was started with and a state could replace.
    given_flags: Vec<ReplaceableFlag>,
    /// The environment variables that the starter has, if they are known.
    inherited: Option<BTreeSet<String>>,
}

/// An option that asks for more than the starter allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionWidening {
    /// The key.
    pub key: &'static str,
    /// The part of its value that widens, if it is not the whole.
    pub part: Option<String>,
    /// The reason, and what to type to allow it.
    pub message: String,
}

impl PermissionCeiling {
    /// Returns the permissions that a run's settings leave to its states.
    pub fn of(settings: &Settings) -> Self {
        if !settings.answerer.calls_model() {
            // No Claude Code is started, so there is nothing to limit.
            return Self {
                mode: RunPermission::SkipAll,
                tools: Vec::new(),
                trusts_workflow: true,
                given_flags: Vec::new(),
                inherited: None,
            };
        }
        let consent = &settings.consent;
        let mode = consent.widest_mode.as_ref().unwrap_or(&settings.permission);
        let given = mode_among(&settings.claude_args);
        let mut tools: Vec<String> = consent.rules().cloned().collect();
        tools.extend(rules::granted_by(&settings.claude_args));
        Self {
            mode: given.unwrap_or_else(|| mode.clone()),
            tools,
            trusts_workflow: consent.trusts_workflow,
            given_flags: ReplaceableFlag::given(&settings.claude_args),
            inherited: None,
        }
    }

    /// Returns the permissions of a state whose file has changed since the run began: none beyond the mode.
    pub fn without_consent(&self) -> Self {
        Self { tools: Vec::new(), trusts_workflow: false, ..self.clone() }
    }

    /// Adds the environment variables that the starter has: no others can be passed to a process.
    pub fn with_inherited(self, names: BTreeSet<String>) -> Self {
        Self { inherited: Some(names), ..self }
    }

    /// Returns the options that widen, in the order of the keys.
    pub fn widenings(&self, options: &TurnOptions) -> Vec<OptionWidening> {
        judge_all(options);
        let mut found = self.unset_variables(options);
        if self.allows_all() {
            return found;
        }
        found.extend(options.permission_mode.and_then(|mode| self.mode_above(mode)));
        let rules = options.allowed_tools.iter().flatten();
        if !self.trusts_workflow {
            found.extend(rules.filter_map(|rule| self.rule_beyond(rule, options)));
            found.extend(config_beyond(options));
            found.extend(environment_beyond(options));
            found.extend(self.replaced_flags(options));
        }
        found
    }

    fn allows_all(&self) -> bool {
        match &self.mode {
            RunPermission::SkipAll => true,
            RunPermission::Mode(name) => {
                PermissionMode::from_name(name) == Some(PermissionMode::BypassPermissions)
            }
        }
    }

    /// Returns the variables that are to be passed, and that the starter does not have.
    fn unset_variables(&self, options: &TurnOptions) -> Vec<OptionWidening> {
        let Some(inherited) = &self.inherited else { return Vec::new() };
        let passed = options.env.iter().flatten().filter(|(_, value)| **value == EnvValue::Pass);
        let unset = passed.filter(|(name, _)| !inherited.contains(*name));
        let widening = |(name, _): (&String, _)| OptionWidening {
            key: "env",
            part: Some(name.clone()),
            message: format!("`{name}` is not set where raymond was started; set it there first"),
        };
        unset.map(widening).collect()
    }

    /// Returns the keys whose flags would replace flags that the run was started with.
    fn replaced_flags(&self, options: &TurnOptions) -> Vec<OptionWidening> {
        let replaced = self.given_flags.iter().filter(|flag| flag.is_set_by(options));
        let widening = |flag: &ReplaceableFlag| OptionWidening {
            key: flag.key(),
            part: None,
            message: format!(
                "the run was started with {}, which this would replace; allow it with --trust",
                flag.name()
            ),
        };
        replaced.map(widening).collect()
    }

    fn mode_above(&self, mode: PermissionMode) -> Option<OptionWidening> {
        let widest = match &self.mode {
            RunPermission::SkipAll => return None,
            RunPermission::Mode(name) => name,
        };
        let rank = PermissionMode::from_name(widest).map_or(0, PermissionMode::rank);
        if mode.rank() <= rank {
            return None;
        }
        let name = mode.name();
        let advice = if mode == PermissionMode::BypassPermissions {
            "it takes --dangerously-skip-permissions".to_owned()
        } else {
            format!("allow it with --permission-mode {name}")
        };
        let message = format!(
            "`{name}` lets more run unasked than the run's permission mode, {widest}; {advice}"
        );
        Some(OptionWidening { key: "permission_mode", part: Some(name.to_owned()), message })
    }

    fn rule_beyond(&self, rule: &str, options: &TurnOptions) -> Option<OptionWidening> {
        let edits = match &self.mode {
            RunPermission::SkipAll => true,
            RunPermission::Mode(name) => PermissionMode::from_name(name)
                .is_some_and(|mode| mode.rank() >= PermissionMode::AcceptEdits.rank()),
        };
        let own = options.permission_mode.is_none_or(|mode| mode != PermissionMode::Plan);
        if is_harmless(rule, edits && own) || self.tools.iter().any(|given| is_covered(rule, given))
        {
            return None;
        }
        let narrower = rules::within_directory(rule, edits && own)
            .map(|narrower| format!("write `{narrower}` for the working directory, or "));
        let message = format!(
            "`{rule}` would run unasked, which the run was not started with; {}allow it with --allow-tool '{rule}'",
            narrower.unwrap_or_default()
        );
        Some(OptionWidening { key: "allowed_tools", part: Some(rule.to_owned()), message })
    }
}

/// Lists all options, so that a new one does not compile before somebody has said whether it widens.
fn judge_all(options: &TurnOptions) {
    let TurnOptions {
        // Judged by a function of its own, or in `config_beyond`.
        permission_mode: _,
        allowed_tools: _,
        env: _,
        mcp_config: _,
        settings: _,
        setting_sources: _,
        agents: _,
        add_dirs: _,
        plugin_dirs: _,
        // Narrows. It widens only if it replaces a flag of the starter's: see `ReplaceableFlag`.
        tools: _,
        disallowed_tools: _,
        strict_mcp: _,
        // Text, effort, counts and models: no permission.
        effort: _,
        append_system_prompt: _,
        system_prompt_file: _,
        max_turns: _,
        max_thinking_tokens: _,
        fallback_model: _,
        background: _,
        on_denied: _,
        on_lost_session: _,
        // Runs a command that is installed for the user or in the working directory, with the permissions of the turn.
        run_command: _,
        // Calls run only after a person or a plug-in has allowed them.
        permissions: _,
        // Leaves out hooks only with trust, and offers no tools that the starter did not: see `startup_flags`.
        startup: _,
    } = options;
}

/// Returns the permissions that processes of a run start with.
pub fn effective_permission(settings: &Settings) -> RunPermission {
    mode_among(&settings.claude_args).unwrap_or_else(|| settings.permission.clone())
}

/// Keys of settings that neither allow anything nor run anything.
const HARMLESS_SETTINGS: [&str; 10] = [
    "$schema",
    "alwaysThinkingEnabled",
    "attribution",
    "autoCompactEnabled",
    "effortLevel",
    "fallbackModel",
    "includeCoAuthoredBy",
    "language",
    "model",
    "outputStyle",
];

/// Keys of a sub-agent that neither allow anything nor run anything.
const HARMLESS_AGENT_KEYS: [&str; 9] = [
    "background",
    "color",
    "description",
    "disallowedTools",
    "effort",
    "maxTurns",
    "model",
    "prompt",
    "tools",
];

/// Returns the configurations of an option set that widen.
fn config_beyond(options: &TurnOptions) -> Vec<OptionWidening> {
    let mut found = Vec::new();
    let mut add = |key: &'static str, part: Option<&str>, what: &str| {
        let message = format!("{what}; allow it with --trust");
        found.push(OptionWidening { key, part: part.map(str::to_owned), message });
    };
    for server in options.mcp_config.iter().flatten() {
        match server {
            ConfigSource::File(path) => add("mcp_config", Some(path), "it starts servers"),
            ConfigSource::Inline(map) if has_servers(map) => {
                add("mcp_config", None, "it starts servers");
            }
            ConfigSource::Inline(_) => {}
        }
    }
    match &options.settings {
        Some(ConfigSource::File(path)) => add("settings", Some(path), "it may allow more"),
        Some(ConfigSource::Inline(map)) => {
            if let Some(key) = map.iter().find(|(key, value)| !is_harmless_setting(key, value)) {
                let what = format!("the settings `{}` may allow or run more", key.0);
                add("settings", Some(key.0), &what);
            }
        }
        None => {}
    }
    let sources = options.setting_sources.as_ref();
    let all = [SettingSource::User, SettingSource::Project, SettingSource::Local];
    if sources.is_some_and(|sources| all.iter().any(|source| !sources.contains(source))) {
        let what = "it leaves out settings, and with them what they deny";
        add("setting_sources", None, what);
    }
    match &options.agents {
        Some(ConfigSource::File(path)) => add("agents", Some(path), "they may allow more"),
        Some(ConfigSource::Inline(agents)) => {
            if let Some((name, key)) = agents.iter().find_map(|(name, agent)| {
                let Value::Object(agent) = agent else { return None };
                let key = agent.keys().find(|key| !HARMLESS_AGENT_KEYS.contains(&key.as_str()))?;
                Some((name, key))
            }) {
                let what = format!("the agent `{name}` has `{key}`, which may allow or run more");
                add("agents", Some(name), &what);
            }
        }
        None => {}
    }
    for path in options.add_dirs.iter().flatten() {
        let what = format!("files in `{path}` are edited unasked, and its skills may run more");
        add("add_dirs", Some(path), &what);
    }
    for path in options.plugin_dirs.iter().flatten() {
        add("plugin_dirs", Some(path), &format!("the plug-in `{path}` may allow or run more"));
    }
    found
}

fn has_servers(map: &Map<String, Value>) -> bool {
    map.values().any(|value| value.as_object().is_none_or(|servers| !servers.is_empty()))
}

/// Returns whether a setting only narrows, or has nothing to do with permissions.
fn is_harmless_setting(key: &str, value: &Value) -> bool {
    let narrows = |value: &Value| {
        let keys = value.as_object().map(|map| map.keys());
        keys.is_some_and(|mut keys| keys.all(|key| key == "deny" || key == "ask"))
    };
    HARMLESS_SETTINGS.contains(&key) || (key == "permissions" && narrows(value))
}

fn environment_beyond(options: &TurnOptions) -> Vec<OptionWidening> {
    let set = options.env.iter().flatten().filter(|(_, value)| **value != EnvValue::Pass);
    let dangerous = set.filter(|(name, _)| is_dangerous(name));
    dangerous
        .map(|(name, _)| OptionWidening {
            key: "env",
            part: Some(name.clone()),
            message: format!(
                "`{name}` can change which program runs or what it talks to; pass the starter's own with `env: [{name}]`, or allow it with --trust"
            ),
        })
        .collect()
}

#[cfg(test)]
mod tests;
