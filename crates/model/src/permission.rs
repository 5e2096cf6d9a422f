//! The permissions that the person who starts a run gives it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The actions that Claude Code may take without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPermission {
    /// The named permission mode of Claude Code.
    Mode(String),
    /// Everything, without any check.
    SkipAll,
}

impl Default for RunPermission {
    fn default() -> Self {
        Self::Mode("acceptEdits".to_owned())
    }
}

/// The permissions that a starter gave beyond the permission mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StarterConsent {
    /// Rules that states may name among their `allowed_tools`: what `--allow-tools` meant to earlier versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Rules that hold in every state, as far as it can use the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub every_state: Vec<String>,
    /// True if the workflow may bring rules, settings, servers and programs of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trusts_workflow: bool,
    /// The widest mode, if it is not that of the run: the run's mode is then the workflow's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub widest_mode: Option<RunPermission>,
}

impl StarterConsent {
    /// Returns the rules that states may name among their `allowed_tools`.
    pub fn rules(&self) -> impl Iterator<Item = &String> {
        self.tools.iter().chain(&self.every_state)
    }

    /// Returns whether nothing is given.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
