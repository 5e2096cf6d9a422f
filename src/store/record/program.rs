//! Stored events of programs and their roles.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::agent::AgentSpec;
use crate::domain::id::{Folder, MessageId, SessionId, StateName};
use crate::domain::program_execution::{RequestStatus, RoleRequest};
use crate::domain::transition::Variables;
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

two_way_mirror_of_event! {
    /// An execution of a program begins.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredProgramStarted of ProgramStarted {
        /// The agent that runs it, and its step.
        #[serde(flatten)]
        turn: TurnId,
        /// The program's file.
        state: StateName,
        /// The checksum of the program's text.
        program: Arc<str>,
        /// The program's name.
        name: String,
        /// `@label`
        label: String,
        /// `@branch`
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
        /// `@context/x`
        #[serde(default, skip_serializing_if = "Variables::is_empty")]
        context: Variables,
        /// The state it begins in.
        start: Arc<str>,
    }
}

two_way_mirror_of_event! {
    /// An execution logs a line for people.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredProgramLogged of ProgramLogged {
        /// The agent and its step.
        #[serde(flatten)]
        turn: TurnId,
        /// The program's file.
        file: StateName,
        /// The text of the line.
        text: String,
        /// The line is a warning.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        warning: bool,
    }
}

two_way_mirror_of_event! {
    /// An execution asks a role something.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredRoleRequested of RoleRequested {
        /// The execution's step.
        #[serde(flatten)]
        turn: TurnId,
        /// The program's file.
        file: StateName,
        /// The handle of the role's session.
        handle: String,
        /// The request.
        #[serde(flatten)]
        request: RoleRequest,
        /// The session of the handle's agent, if it is created with this request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new_session: Option<SessionId>,
        /// The directory that agent works in, below that of the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<Folder>,
    }
}

two_way_mirror_of_event! {
    /// A role has answered.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredRoleResponded of RoleResponded {
        /// The role's turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The name of its prompt: the program's file and the role.
        state: StateName,
        /// The request's id.
        request: String,
        /// The request's name.
        name: String,
        /// The outcome of the request.
        response: RequestStatus,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
        /// The session it ran in.
        session_id: SessionId,
        /// The last message of the turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        /// Claude Code was not asked: the answer is from another agent or a plug-in.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        without_turn: bool,
    }
}

two_way_mirror_of_event! {
    /// A role delegates a request to a further agent.
    #[derive(Debug, Serialize, Deserialize)]
    pub(super) struct StoredRoleDelegated of RoleDelegated {
        /// The role's step.
        #[serde(flatten)]
        turn: TurnId,
        /// The name of its prompt: the program's file and the role.
        state: StateName,
        /// The request's id.
        request: String,
        /// The spec of that agent.
        spec: Box<AgentSpec>,
        /// Its session.
        new_session: SessionId,
    }
}
