//! What can happen to a run: the records of its journal.
//!
//! An event carries all that was chosen when it happened, so that applying it needs neither a
//! clock nor chance: session ids, costs, delays are in it. One step of an agent is one record.

mod graph;
mod join;
mod program;
mod turns;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::graph::{
    GraphEntry, GraphWalked, NextAction, QuestionAnswered, QuestionTimedOut, TurnCost,
};
pub use self::join::{JoinBegun, JoinFinished, StoppedChild};
pub use self::program::{
    AgentRequested, AgentResponded, InstanceBegun, ProgramStatus, RoleDelegated, WorkflowAdvanced,
    WorkflowDefined, WorkflowLogged,
};
pub use self::turns::{
    AgentFailed, AgentParked, TransitionProposed, TurnFailed, TurnHeld, TurnRejected,
};

use super::agent::AgentTerms;
use super::evaluation::OverruledTransition;
use super::fact::FactChange;
use super::fan_out::ForkGroup;
use super::id::{AgentId, MessageId, RunId, SessionId, StateName};
use super::money::Usd;
use super::question::AnswerCommand;
use super::refusal::ToolRefusals;
use super::run::PauseReason;
use super::settings::Settings;
use super::time::Timestamp;
use super::transition::{Transition, Variables};
use super::turn::TurnId;
use super::usage::UsageByModel;

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Record {
    /// Counted from 1 without a gap.
    pub seq: u64,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run began, with its first agent.
    RunStarted(Box<RunStarted>),
    /// An agent took a transition. A `<fork>` is the parent's next step and the child's birth in one.
    StepFinished(StepFinished),
    /// An agent asked for a transition, and its state's evaluator looks at it first.
    TransitionProposed(Box<TransitionProposed>),
    /// An agent walked over nodes of a graph, up to the next thing that changes the world.
    GraphWalked(Box<GraphWalked>),
    /// A question has its answer.
    QuestionAnswered(QuestionAnswered),
    /// A question was not answered in time.
    QuestionTimedOut(QuestionTimedOut),
    /// The text of a program is kept.
    #[serde(rename = "workflow-definition")]
    WorkflowDefined(Box<WorkflowDefined>),
    /// An instance of a program begins.
    #[serde(rename = "workflow-instance")]
    InstanceBegun(Box<InstanceBegun>),
    /// An instance has come as far as it can.
    #[serde(rename = "workflow/state")]
    WorkflowAdvanced(Box<WorkflowAdvanced>),
    /// An instance says something for people.
    #[serde(rename = "workflow/log")]
    WorkflowLogged(WorkflowLogged),
    /// An instance asks a role something.
    #[serde(rename = "agent-request")]
    AgentRequested(Box<AgentRequested>),
    /// A role has answered.
    #[serde(rename = "agent-response")]
    AgentResponded(Box<AgentResponded>),
    /// A role has a further agent do what it was asked.
    RoleDelegated(Box<RoleDelegated>),
    /// An agent came to a state that waits for the agents it has forked.
    JoinBegun(Box<JoinBegun>),
    /// An agent no longer waits for those it has forked.
    Joined(Box<JoinFinished>),
    /// Facts have changed that programs of the run look at.
    FactsSeen {
        /// How.
        changes: Vec<FactChange>,
    },
    /// A plug-in holds an agent's next turn back.
    TurnHeld(TurnHeld),
    /// A reply broke the protocol; the agent is reminded in the same session.
    TurnRejected(TurnRejected),
    /// A turn came to nothing and is run again.
    TurnFailed(TurnFailed),
    /// An agent ended with an error.
    AgentFailed(AgentFailed),
    /// A turn that ran when the whole run ended came to its own end.
    CostCounted {
        /// Which turn.
        #[serde(flatten)]
        turn: TurnId,
        /// What it had cost.
        cost_usd: Usd,
        /// That is what such a turn has cost at the most before: nobody said what this one did.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
        /// What was taken of each model for that.
        #[serde(default, skip_serializing_if = "UsageByModel::is_empty")]
        usage: UsageByModel,
        /// The tools that were refused in it.
        #[serde(default, skip_serializing_if = "ToolRefusals::is_empty")]
        refused_tools: ToolRefusals,
    },
    /// An agent has used up its restarts and waits for a person.
    AgentParked(AgentParked),
    /// The account's usage limit is reached: no turn starts before it resets.
    LimitReached {
        /// When the run goes on by itself.
        until: Timestamp,
        /// What Claude Code said.
        message: String,
    },
    /// The run holds still until it is told to go on.
    RunPaused {
        /// Why.
        pause: PauseReason,
    },
    /// The run goes on, under these settings.
    RunResumed {
        /// What it was told this time.
        settings: Box<Settings>,
    },
    /// A command from outside was taken from the inbox.
    CommandReceived {
        /// The name of the inbox entry, so that one left behind is not taken twice.
        id: String,
        /// What was asked for.
        command: RunCommand,
    },
}

/// The run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    /// The version of the journal.
    pub version: u32,
    /// The run's id.
    pub workflow_id: RunId,
    /// The directory of the workflow's files.
    pub scope_dir: String,
    /// The state the first agent is born in.
    pub entry: StateName,
    /// The session of its first turn.
    pub session: SessionId,
    /// Values for the placeholders of that state.
    #[serde(default, skip_serializing_if = "Variables::is_empty")]
    pub variables: Variables,
    /// The program that agent carries out, if its state is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<Box<WorkflowDefined>>,
    /// Under which terms that agent lives.
    #[serde(flatten)]
    pub terms: AgentTerms,
    /// What the run was told.
    pub settings: Settings,
}

/// An agent took a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepFinished {
    /// Whose step it was, and its last turn.
    #[serde(flatten)]
    pub turn: TurnId,
    /// The state it ran in.
    pub state: StateName,
    /// Where it leads.
    pub transition: Transition,
    /// The reply had no tag and the policy left only one way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub implicit: bool,
    /// What was asked for instead, and who overruled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overruled: Option<Box<OverruledTransition>>,
    /// Claude Code was not asked: a plug-in had decided before, or there was no money for the evaluator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
    /// The evaluator's prompt, if this was its turn: then the cost is its.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluator: Option<StateName>,
    /// What the turn cost.
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
    /// The id of the session this transition opens: the agent's own, or its child's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens: Option<SessionId>,
    /// Under which terms the agent lives that is born here, if it is only one and plain.
    #[serde(flatten)]
    pub terms: Box<AgentTerms>,
    /// The agents that are born here otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub born: Vec<ForkGroup>,
    /// A permanent agent begins again after its result, in the session that is opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reborn: Option<PermanentRestart>,
}

/// A permanent agent begins again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermanentRestart {
    /// Not before this time.
    pub not_before: Timestamp,
}

/// What can be asked of a run from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum RunCommand {
    /// Hold still, and save.
    Stop,
    /// Someone answers a question.
    Answer(AnswerCommand),
}

impl StepFinished {
    /// The prompt that was asked last: the state's, or its evaluator's.
    #[must_use]
    pub fn prompt(&self) -> &StateName {
        self.evaluator.as_ref().unwrap_or(&self.state)
    }
}

impl Event {
    /// The session that is opened, if one is.
    #[must_use]
    pub fn opens(&self) -> Option<&SessionId> {
        match self {
            Self::StepFinished(step) => step.opens.as_ref(),
            Self::TransitionProposed(proposed) => Some(&proposed.opens),
            Self::GraphWalked(walked) => walked.opens.as_ref(),
            Self::AgentRequested(asked) => asked.opens.as_ref(),
            Self::RoleDelegated(delegated) => Some(&delegated.opens),
            _ => None,
        }
    }

    /// The agent this is about, if it is about one.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::StepFinished(event) => Some(&event.turn.agent),
            Self::TransitionProposed(event) => Some(&event.turn.agent),
            Self::GraphWalked(event) => Some(&event.turn.agent),
            Self::QuestionAnswered(event) => Some(&event.turn.agent),
            Self::QuestionTimedOut(event) => Some(&event.turn.agent),
            Self::InstanceBegun(event) => Some(&event.turn.agent),
            Self::WorkflowAdvanced(event) => Some(&event.turn.agent),
            Self::WorkflowLogged(event) => Some(&event.turn.agent),
            Self::AgentRequested(event) => Some(&event.turn.agent),
            Self::AgentResponded(event) => Some(&event.turn.agent),
            Self::RoleDelegated(event) => Some(&event.turn.agent),
            Self::JoinBegun(event) => Some(&event.turn.agent),
            Self::Joined(event) => Some(&event.turn.agent),
            Self::TurnHeld(event) => Some(&event.turn.agent),
            Self::TurnRejected(event) => Some(&event.turn.agent),
            Self::TurnFailed(event) => Some(&event.turn.agent),
            Self::AgentFailed(event) => Some(&event.turn.agent),
            Self::AgentParked(event) => Some(&event.turn.agent),
            Self::CostCounted { turn, .. } => Some(&turn.agent),
            Self::RunStarted(_)
            | Self::WorkflowDefined(_)
            | Self::FactsSeen { .. }
            | Self::LimitReached { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::CommandReceived { .. } => None,
        }
    }
}
