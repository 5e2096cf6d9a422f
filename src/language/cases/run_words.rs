//! The outcome of a run, in words for a difference.

use std::fmt::Write as _;

use crate::domain::id::AgentId;
use crate::domain::observed_run::{ObservedEnding, ObservedRun};

/// Adds the failures of agents and the reason of a pause to a text.
pub(super) fn with_failures(mut text: String, run: &ObservedRun) -> String {
    for (agent, ending) in &run.endings {
        if let ObservedEnding::Failure { message, .. } = ending {
            let _ = write!(text, "; {agent} has failed: {message}");
        }
    }
    if let Some(pause) = &run.pause {
        let _ = write!(text, "; it is paused: {pause}");
    }
    text
}

/// Returns the text that there is no such agent, and which there are.
pub(super) fn no_agent(agent: &AgentId, run: &ObservedRun) -> String {
    let names: Vec<&str> = run.agents.iter().map(AgentId::as_str).collect();
    format!("no agent {agent}; the agents are {}", names.join(", "))
}
