//! The options of a turn: what a state needs of Claude Code, beside its prompt and its model.
//!
//! The same options stand in a prompt's frontmatter, in `raymond.yaml`, at a node of a graph and at a
//! role of a program. Each is optional, so that layers can be laid over each other: the nearest wins,
//! key by key. Paths are relative to the workflow's folder until a process starts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantArray};

use super::id::Folder;
use super::model::ModelName;

/// Defines the options of a turn. One that is not given is left out where the options are stored.
macro_rules! turn_options {
    ($($(#[doc = $doc:literal])+ $key:ident: $kind:ty,)*) => {
        /// The options of a turn.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct TurnOptions {
            $($(#[doc = $doc])+
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $key: Option<$kind>,)*
        }

        impl TurnOptions {
            /// Returns these options, completed key by key from those of a layer farther away.
            pub fn or(self, farther: &Self) -> Self {
                let farther = farther.clone();
                Self { $($key: self.$key.or(farther.$key),)* }
            }
        }
    };
}

turn_options! {
    /// The effort that the model puts into thinking.
    effort: EffortLevel,
    /// The built-in tools that are offered; an empty list offers none.
    tools: Vec<String>,
    /// Rules for tools that run without asking, such as `Bash(cargo test:*)`.
    allowed_tools: Vec<String>,
    /// Rules for tools that are denied.
    disallowed_tools: Vec<String>,
    /// The permission mode.
    permission_mode: PermissionMode,
    /// A text that is appended to the system prompt.
    append_system_prompt: String,
    /// The file of a system prompt that replaces Claude Code's own.
    system_prompt_file: String,
    /// Configurations of MCP servers.
    mcp_config: Vec<ConfigSource>,
    /// True if only the MCP servers of `mcp_config` are used.
    strict_mcp: bool,
    /// Further settings of Claude Code.
    settings: ConfigSource,
    /// The settings files that are read; an empty list reads none.
    setting_sources: Vec<SettingSource>,
    /// Definitions of sub-agents.
    agents: ConfigSource,
    /// Further directories that tools may access.
    add_dirs: Vec<String>,
    /// Directories of Claude Code plug-ins.
    plugin_dirs: Vec<String>,
    /// The number of requests that a turn may make.
    max_turns: u32,
    /// The number of tokens that the model may think with.
    max_thinking_tokens: u32,
    /// The fate of background work at the turn's end.
    background: BackgroundWork,
    /// Environment variables by name.
    env: BTreeMap<String, EnvValue>,
    /// The models that are used in turn when the first is overloaded.
    fallback_model: Vec<ModelName>,
    /// The part of Claude Code that is loaded when a process starts.
    startup: StartupMode,
    /// The consequence of a refused tool.
    on_denied: OnDenied,
    /// The consequence of a session that no longer exists.
    on_lost_session: OnLostSession,
    /// The fate of a tool call that needs approval.
    permissions: ApprovalPolicy,
    /// True if a prompt that begins with a slash word is a command or a skill to run, not a text.
    run_command: bool,
}

impl TurnOptions {
    /// Returns whether no option is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether files of the workflow are passed to Claude Code by their paths.
    pub fn names_files(&self) -> bool {
        let is_file = |config: &ConfigSource| matches!(config, ConfigSource::File(_));
        self.system_prompt_file.is_some()
            || self.mcp_config.iter().flatten().any(is_file)
            || self.settings.as_ref().is_some_and(is_file)
            || self.agents.as_ref().is_some_and(is_file)
            || self.plugin_dirs.as_ref().is_some_and(|dirs| !dirs.is_empty())
    }

    /// Returns whether a person is asked to approve tool calls.
    pub fn asks_for_approval(&self) -> bool {
        self.permissions == Some(ApprovalPolicy::Ask)
    }

    /// Returns whether a prompt that begins with a slash word is a command.
    pub fn runs_command(&self) -> bool {
        self.run_command == Some(true)
    }

    /// Removes the options that are also given as arguments for Claude Code, because a command line overrides a
    /// manifest.
    pub fn forget_given(&mut self, arguments: &[String]) {
        for argument in arguments {
            match argument.split('=').next().unwrap_or_default() {
                "--effort" => self.effort = None,
                "--tools" => self.tools = None,
                "--append-system-prompt" => self.append_system_prompt = None,
                "--system-prompt-file" | "--system-prompt" => self.system_prompt_file = None,
                "--settings" => self.settings = None,
                "--setting-sources" => self.setting_sources = None,
                "--agents" => self.agents = None,
                "--max-turns" => self.max_turns = None,
                "--max-thinking-tokens" => self.max_thinking_tokens = None,
                "--fallback-model" => self.fallback_model = None,
                _ => {}
            }
        }
    }

    /// Returns these options with further rules of tools that run unasked.
    pub fn with_allowed_tools(mut self, rules: impl IntoIterator<Item = String>) -> Self {
        for rule in rules {
            let allowed = self.allowed_tools.get_or_insert_default();
            if !allowed.contains(&rule) {
                allowed.push(rule);
            }
        }
        self
    }

    /// Returns these options with paths relative to the folder that holds another.
    pub fn below(self, folder: &Folder) -> Self {
        let within = |path: String| format!("{folder}/{path}");
        let all = |paths: Vec<String>| paths.into_iter().map(within).collect();
        Self {
            system_prompt_file: self.system_prompt_file.map(within),
            add_dirs: self.add_dirs.map(all),
            plugin_dirs: self.plugin_dirs.map(all),
            ..self
        }
    }
}

// The values that options of a turn can have.

/// The effort that a model puts into thinking, as Claude Code names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum EffortLevel {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl EffortLevel {
    /// Returns the name that Claude Code takes.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A permission mode of Claude Code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum PermissionMode {
    /// A plan is made; nothing is changed.
    Plan,
    /// Rules decide, and everything else is denied.
    DontAsk,
    /// Rules decide, and everything else is asked.
    Default,
    /// As `Default`, and files in the working directory are edited unasked.
    AcceptEdits,
    /// A classifier decides on what would ask.
    Auto,
    /// Everything runs unasked.
    BypassPermissions,
}

impl PermissionMode {
    /// All modes by name. Newer versions list `default` as `manual`, and take both.
    pub const NAMES: [(&str, Self); 7] = [
        ("plan", Self::Plan),
        ("dontAsk", Self::DontAsk),
        ("default", Self::Default),
        ("manual", Self::Default),
        ("acceptEdits", Self::AcceptEdits),
        ("auto", Self::Auto),
        ("bypassPermissions", Self::BypassPermissions),
    ];

    /// Returns the mode of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, mode)| mode)
    }

    /// Returns the place of the mode in the order of how much runs unasked, from `plan` on.
    pub fn rank(self) -> u8 {
        match self {
            Self::Plan => 0,
            Self::DontAsk => 1,
            Self::Default => 2,
            Self::AcceptEdits => 3,
            Self::Auto => 4,
            Self::BypassPermissions => 5,
        }
    }

    /// Returns the name that every version of Claude Code takes.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A configuration that is given as a file of the workflow, or in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ConfigSource {
    /// The path of a file, relative to the workflow's folder.
    File(String),
    /// The configuration itself.
    Inline(Map<String, Value>),
}

/// A settings file that Claude Code may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SettingSource {
    /// The one in the home directory.
    User,
    /// The one that a repository shares.
    Project,
    /// The settings of one working copy.
    Local,
}

impl SettingSource {
    /// Returns the name that Claude Code takes.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The fate of background work at the end of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum BackgroundWork {
    /// The turn waits for it.
    #[default]
    Wait,
    /// It is ended with the turn.
    End,
    /// Background commands live on in the session's process; sub-agents are waited for.
    Keep,
}

/// The value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnvValue {
    /// The value that it has where raymond was started; it must be set there.
    Pass,
    /// This text.
    Set(String),
}

/// The part of Claude Code that is loaded when a process starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum StartupMode {
    /// Claude Code loads its usual settings and memory.
    #[default]
    Normal,
    /// Claude Code loads no `CLAUDE.md`, memory, skills or MCP servers of the project.
    Lean,
}

/// The consequence of a refused tool for the agent whose turn it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum OnDenied {
    /// The agent continues with its answer.
    #[default]
    Continue,
    /// The agent fails.
    Fail,
}

impl OnDenied {
    /// Returns whether it is the default.
    pub fn is_usual(&self) -> bool {
        *self == Self::Continue
    }
}

/// The consequence of a session that no longer exists for the agent that would continue it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum OnLostSession {
    /// The agent fails.
    #[default]
    Fail,
    /// It continues in a fresh session, which begins with its prompts and answers so far.
    Fresh,
}

/// The fate of a tool call that Claude Code would ask a person about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ApprovalPolicy {
    /// The call is refused.
    #[default]
    Refuse,
    /// A person is asked.
    Ask,
}

impl ApprovalPolicy {
    /// The reason why a person cannot be asked about a turn at another host.
    pub const NOT_AT_HOSTS: &str = "permissions: ask is not possible in a run on several machines, because a host cannot ask a person; use permissions: refuse with allowed_tools, or start it without --engine";
}

#[cfg(test)]
mod tests;
