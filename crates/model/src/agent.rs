//! One live agent as data: its state, its pending returns, and the input of its next turn.
//!
//! An agent that waits costs only this; actors and processes come and go around it.

mod agent_spec;
mod asked_question;
mod execution;
mod person_orders;
mod progress;
mod retry;
mod return_frame;
mod stage;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::agent_spec::{AgentOptions, AgentSpec, OCCASIONAL_PLACEHOLDERS};
pub use self::asked_question::{AskedQuestion, QuestionTimeout};
pub use self::execution::AgentExecution;
pub use self::person_orders::TurnHold;
pub use self::person_orders::{AgentVisit, PersonMessage, PersonOrders};
pub use self::progress::VisitCounts;
pub use self::return_frame::ReturnFrame;
pub use self::stage::{AgentWait, StepStage};
use super::approval::StepApprovals;
use super::evaluation::TransitionProposal;
use super::graph_execution::{PromptTask, WaitResult};
use super::id::{AgentId, ScopePath, SessionId, StateName};
use super::join::{PendingJoin, UnjoinedChildren};
use super::money::Usd;
use super::session::Session;
use super::time::Timestamp;
use super::transition::Variables;
use super::turn::{FailureCause, TurnId};

/// A live agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// The state it is in.
    pub current_state: StateName,
    /// The folder it has gone to, from the run's root, if that is not the folder of its first state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopePath>,
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
    /// The text that a person has put in the place of the state's prompt, for the turns of its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_prompt: Option<String>,
    /// The reply that a person has given in the place of the turn of its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_reply: Option<String>,
    /// The stage of the step: the work that is due, or the wait before it.
    #[serde(default, skip_serializing_if = "StepStage::is_first")]
    pub stage: StepStage,
    /// The tool calls of its step that need approval.
    #[serde(default, skip_serializing_if = "StepApprovals::is_empty")]
    pub approvals: StepApprovals,
    /// The hold on its next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<TurnHold>,
    /// The orders of people to it.
    #[serde(default, skip_serializing_if = "PersonOrders::is_empty")]
    pub orders: PersonOrders,
    /// The execution of its state: of prompts, of a graph or a program, or as a role of a program.
    #[serde(default, skip_serializing_if = "AgentExecution::is_prompts")]
    pub execution: AgentExecution,
    /// The agents it has forked and not joined.
    #[serde(default, skip_serializing_if = "UnjoinedChildren::is_empty")]
    pub unjoined: UnjoinedChildren,
    /// The variables that the current state was entered with.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// The number of agents it has forked.
    #[serde(default)]
    pub forked_count: u32,
    /// The number of turns it has had in each state.
    #[serde(default, skip_serializing_if = "VisitCounts::is_empty")]
    pub visits: VisitCounts,
    /// The number of scripts in a row that it has run since the last turn or answer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub script_steps: u32,
    /// The times of its recent restarts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<Timestamp>,
    /// The number of turns in a row that failed with its last cause.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttles: u32,
    /// The cause with which its last turn failed, until a turn of it ends well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<FailureCause>,
    /// The time it entered its current state.
    pub since: Timestamp,
    /// The end of its last turn, if it has had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn_ended: Option<Timestamp>,
    /// The cost of its turns.
    #[serde(default)]
    pub cost_usd: Usd,
    /// The agent before the record that fails it, if that is not the record of its end: a retry begins there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_point: Option<Box<Agent>>,
    /// The spec it was created from.
    pub spec: Box<AgentSpec>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Agent {
    /// Creates an agent from its spec.
    pub fn from_spec(
        id: AgentId,
        mut spec: AgentSpec,
        session: SessionId,
        since: Timestamp,
    ) -> Self {
        if spec.options.worktree {
            spec.working_dir.tree = Some(id.clone());
            spec.working_dir.unsnapshotted = spec.options.no_snapshots;
        }
        Self {
            id,
            current_state: spec.state.clone(),
            scope: None,
            session: Session::fresh(session),
            stack: Vec::new(),
            step: 1,
            turn: 0,
            reminders: 0,
            reminder: None,
            edited_prompt: None,
            given_reply: None,
            stage: StepStage::first(spec.task.as_deref()),
            approvals: StepApprovals::default(),
            hold: None,
            orders: PersonOrders::default(),
            execution: AgentExecution::Prompts,
            unjoined: UnjoinedChildren::default(),
            variables: spec.variables.clone(),
            forked_count: 0,
            visits: VisitCounts::default(),
            script_steps: 0,
            restarts: Vec::new(),
            throttles: 0,
            last_failure: None,
            since,
            last_turn_ended: None,
            cost_usd: Usd::ZERO,
            retry_point: None,
            spec: Box::new(spec),
        }
    }

    /// Returns the identity of the turn that is due.
    pub fn turn_id(&self) -> TurnId {
        TurnId { agent: self.id.clone(), step: self.step, turn: self.turn }
    }

    /// Returns the sessions it can still resume: its own, and those of its pending returns.
    pub fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        let evaluator = self.proposal().map(|proposal| &proposal.session.id);
        let returns = self.stack.iter().map(|frame| &frame.session);
        std::iter::once(&self.session.id).chain(evaluator).chain(returns)
    }

    /// Returns the prompt of its next turn: its state's, its evaluator's, or that of a node.
    pub fn prompt(&self) -> &StateName {
        let task = self.task().map(|task| &task.name);
        let evaluator = self.proposal().map(|proposal| &proposal.evaluator);
        evaluator.or(task).unwrap_or(&self.current_state)
    }

    /// Returns the session its next turn runs in: its own, or the evaluator's.
    pub fn turn_session(&self) -> &Session {
        self.proposal().map_or(&self.session, |proposal| &proposal.session)
    }

    /// Returns the values for the placeholders of its state: its own, overridden by those the state was
    /// entered with.
    pub fn placeholder_values(&self) -> Variables {
        let own = self.spec.own_variables().chain(&self.variables);
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns its place, for people: its state; in a graph the node, also for an agent that a node has started for a
    /// task; in a program the state or the role.
    pub fn place(&self) -> StateName {
        let within = match &self.execution {
            AgentExecution::Prompts => {
                return self.spec.task_name().unwrap_or(&self.current_state).clone();
            }
            AgentExecution::Other(_) => {
                return self.current_state.clone();
            }
            AgentExecution::Graph(graph) => &*graph.state.current_node,
            AgentExecution::Program(program) => &*program.position.current,
            AgentExecution::Role(mailbox) => mailbox.role.as_str(),
        };
        let place = StateName::parse(&format!("{}#{within}", self.current_state));
        place.unwrap_or_else(|_| self.current_state.clone())
    }

    /// Returns whether it has forked agents that its state may wait for.
    pub fn may_join(&self) -> bool {
        !self.unjoined.is_empty() && self.results().is_none()
    }

    /// Returns whether it waits: for an answer or an approval, for other agents, for its program's condition, or, as a
    /// role, for a request.
    pub fn waits(&self) -> bool {
        self.stage.wait().is_some()
            || self.awaits_approval()
            || self.program_wait().is_some()
            || self.mailbox().is_some_and(|mailbox| mailbox.current.is_none())
    }

    /// Returns whether its first turn is still due.
    pub fn is_new(&self) -> bool {
        (self.step, self.turn) == (1, 0)
    }

    /// Returns the number of its calls that the work of a child counts to, the outermost first. A child that it has
    /// neither forked and not joined nor waits for counts to none.
    pub fn depth_of(&self, child: &str) -> usize {
        let number = child.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
        let roles = || self.program().into_iter().flat_map(|program| program.handles.values());
        let is_awaited =
            || self.awaited_agent().into_iter().chain(roles()).any(|id| id.as_str() == child);
        let forked = number.and_then(|number| self.unjoined.depth_of(number));
        forked.unwrap_or_else(|| if is_awaited() { self.stack.len() } else { 0 })
    }

    /// Returns the level from which on a join waits for its agents: the number of its pending returns, and one more
    /// in a graph or another language, whose joins do not wait for agents that prompts before it have forked.
    pub fn join_depth(&self) -> usize {
        self.stack.len() + usize::from(self.execution.takes_results())
    }

    /// Returns the number of turns it has had with its current prompt.
    pub fn visit(&self) -> u32 {
        self.visits.of(&self.visited(self.prompt()))
    }

    /// Returns the question it waits to have answered.
    pub fn question(&self) -> Option<&AskedQuestion> {
        self.stage.wait()?.question()
    }

    /// Returns the agent whose end it waits for.
    pub fn awaited_agent(&self) -> Option<&AgentId> {
        self.stage.wait()?.agent()
    }

    /// Returns the join it waits for.
    pub fn pending_join(&self) -> Option<&PendingJoin> {
        self.stage.wait()?.join()
    }

    /// Returns the outcomes of the agents it joined: `{{results}}` of its state.
    pub fn results(&self) -> Option<&Arc<str>> {
        self.stage.results()
    }

    /// Returns the task its next turn sends instead of the state's prompt.
    pub fn task(&self) -> Option<&PromptTask> {
        self.stage.task()
    }

    /// Returns the transition it asked for, while the state's evaluator checks it.
    pub fn proposal(&self) -> Option<&TransitionProposal> {
        self.stage.proposal()
    }

    /// Returns the result of its last wait, which its graph or program is to be given.
    pub fn wait_result(&self) -> Option<&WaitResult> {
        self.stage.wait_result()
    }
}
