//! Records of programs, under the names people know from the language: what an instance does, what it asks
//! its roles and what they answer, and the facts that are seen.
//!
//! One input is one moment: the requests and the lines that follow from it come first, and the
//! `workflow/state` that says where the instance stands then ends the step. They are durable together.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::agent::AgentSpec;
use crate::domain::id::{Folder, MessageId, SessionId, StateName};
use crate::domain::instance::{ProgramPosition, ProgramSource, RequestStatus, RoleRequest};
use crate::domain::money::Usd;
use crate::domain::refusal::ToolRefusals;
use crate::domain::transition::Variables;
use crate::domain::turn::TurnId;
use crate::domain::usage::UsageByModel;

/// An instance of a program begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceBegun {
    /// The agent that carries it out, and its step.
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
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: Variables,
    /// The state it begins in.
    pub start: Arc<str>,
}

/// An instance has come as far as it can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowAdvanced {
    /// Whose step it was.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The program's file.
    pub file: StateName,
    /// The program's state it is in.
    pub state: Arc<str>,
    /// Whether it goes on.
    pub status: ProgramStatus,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaiting: Option<String>,
    /// The round of the innermost loop it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// How far it has come.
    pub stand: ProgramPosition,
    /// What it took by a name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound: BTreeMap<String, String>,
    /// The commits that work is compared with from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bases: Option<BTreeMap<String, Option<String>>>,
}

/// Whether an instance goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProgramStatus {
    /// It has something done for it.
    Running,
    /// It waits.
    Waiting,
    /// It has come to its end.
    Completed,
    /// It has failed.
    Failed,
}

/// An instance says something for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowLogged {
    /// Whose step it was.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The program's file.
    pub file: StateName,
    /// What it says.
    pub text: String,
    /// Whether someone should look at it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warning: bool,
}

/// An instance asks a role something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRequested {
    /// The instance's step.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The program's file.
    pub file: StateName,
    /// The handle of the role's session.
    pub handle: String,
    /// What is asked.
    #[serde(flatten)]
    pub asking: RoleRequest,
    /// The session of the handle's agent, if it is born with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<SessionId>,
    /// The directory that agent works in, below that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Folder>,
}

/// A role has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentResponded {
    /// The role's turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The name of its prompt: the program's file and the role.
    pub state: StateName,
    /// The request's id.
    pub request: String,
    /// The request's name.
    pub name: String,
    /// What came of it.
    pub response: RequestStatus,
    /// What it cost.
    pub cost_usd: Usd,
    /// What was taken of each model for that.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The session it ran in.
    pub session_id: SessionId,
    /// The last message of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// Claude Code was not asked: the answer is that of another agent, or of a plug-in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

/// A role has a further agent do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleDelegated {
    /// The role's step.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The name of its prompt: the program's file and the role.
    pub state: StateName,
    /// The request's id.
    pub request: String,
    /// With what the agent begins.
    pub birth: Box<AgentSpec>,
    /// Its session.
    pub opens: SessionId,
}

/// The text of a program, as it is carried out from now on.
pub type WorkflowDefined = ProgramSource;
