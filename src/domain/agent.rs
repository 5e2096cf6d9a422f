//! One live agent as data: its state, its pending returns, and the input of its next turn.
//!
//! An agent that waits costs only this; actors and processes come and go around it.

mod birth;
mod waiting;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::birth::{AgentSpec, AgentTerms};
pub use self::waiting::{AskedQuestion, QuestionTimeout, ReturnFrame};
use super::evaluation::TransitionProposal;
use super::graph::{GraphExecution, PromptTask, WaitResult};
use super::id::{AgentId, MessageId, SessionId, StateName};
use super::instance::{ProgramExecution, RoleMailbox};
use super::join::{PendingJoin, UnjoinedChildren};
use super::money::Usd;
use super::session::Session;
use super::time::Timestamp;
use super::transition::Variables;
use super::turn::TurnId;

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
    pub stack: Vec<ReturnFrame>,
    /// The number of the step it is in, from 1.
    pub step: u64,
    /// The number of the turn within the step, from 0.
    #[serde(default)]
    pub turn: u32,
    /// The number of reminders this step has taken.
    #[serde(default)]
    pub reminders: u32,
    /// The reminder that the next turn sends instead of the state's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder: Option<String>,
    /// The transition it asked for, while the state's evaluator checks it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Box<TransitionProposal>>,
    /// The execution of the graph it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Box<GraphExecution>>,
    /// The execution of the program it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<ProgramExecution>>,
    /// Its mailbox, if it is a role of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serves: Option<Box<RoleMailbox>>,
    /// The task its next turn sends instead of the state's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<PromptTask>>,
    /// The question it has asked a person, while it waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Box<AskedQuestion>>,
    /// The agents it has forked and not joined.
    #[serde(default, skip_serializing_if = "UnjoinedChildren::is_empty")]
    pub forks: UnjoinedChildren,
    /// The join it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Box<PendingJoin>>,
    /// The outcomes of the agents it joined: `{{results}}` of its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Arc<str>>,
    /// The agent it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<AgentId>,
    /// The result of its last wait in a graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Box<WaitResult>>,
    /// The name of the plug-in that holds its next turn back until `not_before`, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// Values for the placeholders of the current state.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// The number of agents it has forked.
    #[serde(default)]
    pub children: u32,
    /// The number of turns it has had in each state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub visits: BTreeMap<StateName, u32>,
    /// The times of its recent restarts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<Timestamp>,
    /// The number of turns in a row that were throttled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttles: u32,
    /// The reason it waits for a person, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<String>,
    /// The earliest time its next turn starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The time it entered its current state.
    pub since: Timestamp,
    /// The cost of its turns.
    #[serde(default)]
    pub cost_usd: Usd,
    /// The spec it was created from.
    pub birth: Box<AgentSpec>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Agent {
    /// Creates an agent from its spec.
    #[must_use]
    pub fn born(id: AgentId, mut birth: AgentSpec, session: SessionId, since: Timestamp) -> Self {
        if birth.terms.worktree {
            birth.home.tree = Some(id.clone());
        }
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
            graph: None,
            program: None,
            serves: None,
            task: birth.task.clone(),
            asked: None,
            forks: UnjoinedChildren::default(),
            join: None,
            results: None,
            awaits: None,
            heard: None,
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

    /// Returns the identity of the turn that is due.
    #[must_use]
    pub fn turn_id(&self) -> TurnId {
        TurnId { agent: self.id.clone(), step: self.step, turn: self.turn }
    }

    /// Returns the sessions it can still resume: its own, and those of its pending returns.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        let evaluator = self.proposal.iter().map(|proposal| &proposal.session.id);
        let returns = self.stack.iter().map(|frame| &frame.session);
        std::iter::once(&self.session.id).chain(evaluator).chain(returns)
    }

    /// Returns the prompt of its next turn: its state's, its evaluator's, or that of a node.
    #[must_use]
    pub fn prompt(&self) -> &StateName {
        let task = self.task.as_ref().map(|task| &task.name);
        let evaluator = self.proposal.as_ref().map(|proposal| &proposal.evaluator);
        evaluator.or(task).unwrap_or(&self.current_state)
    }

    /// Returns the session its next turn runs in: its own, or the evaluator's.
    #[must_use]
    pub fn turn_session(&self) -> &Session {
        self.proposal.as_ref().map_or(&self.session, |proposal| &proposal.session)
    }

    /// Returns its place, for people: its state; in a graph the node; in a program the state or the role.
    #[must_use]
    pub fn place(&self) -> StateName {
        let node = self.graph.as_ref().map(|memory| &*memory.state.current_node);
        let state = self.program.as_ref().map(|instance| &*instance.stand.current);
        let role = self.serves.as_ref().map(|service| service.role.as_str());
        let place = node
            .or(state)
            .or(role)
            .and_then(|within| StateName::parse(&format!("{}#{within}", self.current_state)).ok());
        place.unwrap_or_else(|| self.current_state.clone())
    }

    /// Returns whether its next step advances a graph, which takes no turn.
    #[must_use]
    pub fn walks(&self) -> bool {
        self.current_state.is_graph() && self.task.is_none() && !self.waits()
    }

    /// Returns whether an activity of its program is running.
    #[must_use]
    pub fn has_errand(&self) -> bool {
        self.program.as_ref().is_some_and(|instance| instance.stand.errand.is_some())
    }

    /// Returns whether it has forked agents that its state may wait for.
    #[must_use]
    pub fn may_join(&self) -> bool {
        !self.forks.is_empty() && self.results.is_none()
    }

    /// Returns whether it runs a program.
    #[must_use]
    pub fn conducts(&self) -> bool {
        self.current_state.is_program() && self.serves.is_none()
    }

    /// Returns whether it waits: for an answer, for other agents, for its program's condition, or, as a role,
    /// for a request.
    #[must_use]
    pub fn waits(&self) -> bool {
        let instance = self.program.as_ref();
        self.asked.is_some()
            || self.awaits.is_some()
            || self.join.is_some()
            || instance.is_some_and(|instance| instance.stand.wait.is_some())
            || self.serves.as_ref().is_some_and(|service| service.current.is_none())
    }

    /// Returns whether its first turn is still due.
    #[must_use]
    pub fn is_new(&self) -> bool {
        (self.step, self.turn) == (1, 0)
    }

    /// Returns the number of turns it has had with its current prompt.
    #[must_use]
    pub fn visit(&self) -> u32 {
        self.visits.get(self.prompt()).copied().unwrap_or(0)
    }

    /// Notes the last message of its turn. An evaluator's message is not of the agent's own session.
    pub(super) fn heard(&mut self, message: Option<MessageId>) {
        if self.proposal.is_none() {
            self.session = self.session.after_turn(message);
        }
    }

    /// Prepares a retry of its turn, in a session that begins where the turn did.
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
        self.graph = None;
        self.program = None;
        self.next_step(at);
    }

    /// Begins a new step in the same state.
    pub(super) fn next_step(&mut self, at: Timestamp) {
        self.step = self.step.saturating_add(1);
        self.turn = 0;
        self.reminders = 0;
        self.reminder = None;
        self.proposal = None;
        self.task = None;
        self.asked = None;
        self.join = None;
        self.results = None;
        self.awaits = None;
        self.heard = None;
        self.held = None;
        self.not_before = None;
        self.since = at;
    }

    /// Restarts at its first state, and counts that as a restart at `at`.
    pub(super) fn begin_again(&mut self, session: SessionId, not_before: Timestamp, at: Timestamp) {
        let AgentSpec { state, variables, .. } = (*self.birth).clone();
        self.enter(state, Session::fresh(session), variables, at);
        self.task.clone_from(&self.birth.task);
        self.forks = UnjoinedChildren::default();
        self.not_before = Some(not_before);
        self.restarts.push(at);
    }

    /// Forgets the restarts that are older than the period in which they count.
    pub(super) fn forget_restarts(&mut self, period_ms: u64, at: Timestamp) {
        self.restarts.retain(|&restart| at.since(restart) < period_ms);
    }

    /// Counts a turn that has ended, and its cost.
    pub(super) fn count_turn(&mut self, cost: Usd) {
        let visits = self.visits.entry(self.prompt().clone()).or_default();
        *visits = visits.saturating_add(1);
        self.throttles = 0;
        self.cost_usd += cost;
    }
}
