//! Agents that one step forks: their maximum number, their start times and their initial settings.
//!
//! All agents of a step are forked by one record, or none is. Agents of one tag share the beginning of their
//! prompts. The first of them starts ahead of the others by the stagger, so that the others find that
//! beginning in the model's prompt cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agent::AgentOptions;
use super::id::{Folder, ScopePath, SessionId, StateName, TagTarget};
use super::time::Timestamp;
use super::transition::Variables;

/// The limits on forks in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ForkSettings {
    /// The maximum number of agents that one reply may fork, unless the state sets its own.
    pub max_fan_out: u32,
    /// The maximum number of agents alive at the same time.
    pub max_agents: u32,
    /// The head start, in milliseconds, of the first of several agents that one reply forks, unless the
    /// state sets its own.
    pub stagger_ms: u64,
}

impl Default for ForkSettings {
    fn default() -> Self {
        Self { max_fan_out: 1_000, max_agents: 10_000, stagger_ms: 3_000 }
    }
}

/// A state's own limits on the agents that are forked in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForkRules {
    /// The maximum number of agents that one reply may fork.
    pub max_fan_out: Option<u32>,
    /// The head start of the first of them, in milliseconds.
    pub stagger_ms: Option<u64>,
}

/// Agents that are forked together into one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkGroup {
    /// The first state of these agents.
    pub state: StateName,
    /// The other folder that has the state, if it is in another one than the agent that forks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopePath>,
    /// The options of these agents.
    #[serde(flatten)]
    pub options: AgentOptions,
    /// The commit their worktrees begin at, if they get worktrees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The time before which only the first of them may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The agents.
    pub agents: Vec<ChildSpec>,
}

impl ForkGroup {
    /// Returns the first state of these agents, as a tag names it.
    pub fn target(&self) -> TagTarget {
        TagTarget { scope: self.scope.clone(), state: self.state.clone() }
    }
}

/// One agent of a [`ForkGroup`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildSpec {
    /// The session of its first turn.
    pub session: SessionId,
    /// The directory its turns run in, below that of its parent; `None` for the parent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
    /// The values of its first state's placeholders.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
}

/// Returns the number of agents that a step with these groups forks. Without groups, it is the one of a plain fork; a
/// fork over an empty list has a group without agents.
pub fn forked_count(groups: &[ForkGroup]) -> usize {
    if groups.is_empty() { 1 } else { agent_count(groups) }
}

/// Returns the number of agents in all groups together.
pub fn agent_count(groups: &[ForkGroup]) -> usize {
    groups.iter().map(|group| group.agents.len()).sum()
}
