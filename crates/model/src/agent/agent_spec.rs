//! The spec an agent is created from, and the settings of its whole life.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::graph_execution::PromptTask;
use crate::host::HostLabel;
use crate::id::{Folder, StateName};
use crate::money::Usd;
use crate::supervision::SupervisionOverrides;
use crate::transition::Variables;
use crate::working_dir::WorkingDir;

/// The spec of an agent, to which a permanent agent returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSpec {
    /// Its first state.
    pub state: StateName,
    /// The folder of that state below the scope, if it is not the scope itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// Its task, if it is not asked the state's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<PromptTask>>,
    /// The directory its turns run in.
    #[serde(flatten)]
    pub working_dir: WorkingDir,
    /// The commit its worktree begins at, if it gets one; by default its parent's commit at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The variables it is born with.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// The settings of its whole life.
    #[serde(flatten)]
    pub options: AgentOptions,
}

/// The settings that an agent's first state gives for its whole life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentOptions {
    /// The supervision settings that differ from the run's.
    #[serde(default, skip_serializing_if = "SupervisionOverrides::is_empty")]
    pub supervision: SupervisionOverrides,
    /// The limit for it and all it forks; the run's budget applies as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// The agent gets a git worktree of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
    /// No snapshots of that worktree are made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_snapshots: bool,
    /// The label of the hosts that it may live on, if the run works on several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostLabel>,
}

/// The placeholders that say what has led an agent to its state. They are never its own variables.
pub const OCCASIONAL_PLACEHOLDERS: [&str; 7] =
    ["result", "answer", "ask_id", "results", "results_file", "output", "transition"];

impl AgentSpec {
    /// Returns the state it begins in, as people see it; with a task, the node that it is for.
    pub fn shown_state(&self) -> StateName {
        self.first_place().shown_in(self.folder.as_ref())
    }

    /// Returns the name of its task, if it has one.
    pub(super) fn task_name(&self) -> Option<&StateName> {
        self.task.as_ref().map(|task| &task.name)
    }

    /// Returns its first state, or the name of its task.
    pub(crate) fn first_place(&self) -> &StateName {
        self.task_name().unwrap_or(&self.state)
    }

    /// Returns the variables that stay with the agent in all its states.
    pub fn own_variables(&self) -> impl Iterator<Item = (&String, &String)> {
        let stays = |name: &str| !OCCASIONAL_PLACEHOLDERS.contains(&name);
        self.variables.iter().filter(move |(name, _)| stays(name))
    }

    /// Creates a spec for a state, without values or settings of its own.
    pub fn plain(state: StateName) -> Self {
        Self {
            state,
            folder: None,
            task: None,
            working_dir: WorkingDir::default(),
            base: None,
            variables: Variables::new(),
            options: AgentOptions::default(),
        }
    }
}
