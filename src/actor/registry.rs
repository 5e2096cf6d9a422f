//! The live picture of all agents and their work, which a screen reads while the actors write it.
//!
//! It is a map that many threads share, so a slow terminal never holds up the run. It is only a
//! picture: the truth is the supervisor's state.

use dashmap::DashMap;

use crate::domain::agent::Agent;
use crate::domain::id::{AgentId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;
use crate::domain::wait_reason::WaitReason;

/// A live agent as it is seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentView {
    /// Its id.
    pub id: AgentId,
    /// The state it is in.
    pub state: StateName,
    /// The session its next turn runs in.
    pub session: SessionId,
    /// The number of its pending returns.
    pub stack: usize,
    /// Its turn, its other work, or its wait.
    pub activity: AgentActivity,
    /// The cost of its turns.
    pub cost: Usd,
}

/// The activity of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentActivity {
    /// Its turn runs.
    Turn {
        /// The start of the turn.
        since: Timestamp,
        /// Its last seen activity.
        seen: String,
    },
    /// It advances a graph, or executes an operation of it.
    Graph,
    /// It advances a program.
    Program,
    /// It waits.
    Waiting(WaitReason),
}

impl AgentView {
    /// Returns the view of an agent that waits.
    #[must_use]
    pub fn of(agent: &Agent) -> Self {
        Self {
            id: agent.id.clone(),
            state: agent.place(),
            session: agent.session.id.clone(),
            stack: agent.stack.len(),
            activity: AgentActivity::of(agent),
            cost: agent.cost_usd,
        }
    }
}

impl AgentActivity {
    /// Returns the activity of an agent with no running turn.
    fn of(agent: &Agent) -> Self {
        match WaitReason::of_agent(agent) {
            Some(reason) => Self::Waiting(reason),
            None if agent.runs_graph() => Self::Graph,
            None if agent.runs_program() => Self::Program,
            None => Self::Waiting(WaitReason::Permit),
        }
    }
}

/// All live agents of a run.
#[derive(Debug, Default)]
pub struct AgentRegistry(DashMap<AgentId, AgentView>);

impl AgentRegistry {
    /// Shows an agent as it is now.
    pub fn show(&self, view: AgentView) {
        self.0.insert(view.id.clone(), view);
    }

    /// Forgets an agent that has ended.
    pub fn forget(&self, agent: &AgentId) {
        self.0.remove(agent);
    }

    /// Shows that an agent's turn runs.
    pub fn running(&self, agent: &AgentId, since: Timestamp) {
        if let Some(mut view) = self.0.get_mut(agent) {
            view.activity = AgentActivity::Turn { since, seen: String::new() };
        }
    }

    /// Shows the last seen activity of a running turn.
    pub fn active(&self, agent: &AgentId, now_seen: &str) {
        if let Some(mut view) = self.0.get_mut(agent)
            && let AgentActivity::Turn { seen, .. } = &mut view.activity
            && seen != now_seen
        {
            now_seen.clone_into(seen);
        }
    }

    /// Returns the number of live agents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no live agent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a copy of the picture: running agents first, then by id.
    #[must_use]
    pub fn views(&self) -> Vec<AgentView> {
        let mut views: Vec<AgentView> = self.0.iter().map(|entry| entry.value().clone()).collect();
        let idle = |view: &AgentView| !matches!(view.activity, AgentActivity::Turn { .. });
        views.sort_by(|a, b| idle(a).cmp(&idle(b)).then_with(|| a.id.cmp(&b.id)));
        views
    }
}
