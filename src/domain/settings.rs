//! What a run was told when it was started, kept with it so that it goes on the same way.

use serde::{Deserialize, Serialize};

use super::money::Usd;
use super::transition::Variables;

/// The models a state or a command line may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Model {
    Opus,
    Sonnet,
    Haiku,
}

impl Model {
    /// All of them, the most capable first.
    pub const ALL: [Self; 3] = [Self::Opus, Self::Sonnet, Self::Haiku];

    /// The name Claude Code takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Opus => "opus",
            Self::Sonnet => "sonnet",
            Self::Haiku => "haiku",
        }
    }

    /// The model of that name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }
}

/// Who answers the prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answerer {
    /// Claude Code, one process a turn.
    #[default]
    Claude,
    /// The replies in the scope's `replies.yaml`; no model is called.
    Scripted,
}

/// What Claude Code may do without asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// The named permission mode of Claude Code.
    Mode(String),
    /// Everything, without any check.
    SkipAll,
}

impl Default for Permission {
    fn default() -> Self {
        Self::Mode("acceptEdits".to_owned())
    }
}

/// How failed turns are run again, and how running ones end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Supervision {
    /// How many restarts an agent may have within `period_ms`.
    pub max_restarts: u32,
    /// The window in which restarts are counted, in milliseconds.
    pub period_ms: u64,
    /// The wait before the first restart, in milliseconds; it doubles with each further one.
    pub backoff_min_ms: u64,
    /// The longest wait, in milliseconds.
    pub backoff_max_ms: u64,
    /// How long a turn may take, in milliseconds.
    pub timeout_ms: u64,
    /// How long running turns may go on when the run is told to stop, in milliseconds.
    pub shutdown_ms: u64,
    /// How often an agent is reminded of its state's policy before its reply counts as a failure.
    pub reminders: u32,
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            max_restarts: 3,
            period_ms: 10 * 60 * 1000,
            backoff_min_ms: 1000,
            backoff_max_ms: 5 * 60 * 1000,
            timeout_ms: 30 * 60 * 1000,
            shutdown_ms: 20 * 1000,
            reminders: 3,
        }
    }
}

/// The settings of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Who answers.
    pub answerer: Answerer,
    /// The model of states that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// What the run may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// How many turns may run at the same time.
    pub max_procs: usize,
    /// The directory Claude Code works in; its sessions belong to it.
    pub cwd: String,
    /// The program that is Claude Code.
    pub claude: String,
    /// What it may do.
    pub permission: Permission,
    /// Further arguments for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claude_args: Vec<String>,
    /// Values for placeholders of every state.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// Keep a debug directory.
    #[serde(default)]
    pub debug: bool,
    /// What happens when turns fail.
    pub supervision: Supervision,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            answerer: Answerer::Claude,
            model: None,
            budget_usd: None,
            max_procs: 8,
            cwd: ".".to_owned(),
            claude: "claude".to_owned(),
            permission: Permission::default(),
            claude_args: Vec::new(),
            variables: Variables::new(),
            debug: false,
            supervision: Supervision::default(),
        }
    }
}
