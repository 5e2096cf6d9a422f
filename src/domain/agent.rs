//! One live agent as data: where it is, what it has to return to, what its next turn needs.
//!
//! An agent that waits costs only this; actors and processes come and go around it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evaluation::Proposal;
use super::id::{AgentId, MessageId, SessionId, StateName};
use super::money::Usd;
use super::session::{Origin, Session};
use super::supervision::Overrides;
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
    /// How that session starts, if the caller was moved on before its first turn there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbegun: Option<Origin>,
}

impl Frame {
    /// The return to a caller that goes on at a state, in the session it has now.
    pub(super) fn of(caller: &Session, state: StateName) -> Self {
        let unbegun = (caller.origin != Origin::Resumed).then(|| caller.origin.clone());
        let (session, checkpoint) = (caller.id.clone(), caller.checkpoint.clone());
        Self { session, state, checkpoint, unbegun }
    }

    /// The caller's session as it is gone on with.
    pub(super) fn back(self) -> Session {
        let origin = self.unbegun.unwrap_or(Origin::Resumed);
        Session { id: self.session, origin, checkpoint: self.checkpoint }
    }
}

/// What an agent began with, to which a permanent one returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    /// Its first state.
    pub state: StateName,
    /// The values of that state's placeholders.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// Under which terms it lives.
    #[serde(flatten)]
    pub terms: Terms,
}

/// What the state an agent is born in says about its whole life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Terms {
    /// In what it is supervised differently from the rest of the run.
    #[serde(default, skip_serializing_if = "Overrides::is_empty")]
    pub supervision: Overrides,
    /// What it, and all it forks, may spend; the run's budget limits it as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
}

impl Birth {
    /// A birth in a state, without values or terms of its own.
    #[must_use]
    pub fn plain(state: StateName) -> Self {
        Self { state, variables: Variables::new(), terms: Terms::default() }
    }
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
    /// What it asked for, while the state's evaluator looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Box<Proposal>>,
    /// Who holds its next turn back until `not_before`, and why, if a plug-in does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
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
    /// How often in a row its turns were throttled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttles: u32,
    /// Why it waits for a person, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<String>,
    /// Before this time its next turn does not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// When it entered its current state.
    pub since: Timestamp,
    /// What its turns have cost.
    #[serde(default)]
    pub cost_usd: Usd,
    /// What it began with.
    pub birth: Box<Birth>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Agent {
    /// An agent at its birth.
    #[must_use]
    pub fn born(id: AgentId, birth: Birth, session: SessionId, since: Timestamp) -> Self {
        Self {
            id,
            current_state: birth.state.clone(),
            session: Session::fresh(session),
            stack: Vec::new(),
            step: 1,
            turn: 0,
            reminders: 0,
            reminder: None,
            proposal: None,
            held: None,
            variables: birth.variables.clone(),
            children: 0,
            visits: BTreeMap::new(),
            restarts: Vec::new(),
            throttles: 0,
            parked: None,
            not_before: None,
            since,
            cost_usd: Usd::ZERO,
            birth: Box::new(birth),
        }
    }

    /// The identity of the turn that is due.
    #[must_use]
    pub fn turn_id(&self) -> TurnId {
        TurnId { agent: self.id.clone(), step: self.step, turn: self.turn }
    }

    /// The sessions it can still go on with: its own, and those its pending returns lead to.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        let evaluator = self.proposal.iter().map(|proposal| &proposal.session.id);
        let returns = self.stack.iter().map(|frame| &frame.session);
        std::iter::once(&self.session.id).chain(evaluator).chain(returns)
    }

    /// The prompt its next turn is about: its state's, or the evaluator's.
    #[must_use]
    pub fn prompt(&self) -> &StateName {
        self.proposal.as_ref().map_or(&self.current_state, |proposal| &proposal.evaluator)
    }

    /// The session its next turn runs in: its own, or the evaluator's.
    #[must_use]
    pub fn turn_session(&self) -> &Session {
        self.proposal.as_ref().map_or(&self.session, |proposal| &proposal.session)
    }

    /// How many turns it has had with that prompt.
    #[must_use]
    pub fn visit(&self) -> u32 {
        self.visits.get(self.prompt()).copied().unwrap_or(0)
    }

    /// Its last turn has this message; an evaluator's is not of its own session.
    pub(super) fn heard(&mut self, message: Option<MessageId>) {
        if self.proposal.is_none() {
            self.session = self.session.after_turn(message);
        }
    }

    /// Its turn is run again, in a session that begins where the turn did.
    pub(super) fn again(&mut self, session: SessionId) {
        match &mut self.proposal {
            Some(proposal) => proposal.session = proposal.session.again(session),
            None => self.session = self.session.again(session),
        }
        self.turn = self.turn.saturating_add(1);
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
        self.proposal = None;
        self.held = None;
        self.not_before = None;
        self.since = at;
    }

    /// Begins again where it was born, as a restart that happened at `at`.
    pub(super) fn begin_again(&mut self, session: SessionId, not_before: Timestamp, at: Timestamp) {
        let Birth { state, variables, .. } = (*self.birth).clone();
        self.enter(state, Session::fresh(session), variables, at);
        self.not_before = Some(not_before);
        self.restarts.push(at);
    }

    /// Forgets the restarts that lie further back than the period in which they count.
    pub(super) fn forget_restarts(&mut self, period_ms: u64, at: Timestamp) {
        self.restarts.retain(|&restart| at.since(restart) < period_ms);
    }

    /// Counts a turn that has ended, and what it cost.
    pub(super) fn count_turn(&mut self, cost: Usd) {
        let visits = self.visits.entry(self.prompt().clone()).or_default();
        *visits = visits.saturating_add(1);
        self.throttles = 0;
        self.cost_usd += cost;
    }
}
