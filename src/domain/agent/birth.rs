//! What an agent begins with, and under which terms it lives.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::graph::PromptTask;
use crate::domain::home::WorkingDir;
use crate::domain::id::{Folder, StateName};
use crate::domain::money::Usd;
use crate::domain::supervision::SupervisionOverrides;
use crate::domain::transition::Variables;

/// What an agent began with, to which a permanent one returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSpec {
    /// Its first state.
    pub state: StateName,
    /// The folder of that state below the scope, if it is not the scope itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// What it is asked, if that is not the state's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<PromptTask>>,
    /// Where its turns run.
    #[serde(flatten)]
    pub home: WorkingDir,
    /// The commit its worktree begins at, if it gets one; else that is where its parent is by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The values of that state's placeholders.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// Under which terms it lives.
    #[serde(flatten)]
    pub terms: AgentTerms,
}

/// What the state an agent is born in says about its whole life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentTerms {
    /// In what it is supervised differently from the rest of the run.
    #[serde(default, skip_serializing_if = "SupervisionOverrides::is_empty")]
    pub supervision: SupervisionOverrides,
    /// What it, and all it forks, may spend; the run's budget limits it as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// Whether it gets a git worktree of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
}

impl AgentSpec {
    /// A birth in a state, without values or terms of its own.
    #[must_use]
    pub fn plain(state: StateName) -> Self {
        Self {
            state,
            folder: None,
            task: None,
            home: WorkingDir::default(),
            base: None,
            variables: Variables::new(),
            terms: AgentTerms::default(),
        }
    }
}
