//! Decides which options of a turn exceed the permissions that the run's starter gave.
//!
//! A state may narrow its permissions freely. It may widen them only as far as the starter said so:
//! by a permission mode, by rules with `--allow-tool`, or by `--trust`. Everything else is
//! refused before the turn starts. The decision is the same before a run and before a turn.
//!
//! These options widen: a permission mode above the run's; a rule that lets a tool run unasked which can change or
//! reach more than the working directory; settings, sub-agents and servers that bring their own rules, hooks or
//! programs; the user's settings left out, because they may deny something; and variables that change which program
//! runs or what it talks to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use strum::VariantArray;

use super::privilege::RunPermission;
use super::settings::Settings;
use super::turn_options::{ConfigSource, EnvValue, PermissionMode, SettingSource, TurnOptions};

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
        tools.extend(granted_by(&settings.claude_args));
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
        let may_edit = options.permission_mode.is_none_or(|mode| mode != PermissionMode::Plan);
        if is_harmless(rule, edits && may_edit)
            || self.tools.iter().any(|given| is_covered(rule, given))
        {
            return None;
        }
        let narrower = within_directory(rule, edits && may_edit)
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
        // Judged by a separate function, or in `config_beyond`.
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

// Arguments for Claude Code that a run was started with, as far as they bear on permissions.

/// A flag for Claude Code whose last value counts: a state's option replaces the value that the run was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
enum ReplaceableFlag {
    Agents,
    SettingSources,
    Settings,
    Tools,
}

impl ReplaceableFlag {
    /// Returns the flags that arguments for Claude Code set.
    fn given(arguments: &[String]) -> Vec<Self> {
        let is_given = |flag: &Self| {
            let given = |argument: &String| argument.split('=').next() == Some(flag.name());
            arguments.iter().any(given)
        };
        Self::VARIANTS.iter().copied().filter(is_given).collect()
    }

    /// Returns the flag as it is written.
    fn name(self) -> &'static str {
        match self {
            Self::Agents => "--agents",
            Self::SettingSources => "--setting-sources",
            Self::Settings => "--settings",
            Self::Tools => "--tools",
        }
    }

    /// Returns the key of a state that sets it.
    fn key(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::SettingSources => "setting_sources",
            Self::Settings => "settings",
            Self::Tools => "tools",
        }
    }

    /// Returns whether options of a state set it.
    fn is_set_by(self, options: &TurnOptions) -> bool {
        match self {
            Self::Agents => options.agents.is_some(),
            Self::SettingSources => options.setting_sources.is_some(),
            Self::Settings => options.settings.is_some(),
            Self::Tools => options.tools.is_some(),
        }
    }
}

/// Returns the permission mode that arguments for Claude Code set, if they do.
fn mode_among(arguments: &[String]) -> Option<RunPermission> {
    let mut mode = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--dangerously-skip-permissions" {
            return Some(RunPermission::SkipAll);
        }
        if argument == "--permission-mode" {
            mode = rest.next().cloned();
        } else if let Some(name) = argument.strip_prefix("--permission-mode=") {
            mode = Some(name.to_owned());
        }
    }
    mode.map(RunPermission::Mode)
}

// Rules for tools: which of them allow no more than is allowed anyway, and which cover others.

/// Tools that touch nothing outside of the session.
const INNER_TOOLS: [&str; 9] = [
    "Agent",
    "ExitPlanMode",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
];

/// Tools that read, within the paths they are given.
const READING_TOOLS: [&str; 4] = ["Glob", "Grep", "LS", "Read"];

/// Tools that change files, within the paths they are given.
const EDITING_TOOLS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Characters that can join a command to another, in a shell.
const JOINING: [char; 12] = [';', '&', '|', '<', '>', '$', '`', '\n', '(', ')', '{', '}'];

/// A rule taken apart.
struct RuleParts<'rule> {
    tool: &'rule str,
    /// The part in brackets.
    use_of: Option<&'rule str>,
}

impl<'rule> RuleParts<'rule> {
    fn of(rule: &'rule str) -> Self {
        match rule.split_once('(') {
            Some((tool, rest)) => {
                Self { tool, use_of: Some(rest.strip_suffix(')').unwrap_or(rest)) }
            }
            None => Self { tool: rule, use_of: None },
        }
    }
}

/// Returns whether a rule allows no more than runs unasked anyway. `edits` is true if edits in the working directory
/// run unasked.
fn is_harmless(rule: &str, edits: bool) -> bool {
    let RuleParts { tool, use_of } = RuleParts::of(rule);
    if use_of.is_some_and(|use_of| use_of.contains(['(', ')', ','])) || tool.contains([' ', ',']) {
        // Claude Code may take it for several rules.
        return false;
    }
    if INNER_TOOLS.contains(&tool) {
        return true;
    }
    let changes = EDITING_TOOLS.contains(&tool);
    if !READING_TOOLS.contains(&tool) && !changes {
        return false;
    }
    use_of.is_some_and(is_inside) && (edits || !changes)
}

/// Returns the rule for the same tool that stays in the working directory, if a rule for all its uses has one.
fn within_directory(rule: &str, edits: bool) -> Option<String> {
    let narrower = format!("{rule}(./**)");
    is_harmless(&narrower, edits).then_some(narrower).filter(|_| !INNER_TOOLS.contains(&rule))
}

/// Returns whether a path pattern stays below the working directory.
fn is_inside(pattern: &str) -> bool {
    let leaves =
        pattern.starts_with(['/', '~']) || pattern.split(['/', '\\']).any(|part| part == "..");
    !leaves && !pattern.is_empty()
}

/// Returns whether a `given` rule covers another rule: it is the same, it allows any use of the same tool, or its
/// command begins with the same words.
pub fn is_covered(rule: &str, given: &str) -> bool {
    if rule == given {
        return true;
    }
    let (wanted, given) = (RuleParts::of(rule), RuleParts::of(given));
    if wanted.use_of.is_some_and(|use_of| use_of.contains(['(', ')'])) && wanted.tool != "Bash" {
        // Claude Code reads what stands behind the first bracket that closes as further rules.
        return false;
    }
    let Some(given_use) = given.use_of else {
        let of_server =
            wanted.tool.strip_prefix(given.tool).is_some_and(|rest| rest.starts_with("__"));
        return wanted.tool == given.tool || (given.tool.starts_with("mcp__") && of_server);
    };
    let (Some(wanted_use), "Bash", "Bash") = (wanted.use_of, wanted.tool, given.tool) else {
        return false;
    };
    let Some(given_prefix) = prefix(given_use) else { return false };
    let command = prefix(wanted_use).unwrap_or(wanted_use);
    let rest = command.strip_prefix(given_prefix);
    rest.is_some_and(|rest| {
        (rest.is_empty() || rest.starts_with(' ')) && !rest.contains(JOINING) && !rest.contains('*')
    })
}

/// Returns whether a command is a single one, which the shell neither joins to another nor expands.
pub fn is_single_command(command: &str) -> bool {
    !command.contains(JOINING)
}

/// Returns the words that a command has to begin with: `cargo` of `cargo:*` and of `cargo *`.
fn prefix(use_of: &str) -> Option<&str> {
    let prefix = use_of.strip_suffix(":*").or_else(|| use_of.strip_suffix(" *"))?;
    (!prefix.is_empty() && !prefix.contains('*')).then_some(prefix)
}

/// Returns the rules that arguments for Claude Code give to every turn.
fn granted_by(arguments: &[String]) -> Vec<String> {
    without_granted_rules(arguments).1
}

/// Splits arguments for Claude Code into those that allow no tools, and the rules of the others.
pub fn without_granted_rules(arguments: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut others, mut rules) = (Vec::new(), Vec::new());
    let mut is_list = false;
    for argument in arguments {
        let value = ["--allowedTools=", "--allowed-tools="]
            .iter()
            .find_map(|flag| argument.strip_prefix(flag));
        if let Some(value) = value {
            rules.extend(split_rules(value));
            is_list = false;
        } else if argument == "--allowedTools" || argument == "--allowed-tools" {
            is_list = true;
        } else if is_list && !argument.starts_with('-') {
            rules.extend(split_rules(argument));
        } else {
            is_list = false;
            others.push(argument.clone());
        }
    }
    (others, rules)
}

/// Splits a list of rules at commas and spaces that stand outside of brackets. As for Claude Code, the first bracket
/// that closes ends a rule.
pub fn split_rules(list: &str) -> Vec<String> {
    let mut is_inside = false;
    let parts = list.split(|c: char| {
        match c {
            '(' => is_inside = true,
            ')' => is_inside = false,
            _ => {}
        }
        !is_inside && (c == ',' || c == ' ')
    });
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

// Environment variables that change which program runs or what it talks to.

/// Names that are dangerous as they stand.
const NAMES: [&str; 57] = [
    "ALL_PROXY",
    "AR",
    "AS",
    "BASH_ENV",
    "BETA_TRACING_ENDPOINT",
    "BROWSER",
    "CC",
    "CDPATH",
    "CPP",
    "CXX",
    "EDITOR",
    "ENV",
    "FTP_PROXY",
    "GCONV_PATH",
    "GNUMAKEFLAGS",
    "GNUPGHOME",
    "GOBIN",
    "GOENV",
    "GOEXPERIMENT",
    "GOFLAGS",
    "GOINSECURE",
    "GONOSUMDB",
    "GOPATH",
    "GOPRIVATE",
    "GOPROXY",
    "GOROOT",
    "GOSUMDB",
    "GOTOOLCHAIN",
    "GRADLE_OPTS",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "IS_SANDBOX",
    "JDK_JAVA_OPTIONS",
    "LD",
    "LESS",
    "LESSOPEN",
    "MAKEFILES",
    "MAKEFLAGS",
    "MAVEN_OPTS",
    "NO_PROXY",
    "PAGER",
    "PATH",
    "PREFIX",
    "PROMPT_COMMAND",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "SVN_SSH",
    "TAR_OPTIONS",
    "TMPDIR",
    "TMUX",
    "USER",
    "VIRTUAL_ENV",
    "VISUAL",
    "_JAVA_OPTIONS",
];

/// Beginnings of names that are dangerous.
const BEGINNINGS: [&str; 62] = [
    "ANTHROPIC_",
    "AWS_",
    "AZURE_",
    "BUNDLE_",
    "BUN_",
    "CARGO_",
    "CLAUDE",
    "CLOUDSDK_",
    "CLOUD_",
    "CMAKE_",
    "CONDA_",
    "CURL_",
    "DENO_",
    "DISABLE_",
    "DOCKER_",
    "DOTNET_",
    "DYLD_",
    "ENABLE_",
    "GCE_",
    "GCLOUD_",
    "GEM_",
    "GH_",
    "GIT_",
    "GOOGLE_",
    "GRPC_",
    "HELM_",
    "HOMEBREW_",
    "JAVA_",
    "KUBE",
    "LD_",
    "LUA_",
    "MANPAGER",
    "MCP_",
    "NODE_",
    "NPM_",
    "OPENSSL_",
    "OTEL_",
    "PERL",
    "PIP_",
    "PKG_CONFIG",
    "PNPM_",
    "POETRY_",
    "PYTEST_",
    "PYTHON",
    "RBENV_",
    "RIPGREP_",
    "RSYNC_",
    "RUBY",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_",
    "SSH_",
    "SSL_",
    "SUDO_",
    "TF_",
    "UV_",
    "VAULT_",
    "VERTEX_",
    "XDG_",
    "YARN_",
    "ZDOTDIR",
];

/// Returns whether setting a variable widens what a turn can do.
fn is_dangerous(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests;
