//! The values that options of a turn can have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{IntoStaticStr, VariantArray};

/// The effort that a model puts into thinking, as Claude Code names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[derive(Serialize, Deserialize, JsonSchema, IntoStaticStr, VariantArray)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
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
