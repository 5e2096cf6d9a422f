//! Compares the path of a run with the states that are expected.

use std::fmt::Write as _;

use crate::domain::id::AgentId;
use crate::domain::observed_run::{ObservedEnding, ObservedRun};
use crate::language::cases::expectation::PathOrder;
use crate::language::position::SourcePlace;

/// Returns the first difference of the path of an agent, or of all agents together.
pub(super) fn path_mismatch(
    at: SourcePlace,
    agent: Option<&AgentId>,
    (order, states): (PathOrder, &[(SourcePlace, String)]),
    run: &ObservedRun,
) -> Option<CaseMismatch> {
    match order {
        PathOrder::Any => set_mismatch(at, agent, states, run),
        PathOrder::Listed => step_mismatch(at, agent, states, run),
    }
}

/// Returns whether a state of a path is the expected one. The file of a graph or a program may be left out.
fn fits(expected: &str, place: &str) -> bool {
    expected == place || place.split_once('#').is_some_and(|(_, part)| part == expected)
}

/// Returns the name of the agent, or of all.
fn owner(agent: Option<&AgentId>) -> String {
    agent.map_or_else(|| "all agents".to_owned(), ToString::to_string)
}

fn set_mismatch(
    at: SourcePlace,
    agent: Option<&AgentId>,
    states: &[(SourcePlace, String)],
    run: &ObservedRun,
) -> Option<CaseMismatch> {
    let (steps, whose) = (run.path(agent), owner(agent));
    let missing = states.iter().find(|(_, state)| !steps.iter().any(|step| fits(state, step)));
    let extra = steps.iter().find(|step| !states.iter().any(|(_, state)| fits(state, step)));
    let (at, expected, found) = match (missing, extra) {
        (Some((at, state)), _) => {
            (*at, format!("{state} in the path of {whose}"), "it was never entered".to_owned())
        }
        (None, Some(step)) => {
            (at, format!("no other states in the path of {whose}"), (*step).to_owned())
        }
        (None, None) => return None,
    };
    Some(CaseMismatch { at, expected, found, path: None })
}

fn step_mismatch(
    at: SourcePlace,
    agent: Option<&AgentId>,
    states: &[(SourcePlace, String)],
    run: &ObservedRun,
) -> Option<CaseMismatch> {
    let (steps, whose) = (run.path(agent), owner(agent));
    let step = (0..states.len().max(steps.len())).find(|&step| {
        match (states.get(step), steps.get(step)) {
            (Some((_, expected)), Some(place)) => !fits(expected, place),
            _ => true,
        }
    })?;
    let wanted = states.get(step);
    let expected = match wanted {
        Some((_, state)) => format!("{state} as step {} of {whose}", step + 1),
        None => format!("the end of the path of {whose} after {step} steps"),
    };
    let found = match steps.get(step) {
        Some(place) => (*place).to_owned(),
        None if agent.is_some_and(|agent| !run.agents.contains(agent)) => {
            agent.map(|agent| no_agent(agent, run)).unwrap_or_default()
        }
        None => with_failures("the end of the path".to_owned(), run),
    };
    let difference = agent.map(|agent| PathDifference {
        agent: agent.clone(),
        step,
        expected: wanted.map(|(_, state)| state.clone()),
    });
    Some(CaseMismatch { at: wanted.map_or(at, |(at, _)| *at), expected, found, path: difference })
}

/// An expectation that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseMismatch {
    /// The place of the expectation.
    pub at: SourcePlace,
    /// The expectation, in words.
    pub expected: String,
    /// The run's own value, in words.
    pub found: String,
    /// The first difference of a path.
    pub path: Option<PathDifference>,
}

/// The first step of a path that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathDifference {
    /// The agent.
    pub agent: AgentId,
    /// The number of the step, from 0.
    pub step: usize,
    /// The state that was expected there, if there was to be one.
    pub expected: Option<String>,
}

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
