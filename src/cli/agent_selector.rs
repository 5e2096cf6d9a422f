//! The selection of records by agent: `main.2`, or `main.2.*` for its descendants too.

use super::exit::Error;
use crate::domain::event::AgentFamily;
use crate::domain::event::Event;
use crate::domain::id::{AgentId, InvalidName};
use crate::domain::run::Run;
use crate::language::hint::closest;

/// An agent, or an agent with all its descendants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSelector(AgentFamily);

impl AgentSelector {
    /// Parses `main.2` or `main.2.*`.
    ///
    /// # Errors
    /// [`InvalidName::Agent`] for anything else.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        AgentFamily::parse(text).map(Self)
    }

    /// Returns the agent itself.
    pub fn agent(&self) -> &AgentId {
        &self.0.agent
    }

    /// Returns the agents.
    pub fn family(&self) -> &AgentFamily {
        &self.0
    }

    /// Returns whether an event belongs to a selected agent. Events of the whole run belong to none.
    pub fn is_about(&self, event: &Event) -> bool {
        event.agent().is_some_and(|agent| self.0.has(agent))
    }
}

/// Checks that a run has, or had, an agent.
///
/// # Errors
/// [`Error::NoSuchAgent`], with an agent of a similar id.
pub fn check_agent_exists(run: &Run, agent: &AgentId) -> Result<(), Error> {
    let ended = run.finished.iter().map(|ended| &ended.id);
    let all: Vec<&AgentId> = run.agents.keys().chain(ended).collect();
    if all.contains(&agent) {
        return Ok(());
    }
    let similar = closest(agent.as_str(), all.into_iter().map(AgentId::as_str));
    Err(Error::NoSuchAgent {
        run: run.workflow_id.clone(),
        agent: agent.clone(),
        similar: similar.and_then(|similar| AgentId::parse(similar).ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::AgentParked;
    use crate::domain::id::StateName;
    use crate::domain::run::PauseReason;
    use crate::domain::turn::TurnId;

    fn about(whose: &str, agent: &str) -> bool {
        let agent = AgentId::parse(agent).expect("an id");
        let turn = TurnId { agent, step: 1, turn: 0 };
        let state = StateName::parse("A.md").expect("a state");
        let event = Event::AgentParked(AgentParked { turn, state, reason: String::new() });
        AgentSelector::parse(whose).expect("an agent").is_about(&event)
    }

    #[test]
    fn selector_without_wildcard_excludes_descendants() {
        assert!(about("main.1", "main.1") && about("main.1.*", "main.1"));
        assert!(!about("main.1", "main.1.2") && about("main.1.*", "main.1.2.3"));
        assert!(!about("main.1.*", "main.10") && !about("main.1.*", "main"));
        let all = AgentSelector::parse("main.*").expect("an agent");
        assert!(!all.is_about(&Event::RunPaused { pause: PauseReason::Stopped }));
    }

    #[test]
    fn invalid_agent_selector_is_refused() {
        for bad in ["*", "main*", "main.**", "1", ".*", ""] {
            assert!(AgentSelector::parse(bad).is_err(), "{bad:?} was taken");
        }
    }
}
