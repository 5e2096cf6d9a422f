//! The live picture of all agents and their work, which a screen reads while the actors write it.
//!
//! It is a map that many threads share, so a slow terminal never holds up the run. It is only a
//! picture: the truth is the supervisor's state.

use dashmap::DashMap;

use crate::domain::agent::{Agent, TurnHold};
use crate::domain::id::{AgentId, SessionId, StateName};
use crate::domain::money::Usd;
use crate::domain::time::Timestamp;

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
    /// Its current status.
    pub phase: AgentStatus,
    /// The cost of its turns.
    pub cost: Usd,
}

/// The status of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentStatus {
    /// It waits for one of the run's permits.
    Waiting,
    /// It waits before a turn is run again.
    Delayed {
        /// The end of the wait.
        until: Timestamp,
    },
    /// It waits before its first turn, because the first of those it was forked with starts ahead.
    Staggered {
        /// The end of the wait.
        until: Timestamp,
    },
    /// A plug-in holds its turn back.
    Held {
        /// The end of the hold.
        until: Timestamp,
        /// The plug-in that holds the turn, and its reason.
        by: String,
    },
    /// It has asked a person.
    Asking {
        /// The node that asked.
        node: String,
    },
    /// It waits for another agent's end.
    Awaiting(AgentId),
    /// It waits for agents it has forked.
    Joining {
        /// The number of them that have to end well.
        needs: u32,
        /// The number of agents it has forked.
        of: u32,
    },
    /// Its program waits for this.
    Blocked {
        /// The reason, in the words of the program.
        awaiting: String,
    },
    /// It serves a program that has no request for it now.
    Idle,
    /// It walks a graph.
    Walking,
    /// It has used up its restarts and waits for a person.
    Parked,
    /// Its turn runs.
    Running {
        /// The start of the turn.
        since: Timestamp,
        /// Its last seen activity.
        activity: String,
    },
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
            phase: AgentStatus::of(agent),
            cost: agent.cost_usd,
        }
    }
}

impl AgentStatus {
    /// Returns the status of an agent with no running turn.
    fn of(agent: &Agent) -> Self {
        if let Some(asked) = agent.question() {
            return Self::Asking { node: asked.question.node.clone() };
        }
        if let Some(other) = agent.awaited_agent() {
            return Self::Awaiting(other.clone());
        }
        if let Some(joining) = agent.pending_join() {
            let of = agent.forks.tally(agent.stack.len()).count;
            return Self::Joining { needs: joining.join.needs(of), of };
        }
        if let Some(wait) = agent.program_wait() {
            return Self::Blocked { awaiting: wait.awaiting.clone() };
        }
        if agent.mailbox().is_some_and(|service| service.current.is_none()) {
            return Self::Idle;
        }
        match &agent.hold {
            Some(TurnHold::Person { .. }) => Self::Parked,
            Some(TurnHold::Plugin { until, by }) => Self::Held { until: *until, by: by.clone() },
            Some(TurnHold::Stagger { until }) => Self::Staggered { until: *until },
            Some(TurnHold::Backoff { until }) => Self::Delayed { until: *until },
            None if agent.runs_graph() => Self::Walking,
            None => Self::Waiting,
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
            view.phase = AgentStatus::Running { since, activity: String::new() };
        }
    }

    /// Shows the last seen activity of a running turn.
    pub fn active(&self, agent: &AgentId, seen: &str) {
        if let Some(mut view) = self.0.get_mut(agent)
            && let AgentStatus::Running { activity, .. } = &mut view.phase
            && activity != seen
        {
            seen.clone_into(activity);
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
        let idle = |view: &AgentView| !matches!(view.phase, AgentStatus::Running { .. });
        views.sort_by(|a, b| idle(a).cmp(&idle(b)).then_with(|| a.id.cmp(&b.id)));
        views
    }
}
