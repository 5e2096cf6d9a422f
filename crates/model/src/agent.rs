//! One live agent as data: its state, its pending returns, and the input of its next turn.
//!
//! An agent that waits costs only this; actors and processes come and go around it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::execution::AgentExecution;
pub use self::person_orders::{AgentVisit, PersonMessage, PersonOrders, TurnHold};
use super::approval::StepApprovals;
use super::graph_execution::{PromptTask, WaitResult};
use super::id::{AgentId, ScopePath, SessionId, StateName};
use super::join::{PendingJoin, UnjoinedChildren};
use super::money::Usd;
use super::session::Session;
use super::time::Timestamp;
use super::transition::{TransitionProposal, Variables};
use super::turn::{FailureCause, TurnId};
pub use crate::agent::execution::{ReturnFrame, VisitCounts};
use crate::approval::PendingApproval;
use crate::host::HostLabel;
use crate::id::{Folder, MessageId};
use crate::question::Question;
use crate::supervision::SupervisionOverrides;
use crate::transition::AskTimeout;
use crate::worktree_snapshot::WorkingDir;

mod execution;
mod person_orders;

/// A live agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
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
    /// The text with which a person has replaced the state's prompt, for the turns of its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited_prompt: Option<String>,
    /// The reply that a person has given instead of the turn of its step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_reply: Option<String>,
    /// The stage of the step: the pending work, or the wait before it.
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

    /// Returns the identity of the pending turn.
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

    pub(crate) fn turn_session_mut(&mut self) -> &mut Session {
        match &mut self.stage {
            StepStage::Evaluation { proposal, .. } => &mut proposal.session,
            _ => &mut self.session,
        }
    }

    /// Returns the values for the placeholders of its state: its own, overridden by those the state was
    /// entered with.
    pub fn placeholder_values(&self) -> Variables {
        let spawned = self.spec.spawn_variables().chain(&self.variables);
        spawned.map(|(name, value)| (name.clone(), value.clone())).collect()
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
        let is_awaited =
            || self.awaited_agent().into_iter().chain(self.roles()).any(|id| id.as_str() == child);
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

// The spec an agent is created from, and the settings of its whole life.

/// The spec of an agent, to which a permanent agent returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentSpec {
    /// Its first state.
    pub state: StateName,
    /// The folder of that state below the scope, if it is not the scope itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// Its task, if it is not asked the state's prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<PromptTask>>,
    /// The directory its turns run in.
    #[serde(flatten)]
    pub working_dir: WorkingDir,
    /// The commit its worktree begins at, if it gets one; by default its parent's commit at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The variables it is born with.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// The settings of its whole life.
    #[serde(flatten)]
    pub options: AgentOptions,
}

/// The settings that an agent's first state gives for its whole life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentOptions {
    /// The supervision settings that differ from the run's.
    #[serde(default, skip_serializing_if = "SupervisionOverrides::is_empty")]
    pub supervision: SupervisionOverrides,
    /// The limit for it and all it forks; the run's budget applies as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// The agent gets a git worktree of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub worktree: bool,
    /// No snapshots of that worktree are made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_snapshots: bool,
    /// The label of the hosts that it may live on, if the run works on several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostLabel>,
}

/// The placeholders that say what has led an agent to its state. They are never its own variables.
pub const OCCASIONAL_PLACEHOLDERS: [&str; 7] =
    ["result", "answer", "ask_id", "results", "results_file", "output", "transition"];

impl AgentSpec {
    /// Returns the state it begins in, as people see it; with a task, the node that it is for.
    pub fn shown_state(&self) -> StateName {
        self.first_place().shown_in(self.folder.as_ref())
    }

    /// Returns the name of its task, if it has one.
    fn task_name(&self) -> Option<&StateName> {
        self.task.as_ref().map(|task| &task.name)
    }

    /// Returns its first state, or the name of its task.
    pub(crate) fn first_place(&self) -> &StateName {
        self.task_name().unwrap_or(&self.state)
    }

    /// Returns the variables that stay with the agent in all its states.
    pub fn spawn_variables(&self) -> impl Iterator<Item = (&String, &String)> {
        let stays = |name: &str| !OCCASIONAL_PLACEHOLDERS.contains(&name);
        self.variables.iter().filter(move |(name, _)| stays(name))
    }

    /// Creates a spec for a state, without its own values or settings.
    pub fn plain(state: StateName) -> Self {
        Self {
            state,
            folder: None,
            task: None,
            working_dir: WorkingDir::default(),
            base: None,
            variables: Variables::new(),
            options: AgentOptions::default(),
        }
    }
}

// The question that an agent waits to have answered, and its timeout.

/// A question an agent waits to have answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedQuestion {
    pub question: Question,
    /// The time it was asked.
    pub since: Timestamp,
    /// The deadline of the answer, and the state the agent enters if none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<QuestionTimeout>,
}

/// The timeout of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionTimeout {
    /// The deadline of the answer.
    pub at: Timestamp,
    /// The state the agent enters then.
    pub state: StateName,
}

impl QuestionTimeout {
    /// Creates the timeout of a question that is asked now.
    pub(crate) fn after(timeout: &AskTimeout, now: Timestamp) -> Self {
        Self { at: now.plus(timeout.timeout_ms), state: timeout.timeout_next.clone() }
    }
}

// The text that the next turn of an agent is asked: a reminder, the prompt of its state, or what a person has made of
// them.

impl Agent {
    /// Returns the text that its next turn is asked: the reminder if there is one, else the prompt. A person may have
    /// edited that of the state, but not that of an evaluator.
    pub fn asked_text(&self, prompt: String) -> String {
        let edited = self.edited_prompt.as_ref().filter(|_| self.proposal().is_none());
        self.reminder.as_ref().or(edited).cloned().unwrap_or(prompt)
    }

    /// Replaces the text that its next turn is asked with the text of a person.
    pub(crate) fn edit_asked_text(&mut self, text: String) {
        match &mut self.reminder {
            Some(reminder) => *reminder = text,
            None => self.edited_prompt = Some(text),
        }
    }
}

// The stage of an agent's step: the pending work, or the wait before it. An agent is in one stage at a time.

/// The stage of an agent's step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepStage {
    /// The work of its state is due: a turn with the state's prompt, or an advance of its graph or program.
    State {
        /// The outcomes of the agents it joined: `{{results}}` of its state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        results: Option<Arc<str>>,
    },
    /// A turn with this task is due instead of one with the state's prompt.
    Task(Box<PromptTask>),
    /// The state's evaluator checks the transition that the agent asked for.
    Evaluation {
        /// The transition it asked for.
        proposal: Box<TransitionProposal>,
        /// The outcomes of the agents it joined before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        results: Option<Arc<str>>,
    },
    /// It waits. No turn is due before that is over.
    Waiting(AgentWait),
    /// Its wait is over, and its graph or the program it serves is to be given the result.
    WaitOver(Box<WaitResult>),
}

/// The wait of an agent for a person or for other agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentWait {
    /// For the answer to its question.
    Answer(Box<AskedQuestion>),
    /// For the end of this agent.
    Agent(AgentId),
    /// For the ends of agents it has forked.
    Join(Box<PendingJoin>),
}

impl Default for StepStage {
    /// Returns the stage at which a step begins.
    fn default() -> Self {
        Self::State { results: None }
    }
}

impl StepStage {
    /// Returns whether a step begins at it.
    pub fn is_first(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the first stage of a step, with its task if it has one.
    fn first(task: Option<&PromptTask>) -> Self {
        task.map_or_else(Self::default, |task| Self::Task(Box::new(task.clone())))
    }

    /// Returns the wait; `None` if the agent does not wait.
    pub fn wait(&self) -> Option<&AgentWait> {
        match self {
            Self::Waiting(wait) => Some(wait),
            Self::State { .. } | Self::Task(_) | Self::Evaluation { .. } | Self::WaitOver(_) => {
                None
            }
        }
    }

    /// Returns the task; `None` if the pending turn is about something else.
    pub fn task(&self) -> Option<&PromptTask> {
        match self {
            Self::Task(task) => Some(task),
            Self::State { .. } | Self::Evaluation { .. } | Self::Waiting(_) | Self::WaitOver(_) => {
                None
            }
        }
    }

    /// Returns the transition that the evaluator checks, if it does.
    pub fn proposal(&self) -> Option<&TransitionProposal> {
        match self {
            Self::Evaluation { proposal, .. } => Some(proposal),
            Self::State { .. } | Self::Task(_) | Self::Waiting(_) | Self::WaitOver(_) => None,
        }
    }

    /// Returns the outcomes of the agents that were joined in this step.
    pub fn results(&self) -> Option<&Arc<str>> {
        match self {
            Self::State { results } | Self::Evaluation { results, .. } => results.as_ref(),
            Self::Task(_) | Self::Waiting(_) | Self::WaitOver(_) => None,
        }
    }

    /// Returns the result of the wait that is over.
    pub fn wait_result(&self) -> Option<&WaitResult> {
        match self {
            Self::WaitOver(result) => Some(result),
            Self::State { .. } | Self::Task(_) | Self::Evaluation { .. } | Self::Waiting(_) => None,
        }
    }
}

impl AgentWait {
    /// Returns the question, if it waits for an answer.
    pub fn question(&self) -> Option<&AskedQuestion> {
        match self {
            Self::Answer(asked) => Some(asked),
            Self::Agent(_) | Self::Join(_) => None,
        }
    }

    /// Returns the agent it waits for, if it waits for one.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(other) => Some(other),
            Self::Answer(_) | Self::Join(_) => None,
        }
    }

    /// Returns the join, if it waits for agents it has forked.
    pub fn join(&self) -> Option<&PendingJoin> {
        match self {
            Self::Join(join) => Some(join),
            Self::Answer(_) | Self::Agent(_) => None,
        }
    }
}

// The turn of an agent that was ended while tool calls needed approval, and goes on after the answers.

impl Agent {
    /// Returns the approvals that wait for an answer: of the running turn, or of a turn that was ended.
    pub fn open_approvals(&self) -> impl Iterator<Item = &PendingApproval> {
        self.approvals.open(self.turn)
    }

    /// Returns whether its next turn waits for the approval of tool calls.
    pub fn awaits_approval(&self) -> bool {
        self.approvals.hold_next_turn()
    }

    /// Ends its turn, which goes on in the next one in the same session. These calls had no answer; if that is
    /// `unsure`, those that were allowed may have run.
    pub(crate) fn suspend_turn(
        &mut self,
        message: Option<MessageId>,
        calls: &[String],
        unsure: bool,
    ) {
        let session = self.turn_session_mut();
        *session = session.after_turn(message);
        self.approvals.suspend(self.turn, calls, unsure);
        self.turn = self.turn.saturating_add(1);
        self.end_timed_hold();
    }

    /// Lets the turn that was ended go on, with the answers in its prompt.
    pub(crate) fn resume_suspended(&mut self) {
        self.reminder = Some(self.approvals.resume());
    }
}
