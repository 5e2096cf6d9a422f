//! The outcomes of the agents that a join waited for, as the state sees them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::id::{AgentId, StateName};
use crate::transition::Variables;

/// The outcome of an awaited agent, as the waiting state sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChildOutcome<'run> {
    /// The agent.
    pub id: &'run AgentId,
    /// The state it started in.
    pub state: &'run StateName,
    /// The end of the agent.
    #[serde(flatten)]
    pub status: ChildStatus<'run>,
    /// The variables it started with.
    pub variables: &'run Variables,
}

/// The end of an awaited agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum ChildStatus<'run> {
    /// The agent ended with a result.
    Result {
        /// The payload: a text, or an object if it was checked against a schema.
        result: Value,
    },
    /// The agent ended with an error.
    Error {
        /// The error message.
        error: &'run str,
    },
    /// The agent is still running.
    Running,
    /// The agent was ended because the join was settled without it.
    Stopped,
}

/// The outcomes of the awaited agents, in the order in which they were forked.
#[derive(Debug, Default)]
pub(crate) struct ChildOutcomes<'run>(BTreeMap<u32, ChildOutcome<'run>>);

impl<'run> ChildOutcomes<'run> {
    /// Adds the outcome of an agent.
    pub(crate) fn add(
        &mut self,
        id: &'run AgentId,
        state: &'run StateName,
        status: ChildStatus<'run>,
        variables: &'run Variables,
    ) {
        self.0.insert(id.number(), ChildOutcome { id, state, status, variables });
    }

    /// Returns the list that `{{results}}` stands for.
    pub(crate) fn listed(&self) -> String {
        let list: Vec<_> = self.0.values().collect();
        serde_json::to_string(&list).unwrap_or_else(|_| "[]".to_owned())
    }
}
