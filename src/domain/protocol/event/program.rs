//! Public events of programs and their roles.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::agent::AgentSpec;
use crate::domain::id::{Folder, MessageId, SessionId, StateName};
use crate::domain::program_execution::{RequestStatus, RoleRequest};
use crate::domain::transition::Variables;
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

mirror_of_event! {
    /// An execution of a program begins.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "ProgramStarted")]
    pub struct PublicProgramStarted of ProgramStarted {
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
}

mirror_of_event! {
    /// An execution logs a line for people.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "ProgramLogged")]
    pub struct PublicProgramLogged of ProgramLogged {
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
}

mirror_of_event! {
    /// An execution asks a role something.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "RoleRequested")]
    pub struct PublicRoleRequested of RoleRequested {
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
}

mirror_of_event! {
    /// A role has answered.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "RoleResponded")]
    pub struct PublicRoleResponded of RoleResponded {
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
}

mirror_of_event! {
    /// A role delegates a request to a further agent.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
    #[schemars(rename = "RoleDelegated")]
    pub struct PublicRoleDelegated of RoleDelegated {
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
}
