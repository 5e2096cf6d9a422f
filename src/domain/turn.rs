//! One Claude turn: its identity, what it is given, what it comes to.
//!
//! A step is an agent's stay in one state; it takes one turn, or more when a reply has to be
//! repaired or a turn has to be run again. [`StepInput`] and [`StepOutcome`] are what crosses to
//! whoever runs a turn: plain data, versioned, without an address, a process id or a path.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::home::WorkingDir;
use super::id::{AgentId, Folder, MessageId, StateName};
use super::model::ModelName;
use super::money::Usd;
use super::refusal::{ToolRefusals, closing_line};
use super::session::Session;
use super::supervision::TurnTimeouts;
use super::time::Timestamp;
use super::transition::Variables;
use super::turn_options::{OnDenied, TurnOptions};
use super::usage::UsageByModel;

/// The version of [`StepInput`] and [`StepOutcome`].
pub const STEP_VERSION: u32 = 1;

/// The identity of a turn: nothing that repeats it or comes late can be taken for another.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct TurnId {
    /// Whose turn it is.
    pub agent: AgentId,
    /// The agent's step, counted from 1.
    pub step: u64,
    /// The turn within the step, counted from 0.
    pub turn: u32,
}

impl TurnId {
    /// A text that serves as the name of the turn's files: `main.2-3-0`.
    #[must_use]
    pub fn stem(&self) -> String {
        format!("{}-{}-{}", self.agent.file_name(), self.step, self.turn)
    }
}

impl fmt::Display for TurnId {
    /// The step as people name it, `main.2#3`, and the turn if it is not the first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.agent, self.step)?;
        if self.turn > 0 { write!(f, " (turn {})", self.turn + 1) } else { Ok(()) }
    }
}

/// What a turn is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepInput {
    /// [`STEP_VERSION`].
    pub version: u32,
    /// Which turn it is.
    pub turn: TurnId,
    /// The state it runs in.
    pub state: StateName,
    /// The folder of that state below the scope, if it is not the scope itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// Where it runs.
    #[serde(flatten)]
    pub home: WorkingDir,
    /// Whether the prompt names the file with what came of the agents it has waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reads_results: bool,
    /// How many turns this agent has had in this state before.
    pub visit: u32,
    /// The session it runs in.
    pub session: Session,
    /// The model, or the one Claude Code would take by itself.
    pub model: Option<ModelName>,
    /// What else the state needs of Claude Code.
    #[serde(default, skip_serializing_if = "TurnOptions::is_empty")]
    pub options: TurnOptions,
    /// What it may spend at the most; then its answer is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<Usd>,
    /// The JSON schema that its answer is checked against, if it is to be an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// How long it may take.
    pub limits: TurnTimeouts,
    /// The whole prompt.
    pub prompt: String,
    /// What filled its placeholders, and fills those of a scripted reply.
    pub values: Variables,
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// The model answered.
    Replied(TurnReply),
    /// There is no answer.
    Failed(TurnFailure),
}

/// The answer of a model, and what it took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnReply {
    /// The final message.
    pub text: String,
    /// The object that it gave by the program's own tool for that, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<String>,
    /// What it cost.
    pub cost: Usd,
    /// What was taken of each model for that.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The last message of the turn, to which the session can be cut back.
    pub message: Option<MessageId>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnFailure {
    /// The kind of failure, which decides what follows.
    pub cause: FailureCause,
    /// What happened, for people.
    pub message: String,
    /// What it cost all the same.
    pub cost: Usd,
    /// What was taken of each model for that.
    #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
    pub usage: UsageByModel,
    /// The tools that were refused in it.
    #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
    pub refused_tools: ToolRefusals,
    /// The model was at work, and nobody said what that cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
    /// When the limit that was met resets, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets: Option<Timestamp>,
}

impl TurnFailure {
    /// A failure that cost nothing.
    #[must_use]
    pub fn new(cause: FailureCause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            cost: Usd::ZERO,
            unsettled: false,
            usage: UsageByModel::default(),
            refused_tools: ToolRefusals::default(),
            resets: None,
        }
    }

    /// Turns a reply into the failure of an agent whose state fails when a tool is refused; `None` if
    /// none was, or the state goes on.
    #[must_use]
    pub fn of_refused_tools(reply: &TurnReply, on_denied: OnDenied) -> Option<Self> {
        match on_denied {
            OnDenied::Continue => None,
            OnDenied::Fail => closing_line(&reply.refused_tools).map(|line| Self {
                cost: reply.cost,
                usage: reply.usage.clone(),
                refused_tools: reply.refused_tools.clone(),
                ..Self::new(FailureCause::ToolRefused, format!("{line} (on_denied: fail)"))
            }),
        }
    }
}

/// The kinds of failure, told apart because each has its own consequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureCause {
    /// The process ended without an answer, or the API failed.
    Crash,
    /// The turn took longer than it may.
    Timeout,
    /// The turn went on without any progress for longer than it may.
    Stall,
    /// The API asked for fewer requests, or had no room, until the program gave up.
    Throttle,
    /// The account has used up what it may use for now.
    UsageLimit,
    /// The runtime's own code failed while it served this agent.
    Panic,
    /// The runtime ended the turn because it was told to stop.
    Interrupted,
    /// An earlier runtime died, and the turn with it.
    Lost,
    /// The request was refused in a way that repeating it would not change.
    Rejected,
    /// What the process printed cannot be used, and would not be better a second time.
    Output,
    /// The reply breaks the protocol and could not be repaired.
    Protocol,
    /// The state's file cannot be used.
    Workflow,
    /// A permanent agent ended more often than it may begin again.
    Restarts,
    /// What it may spend is spent.
    Budget,
    /// A plug-in stopped it.
    Stopped,
    /// A graph came to an ending that is an error.
    Ending,
    /// Too many of the agents it waited for failed, or they did not end in time.
    Join,
    /// The agent that waited for it goes on without it.
    Unneeded,
    /// A runtime died while it changed the world, and nobody can say whether that was done.
    Uncertain,
    /// The files of the turn cannot be written.
    Storage,
    /// A tool was refused in a state that fails then.
    ToolRefused,
    /// Claude Code is not logged in.
    Authentication,
    /// Claude Code cannot be started.
    Unavailable,
}

impl FailureCause {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::Crash,
        Self::Timeout,
        Self::Stall,
        Self::Throttle,
        Self::UsageLimit,
        Self::Panic,
        Self::Interrupted,
        Self::Lost,
        Self::Rejected,
        Self::Output,
        Self::Protocol,
        Self::Workflow,
        Self::Restarts,
        Self::Budget,
        Self::Stopped,
        Self::Ending,
        Self::Join,
        Self::Unneeded,
        Self::Uncertain,
        Self::Storage,
        Self::ToolRefused,
        Self::Authentication,
        Self::Unavailable,
    ];
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Crash => "crash",
            Self::Timeout => "timeout",
            Self::Stall => "stall",
            Self::Throttle => "throttled",
            Self::UsageLimit => "usage limit",
            Self::Panic => "panic",
            Self::Interrupted => "interrupted",
            Self::Lost => "lost",
            Self::Rejected => "rejected",
            Self::Output => "unusable output",
            Self::Protocol => "protocol",
            Self::Workflow => "workflow",
            Self::Restarts => "restarts used up",
            Self::Budget => "budget used up",
            Self::Stopped => "stopped",
            Self::Ending => "error ending",
            Self::Join => "join",
            Self::Unneeded => "no longer needed",
            Self::Uncertain => "uncertain effect",
            Self::Storage => "storage",
            Self::ToolRefused => "tool refused",
            Self::Authentication => "not logged in",
            Self::Unavailable => "cannot be started",
        })
    }
}
