//! Agents that one step gives birth to: how many there may be, when they start, what each begins with.
//!
//! All of a step are born by its one record, or none is. Those of one tag share the beginning of their
//! prompts; the first starts ahead of the others by the stagger, so that the model's cache of prompts serves
//! the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::AgentTerms;
use super::id::{Folder, SessionId, StateName};
use super::time::Timestamp;
use super::transition::Variables;

/// How agents are forked in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ForkSettings {
    /// How many agents one reply may fork at the most, in states that say nothing else.
    pub max_fan_out: u32,
    /// How many agents may live at the same time.
    pub max_agents: u32,
    /// How long the first of several agents that one reply forks starts ahead of the others, in
    /// milliseconds, in states that say nothing else.
    pub stagger_ms: u64,
}

impl Default for ForkSettings {
    fn default() -> Self {
        Self { max_fan_out: 1_000, max_agents: 10_000, stagger_ms: 3_000 }
    }
}

/// What a state says about the agents that are forked in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForkRules {
    /// How many agents one reply may fork at the most.
    pub max_fan_out: Option<u32>,
    /// How long the first of them starts ahead of the others, in milliseconds.
    pub stagger_ms: Option<u64>,
}

/// Agents that are born together in one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkGroup {
    /// The state they are born in.
    pub state: StateName,
    /// Under which terms they live.
    #[serde(flatten)]
    pub terms: AgentTerms,
    /// The commit their worktrees begin at, if they get some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Before this time none but the first of them starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Each of them.
    pub agents: Vec<ChildSpec>,
}

/// One of a brood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildSpec {
    /// The session of its first turn.
    pub session: SessionId,
    /// The directory its turns run in, below that of its parent, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
    /// The values of its first state's placeholders.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
}

/// How many agents some broods are.
#[must_use]
pub fn size(broods: &[ForkGroup]) -> usize {
    broods.iter().map(|brood| brood.agents.len()).sum()
}
