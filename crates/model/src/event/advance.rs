//! Events of agents that advance by themselves, of programs and their roles, and of agents between their steps.
//!
//! An agent advances in a graph, in a program or in a state of another language. One record holds all that lies between
//! two actions that change the world: what only reads or computes is repeatable. The next action is in the record, so
//! it is durable before it begins.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agent::AgentSpec;
use crate::approval::{ApprovalRequest, ApprovalVerdict};
use crate::event::Event;
use crate::graph_execution::{
    GraphStateChange, LanguagePosition, NodeCursor, NodeExecution, NodeName, ProgramPosition,
    ProgramSource, PromptTask, RequestStatus, RoleRequest,
};
use crate::id::{AgentId, Folder, MessageId, SessionId, StateName};
use crate::join::{Join, JoinOutcome, JoinTally};
use crate::question::{Answer, Question};
use crate::time::Timestamp;
use crate::transition::{Transition, Variables};
use crate::turn::{FailureCause, TurnCost, TurnId};

/// The position that an advance has reached, by language, before it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdvancePosition {
    /// In a graph.
    Graph(Box<GraphProgress>),
    /// In a program.
    Program(Box<ProgramProgress>),
    /// In a state of another language.
    Other(Box<LanguagePosition>),
}

/// The progress of an advance in a graph, before it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphProgress {
    /// The entry, if the graph begins here.
    pub entered: Option<Box<GraphEntry>>,
    /// The checksum of the graph it continues with, if the graph was changed on purpose.
    pub migrated: Option<Arc<str>>,
    /// The nodes that were executed, in order.
    pub visits: Vec<NodeExecution>,
    /// The changes of the nodes to the graph state.
    pub changes: Vec<GraphStateChange>,
    /// The next node, or the node it is in the middle of.
    pub node: NodeName,
    /// The position inside that node.
    pub cursor: NodeCursor,
}

/// The progress of an advance in a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramProgress {
    /// The program's state it is in.
    pub state: Arc<str>,
    /// The status of the execution.
    pub status: ProgramStatus,
    /// The condition it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting: Option<String>,
    /// The round of the innermost loop it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// The position it has reached.
    pub position: ProgramPosition,
    /// The values it bound to names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bindings: BTreeMap<String, String>,
    /// The commits that work is compared with from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bases: Option<BTreeMap<String, Option<String>>>,
}

/// An agent executed nodes of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphAdvanced {
    /// The agent, its step and the last turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The graph's file.
    #[serde(rename = "state")]
    pub file: StateName,
    /// The entry, if the graph begins here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered: Option<Box<GraphEntry>>,
    /// The checksum of the graph it continues with, if the graph was changed on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrated: Option<Arc<str>>,
    /// The nodes that were executed, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<NodeExecution>,
    /// The changes of the nodes to the graph state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<GraphStateChange>,
    /// The lines that people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The next node, or the node it is in the middle of.
    pub node: NodeName,
    /// The position inside that node.
    #[serde(default, skip_serializing_if = "NodeCursor::is_at_start")]
    pub cursor: NodeCursor,
    /// The next action.
    pub next_action: NextAction,
    /// The Claude turn whose result the graph took in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
}

/// An execution has advanced as far as possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramAdvanced {
    /// The agent and its step.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The program's file.
    pub file: StateName,
    /// The position that it has reached, and how.
    #[serde(flatten)]
    pub progress: ProgramProgress,
    /// The lines that people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The next action, if the status and the position do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<NextAction>,
    /// The Claude turn whose result the program took in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
}

/// An agent advanced in a state of another language than those of graphs and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Advanced")]
pub struct LanguageAdvanced {
    /// The agent, its step and the last turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state's file.
    pub file: StateName,
    /// The language, and the position that it has reached.
    #[serde(flatten)]
    pub reached: LanguagePosition,
    /// The lines that people are shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The next action.
    pub next_action: NextAction,
    /// The Claude turn whose result was taken in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Box<FinishedTask>>,
    /// The session that is opened, for the turn or the agent that is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
}

/// The parts that the advances of all languages have in common.
#[derive(Debug, Clone)]
pub struct AdvanceView<'event> {
    /// The agent, its step and the last turn.
    pub turn: &'event TurnId,
    /// The position it has reached.
    pub position: AdvancedTo<'event>,
    /// The lines that people are shown.
    pub shown: &'event [String],
    /// The next action.
    pub next_action: Cow<'event, NextAction>,
    /// The Claude turn whose result was taken in.
    pub task: Option<&'event FinishedTask>,
    /// The session that is opened, for the next turn or agent.
    pub new_session: Option<&'event SessionId>,
}

/// The position of a recorded advance, by language.
#[derive(Debug, Clone, Copy)]
pub enum AdvancedTo<'event> {
    /// In a graph.
    Graph(&'event GraphAdvanced),
    /// In a program.
    Program(&'event ProgramProgress),
    /// In a state of another language.
    Other(&'event LanguagePosition),
}

impl Event {
    /// Returns the advance that the event records, in any language.
    pub fn advance(&self) -> Option<AdvanceView<'_>> {
        match self {
            Self::GraphAdvanced(event) => Some(event.view()),
            Self::ProgramAdvanced(event) => Some(event.view()),
            Self::LanguageAdvanced(event) => Some(event.view()),
            _ => None,
        }
    }
}

impl AdvanceView<'_> {
    /// Returns whether it creates an agent.
    pub fn starts_agent(&self) -> bool {
        matches!(*self.next_action, NextAction::Agent { .. })
    }
}

impl GraphAdvanced {
    /// Returns the parts that it has in common with advances of other languages.
    pub fn view(&self) -> AdvanceView<'_> {
        AdvanceView {
            turn: &self.turn,
            position: AdvancedTo::Graph(self),
            shown: &self.shown,
            next_action: Cow::Borrowed(&self.next_action),
            task: self.task.as_deref(),
            new_session: self.new_session.as_ref(),
        }
    }
}

impl ProgramAdvanced {
    /// Returns the parts that it has in common with advances of other languages.
    pub fn view(&self) -> AdvanceView<'_> {
        AdvanceView {
            turn: &self.turn,
            position: AdvancedTo::Program(&self.progress),
            shown: &self.shown,
            next_action: self.next_action(),
            task: self.task.as_deref(),
            new_session: self.new_session.as_ref(),
        }
    }

    /// Returns the next action.
    pub fn next_action(&self) -> Cow<'_, NextAction> {
        match &self.next_action {
            Some(action) => Cow::Borrowed(action),
            None => Cow::Owned(self.progress.next_action()),
        }
    }
}

impl LanguageAdvanced {
    /// Returns the parts that it has in common with advances of other languages.
    pub fn view(&self) -> AdvanceView<'_> {
        AdvanceView {
            turn: &self.turn,
            position: AdvancedTo::Other(&self.reached),
            shown: &self.shown,
            next_action: Cow::Borrowed(&self.next_action),
            task: self.task.as_deref(),
            new_session: self.new_session.as_ref(),
        }
    }
}

impl ProgramProgress {
    /// Returns the progress up to a position, without any bindings.
    pub fn at(position: ProgramPosition, status: ProgramStatus) -> Self {
        Self {
            state: Arc::clone(&position.current),
            status,
            awaiting: position.due_wait().map(|wait| wait.awaiting.clone()),
            iteration: position.cursor.iter().rev().find_map(|frame| frame.round),
            position,
            bindings: BTreeMap::new(),
            bases: None,
        }
    }

    /// Returns the next action of the program at this position.
    pub fn next_action(&self) -> NextAction {
        match self.status {
            ProgramStatus::Running => match &self.position.activity {
                Some(activity) => NextAction::Operation(activity.name().to_owned()),
                None => NextAction::Walk,
            },
            ProgramStatus::Waiting => NextAction::Wait,
            ProgramStatus::Completed | ProgramStatus::Failed => NextAction::Nothing,
        }
    }
}

/// The inputs with which an agent enters a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GraphEntry {
    /// The graph's name.
    pub workflow_name: String,
    /// The graph's version.
    pub workflow_version: String,
    /// The checksum of its text.
    pub program: Arc<str>,
    pub fields: Map<String, Value>,
}

/// The next action of a graph or a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    /// The next advance.
    Walk,
    /// An activity that changes the world, by its type.
    Operation(String),
    /// A Claude turn.
    Task(Box<PromptTask>),
    /// A person's answer.
    Question(Box<Question>),
    /// The creation of a further agent.
    Agent {
        /// The spec of that agent.
        #[serde(alias = "birth")]
        spec: Box<AgentSpec>,
        /// It continues without waiting for it.
        background: bool,
        /// A join waits for it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        joined: bool,
    },
    /// The ends of the agents that were created for a join.
    Join(Box<Join>),
    /// A condition of a program. Its stored form is the status of the program.
    #[serde(skip)]
    Wait,
    /// No action: it has ended.
    Nothing,
}

/// The Claude turn whose result a graph took in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinishedTask {
    /// The name of its prompt.
    pub prompt: StateName,
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The session it ran in.
    pub session_id: SessionId,
    /// Its last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

// Events of programs: the actions of an execution, requests to its roles, and their answers.
//
// One input is one moment: the requests and log lines that follow from it come first, and the advance with the new
// position of the execution ends the step. They become durable together.

/// An execution of a program begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramStarted {
    /// The agent that runs it, and its step.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The program's file.
    pub state: StateName,
    /// The checksum of the program's text.
    pub program: Arc<str>,
    /// The program's name.
    pub name: String,
    /// `@label`
    pub label: String,
    /// `@branch`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// `@context/x`
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub context: Variables,
    /// The state it begins in.
    pub start: Arc<str>,
}

/// The status of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramStatus {
    /// It runs an activity.
    Running,
    /// It waits.
    Waiting,
    /// It has ended.
    Completed,
    /// It has failed.
    Failed,
}

/// An execution logs a line for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramLogged {
    /// The agent and its step.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The program's file.
    pub file: StateName,
    /// The text of the line.
    pub text: String,
    /// The line is a warning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warning: bool,
}

/// An execution asks a role something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleRequested {
    /// The execution's step.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The program's file.
    pub file: StateName,
    /// The handle of the role's session.
    pub handle: String,
    #[serde(flatten)]
    pub request: RoleRequest,
    /// The session of the handle's agent, if it is created with this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_session: Option<SessionId>,
    /// The directory that agent works in, below that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
}

/// A role has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleResponded {
    /// The role's turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The name of its prompt: the program's file and the role.
    pub state: StateName,
    /// The request's id.
    pub request: String,
    /// The request's name.
    pub name: String,
    /// The outcome of the request.
    pub response: RequestStatus,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The session it ran in.
    pub session_id: SessionId,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// Claude Code was not asked: the answer is from another agent or a plug-in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_turn: bool,
}

/// A role delegates a request to a further agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleDelegated {
    /// The role's step.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The name of its prompt: the program's file and the role.
    pub state: StateName,
    /// The request's id.
    pub request: String,
    /// The spec of that agent.
    pub spec: Box<AgentSpec>,
    /// Its session.
    pub new_session: SessionId,
}

/// The text of a program, as it is run from now on.
pub type ProgramDefined = ProgramSource;

// Events of agents between their steps.
//
// A turn is reminded, retried, held back, suspended, passed to an evaluator, or the agent's last. The agent waits for a
// person's answer or approval, or for the agents it has forked.

/// An agent asked for a transition, and a turn of its state's evaluator comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionProposed {
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The transition the agent asked for.
    pub transition: Transition,
    /// The reply had no tag and the policy left only one way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// The reply, or the end of a long one, which the evaluator is shown.
    pub output: String,
    /// The evaluator's prompt.
    pub evaluator: StateName,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The session it ran in.
    pub session_id: SessionId,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// The texts that the reply shows to people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
    /// The session that is opened for the evaluator.
    pub new_session: SessionId,
}

/// A plug-in holds an agent's next turn back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnHeld {
    /// The turn that is due.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// The plug-in.
    pub by: String,
    /// The earliest start of the turn.
    pub until: Timestamp,
    /// The reason, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A reply broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnRejected {
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The violation in the reply.
    pub violation: String,
    /// The reminder that the agent is sent next.
    pub reminder: String,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

/// A turn failed and is run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnFailed {
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The kind of failure.
    pub cause: FailureCause,
    /// The error.
    pub message: String,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The session in which it is run again; `None` if the same turn continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The earliest start of the next try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// The failure counts as one of the restarts an agent may have.
    pub counts: bool,
}

/// An agent ended with an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFailed {
    /// The last turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// The kind of failure.
    pub cause: FailureCause,
    /// The error, and the advice to fix it.
    pub error: String,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// All other agents end with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_run: bool,
}

/// An agent waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentParked {
    /// The turn that is due when the agent resumes.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it is in.
    pub state: StateName,
    pub reason: String,
}

/// A person answered, or the answer had been given ahead of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent is in.
    pub state: StateName,
    /// The name the question was asked under.
    pub node: String,
    pub answer: Answer,
    /// The number of answers given ahead of time that are used up for this name, if it was one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_answers: Option<u32>,
}

/// A question was not answered in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionTimedOut {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state the agent would have resumed in.
    pub state: StateName,
    /// The state it resumes in.
    pub enters: StateName,
}

/// Claude Code asks whether a tool call may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAsked {
    /// The turn, which runs.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The number of the approval in the run; it is answered under the name `aN`.
    pub number: u32,
    /// The call.
    pub request: Box<ApprovalRequest>,
    /// The earlier approval that lets this call run, and is used up by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<u32>,
}

/// A tool call has been allowed or denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalAnswered {
    /// The turn that is due: the one that runs, or the one that goes on after the answers.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The number of the approval.
    pub number: u32,
    pub tool: String,
    /// The answer.
    #[serde(flatten)]
    pub verdict: ApprovalVerdict,
    /// The plug-in that gave it; absent if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A turn was ended while tool calls needed approval. It goes on in the next turn of its step, in the same session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSuspended {
    #[serde(flatten)]
    pub turn: TurnId,
    /// The prompt of the turn.
    pub state: StateName,
    /// The ids of the calls that had no answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Calls among them that were allowed may have run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
    /// The cost of the turn.
    #[serde(flatten)]
    pub cost: TurnCost,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
}

/// An agent came to a state that waits for the agents it has forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinBegun {
    /// The turn that is due when the agent resumes.
    #[serde(flatten)]
    pub turn: TurnId,
    pub state: StateName,
    /// The join it waits for.
    #[serde(flatten)]
    pub join: Join,
}

/// An agent no longer waits for those it has forked; their outcomes are `{{results}}` in its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JoinFinished {
    /// The turn that is due now.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it waited in.
    pub state: StateName,
    /// The outcome of the join.
    #[serde(alias = "verdict")]
    pub outcome: JoinOutcome,
    /// The counts, by outcome, of the agents it waited for.
    #[serde(flatten)]
    pub tally: JoinTally,
    /// The state it resumes in, if it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enters: Option<StateName>,
    /// The agents that are ended because they are not needed for the join.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<StoppedChild>,
}

/// An agent that was ended because the join of its parent does not need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoppedChild {
    /// The agent's id.
    pub agent: AgentId,
    /// The agent was at a turn, whose cost is still to be counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_work: bool,
}
