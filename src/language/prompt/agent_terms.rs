//! The terms that a state gives: the options of an agent that begins there, and the budget of a call that leads there.

use super::document;
use crate::domain::agent::AgentOptions;
use crate::domain::id::{ScopePath, StateName};
use crate::domain::money::Usd;
use crate::domain::transition::Transition;
use crate::language::graph::begun_agent::begun_agent_options;
use crate::language::source::WorkflowSource;

/// Returns the options of an agent that begins in a state. A state that cannot be used gives default options: the
/// agent that starts there fails by itself, with the reason.
pub fn agent_options(state: &StateName, source: &dyn WorkflowSource) -> AgentOptions {
    if state.is_graph() {
        let text = source.read(state).unwrap_or_default();
        return begun_agent_options(&text);
    }
    let text = state.is_prompt().then(|| source.read(state).ok()).flatten();
    let document = text.and_then(|text| document::parse(&text).ok());
    document.map(|document| document.frontmatter.agent_options).unwrap_or_default()
}

/// Returns the options of the agent that a transition forks, or default options if it forks none.
pub fn child_options(transition: &Transition, source: &dyn WorkflowSource) -> AgentOptions {
    match transition {
        Transition::Fork { target, scope, .. } => agent_options_at(scope.as_ref(), target, source),
        _ => AgentOptions::default(),
    }
}

/// Returns the budget of the call that a transition makes, if it is a call and the called state gives one.
pub fn call_budget(transition: &Transition, source: &dyn WorkflowSource) -> Option<Usd> {
    match transition {
        Transition::Call { target, scope, .. } | Transition::Function { target, scope, .. } => {
            agent_options_at(scope.as_ref(), target, source).budget_usd
        }
        Transition::Goto { .. }
        | Transition::Reset { .. }
        | Transition::Fork { .. }
        | Transition::Ask { .. }
        | Transition::Result { .. } => None,
    }
}

/// Returns the options of an agent that begins in a state, which may be in another folder.
pub fn agent_options_at(
    scope: Option<&ScopePath>,
    state: &StateName,
    source: &dyn WorkflowSource,
) -> AgentOptions {
    match scope {
        None => agent_options(state, source),
        Some(path) => {
            source.scope(path).map(|there| agent_options(state, &*there)).unwrap_or_default()
        }
    }
}
