//! Events of programs.
//!
//! These are the actions of an execution, requests to its roles, their answers, and changes of facts.
//!
//! One input is one moment: the requests and log lines that follow from it come first, and the advance
//! with the new position of the execution ends the step. They become durable together.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::agent::AgentSpec;
use crate::domain::id::{Folder, MessageId, SessionId, StateName};
use crate::domain::program_execution::{ProgramSource, RequestStatus, RoleRequest};
use crate::domain::transition::Variables;
use crate::domain::turn::TurnCost;
use crate::domain::turn::TurnId;

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
    /// The request.
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
