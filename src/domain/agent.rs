//! One live agent as data: where it is, what it has to return to, what its next turn needs.
//!
//! An agent that waits costs only this; actors and processes come and go around it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::id::{AgentId, MessageId, SessionId, StateName};
use super::money::Usd;
use super::session::Session;
use super::time::Timestamp;
use super::transition::Variables;
use super::turn::TurnId;

/// A pending return: whom a `<result>` goes back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The caller's session.
    pub session: SessionId,
    /// The state the caller goes on at.
    pub state: StateName,
    /// The caller's last message, to which its session can be cut back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<MessageId>,
}

/// A live agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// The state it is in.
    pub current_state: StateName,
    /// The session its next turn runs in.
    #[serde(flatten)]
    pub session: Session,
    /// Its pending returns, the innermost last.
    pub stack: Vec<Frame>,
    /// The number of the step it is in, from 1.
    pub step: u64,
    /// The number of the turn within the step, from 0.
    #[serde(default)]
    pub turn: u32,
    /// How many reminders this step has taken.
    #[serde(default)]
    pub reminders: u32,
    /// The reminder that the next turn sends instead of the state's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<String>,
    /// Values for the placeholders of the current state.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// How many agents it has forked.
    #[serde(default)]
    pub children: u32,
    /// How many turns it has had in each state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub visits: BTreeMap<StateName, u32>,
    /// When it was restarted lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<Timestamp>,
    /// Before this time its next turn does not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// When it entered its current state.
    pub since: Timestamp,
    /// What its turns have cost.
    #[serde(default)]
    pub cost_usd: Usd,
}

impl Agent {
    /// An agent at its birth.
    #[must_use]
    pub fn born(
        id: AgentId,
        state: StateName,
        session: SessionId,
        variables: Variables,
        since: Timestamp,
    ) -> Self {
        Self {
            id,
            current_state: state,
            session: Session::fresh(session),
            stack: Vec::new(),
            step: 1,
            turn: 0,
            reminders: 0,
            reminder: None,
            variables,
            children: 0,
            visits: BTreeMap::new(),
            restarts: Vec::new(),
            not_before: None,
            since,
            cost_usd: Usd::ZERO,
        }
    }

    /// The identity of the turn that is due.
    #[must_use]
    pub fn turn_id(&self) -> TurnId {
        TurnId { agent: self.id.clone(), step: self.step, turn: self.turn }
    }

    /// How many turns it has had in its current state.
    #[must_use]
    pub fn visit(&self) -> u32 {
        self.visits.get(&self.current_state).copied().unwrap_or(0)
    }

    /// Enters a state: a new step, with its own variables.
    pub(super) fn enter(
        &mut self,
        state: StateName,
        session: Session,
        variables: Variables,
        at: Timestamp,
    ) {
        self.current_state = state;
        self.session = session;
        self.variables = variables;
        self.step = self.step.saturating_add(1);
        self.turn = 0;
        self.reminders = 0;
        self.reminder = None;
        self.not_before = None;
        self.since = at;
    }

    /// Counts a turn that has ended, and what it cost.
    pub(super) fn count_turn(&mut self, cost: Usd) {
        let visits = self.visits.entry(self.current_state.clone()).or_default();
        *visits = visits.saturating_add(1);
        self.cost_usd += cost;
    }
}
