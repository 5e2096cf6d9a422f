//! The record of an agent that has ended.

use serde::{Deserialize, Serialize};

use crate::domain::agent::Agent;
use crate::domain::id::{AgentId, Folder, StateName};
use crate::domain::money::Usd;
use crate::domain::transition::Variables;
use crate::domain::turn::{FailureCause, TurnId};

/// An agent that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishedAgent {
    /// Its id.
    pub id: AgentId,
    /// The state it began in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// The folder of that state below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The state it failed in, if it has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<StateName>,
    /// The folder of the state it failed in, if it is another one than the run's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_folder: Option<Folder>,
    /// The agent's ending.
    #[serde(flatten)]
    pub ending: AgentEnding,
    /// True if its result is a JSON object that was checked against a schema.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub structured: bool,
    /// The kind of failure, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<FailureCause>,
    /// The cost of its turns.
    pub cost_usd: Usd,
    /// The turn that may have been running when the whole run ended; its cost is still to be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbilled_turn: Option<UnbilledTurn>,
    /// The values it started with, for the agent that forked it and may wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Variables>,
    /// True if a waiting agent was notified; then a bad ending does not fail the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parent_notified: bool,
    /// The messages of people that it was not told before it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// The agent as it was before its last turn, if it can be retried: it has failed, or was a role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<Box<Agent>>,
}

impl FinishedAgent {
    /// Returns the state it began in, as people see it.
    pub fn began(&self) -> Option<StateName> {
        Some(self.state.as_ref()?.shown_in(self.folder.as_ref()))
    }

    /// Returns the state it failed in, as people see it, if it has failed in one.
    pub fn shown_failed_in(&self) -> Option<StateName> {
        Some(self.failed_in.as_ref()?.shown_in(self.failed_folder.as_ref()))
    }

    /// Returns whether it has failed; an agent that was only no longer needed has not.
    pub fn has_failed(&self) -> bool {
        matches!(self.ending, AgentEnding::Error(_)) && self.cause != Some(FailureCause::Unneeded)
    }
}

/// A turn that was running when the whole run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnbilledTurn {
    /// The turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt it was about.
    pub state: StateName,
    /// The folder of that prompt below the run's root, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
}

impl UnbilledTurn {
    /// Returns the turn of an agent that is due.
    pub fn of(agent: &Agent) -> Self {
        Self { turn: agent.turn_id(), state: agent.prompt().clone(), folder: agent.folder() }
    }
}

/// An agent's ending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentEnding {
    /// With the payload of its last `<result>`.
    Result(String),
    /// With an error.
    Error(String),
}
