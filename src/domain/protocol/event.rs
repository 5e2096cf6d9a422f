//! The public form of events, for plug-ins and readers of `--json`, and the conversion from the event of the domain.
//!
//! Its names are a promise: another name or another meaning needs another version of the protocol.

mod advance;
mod approval;
mod join;
mod program;
mod question;
mod run;
mod turns;

use schemars::JsonSchema;
use serde::Serialize;

use self::advance::PublicAdvance;
pub use self::advance::{PublicGraphAdvanced, PublicLanguageAdvanced, PublicProgramAdvanced};
pub use self::approval::{PublicApprovalAnswered, PublicApprovalAsked, PublicTurnSuspended};
pub use self::join::{PublicJoinBegun, PublicJoinFinished};
pub use self::program::{
    PublicProgramLogged, PublicProgramStarted, PublicRoleDelegated, PublicRoleRequested,
    PublicRoleResponded,
};
pub use self::question::{PublicQuestionAnswered, PublicQuestionTimedOut};
pub use self::run::{PublicRunBranched, PublicRunStarted, PublicStepFinished};
pub use self::turns::{
    PublicAgentFailed, PublicAgentParked, PublicTransitionProposed, PublicTurnFailed,
    PublicTurnHeld, PublicTurnRejected,
};
use crate::domain::event::{Event, ProgramDefined, Record, RunCommand};
use crate::domain::fact::FactChange;
use crate::domain::home::PlacedAgent;
use crate::domain::host::HostName;
use crate::domain::id::{Folder, MessageId};
use crate::domain::kept_session::KeptSession;
use crate::domain::retry::RetriedAgent;
use crate::domain::run::PauseReason;
use crate::domain::settings::Settings;
use crate::domain::time::Timestamp;
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;
use crate::domain::worktree_snapshot::WorktreeSnapshot;

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Record")]
pub struct PublicRecord {
    /// Counted from 1 without a gap.
    pub seq: u64,
    /// The time of the event.
    pub at: Timestamp,
    /// The folder of its agent's state below the run's root, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// The files of the agent's worktree at the end of the step, if they differ from those of an earlier record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Box<WorktreeSnapshot>>,
    /// The session of the agent's turn, if an engine keeps it, in a run of several machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_session: Option<Box<KeptSession>>,
    /// The agents that are given a host, in a run of several machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed: Vec<PlacedAgent>,
    /// The event.
    #[serde(flatten)]
    pub event: PublicEvent,
}

impl From<Record> for PublicRecord {
    fn from(Record { seq, at, folder, snapshot, kept_session, placed, event }: Record) -> Self {
        Self { seq, at, folder, snapshot, kept_session, placed, event: event.into() }
    }
}

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Event")]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "most records are of finished steps")]
pub enum PublicEvent {
    /// The run began, with its first agent.
    RunStarted(Box<PublicRunStarted>),
    /// An agent took a transition. A `<fork>` is the parent's next step and the child's creation in one.
    StepFinished(PublicStepFinished),
    /// An agent asked for a transition, and its state's evaluator checks it first.
    TransitionProposed(Box<PublicTransitionProposed>),
    /// An agent executed nodes of a graph, up to the next action that changes the world.
    GraphAdvanced(Box<PublicGraphAdvanced>),
    /// A question has its answer.
    QuestionAnswered(PublicQuestionAnswered),
    /// A question was not answered in time.
    QuestionTimedOut(PublicQuestionTimedOut),
    /// Claude Code asks whether a tool call may run.
    ApprovalAsked(PublicApprovalAsked),
    /// A tool call has been allowed or denied.
    ApprovalAnswered(PublicApprovalAnswered),
    /// A turn was ended while tool calls needed approval, and goes on after the answers.
    TurnSuspended(PublicTurnSuspended),
    /// The text of a program is recorded.
    ProgramDefined(Box<ProgramDefined>),
    /// An execution of a program begins.
    ProgramStarted(Box<PublicProgramStarted>),
    /// An execution has advanced as far as possible.
    ProgramAdvanced(Box<PublicProgramAdvanced>),
    /// An agent advanced in a state of another language.
    Advanced(Box<PublicLanguageAdvanced>),
    /// An execution logs a line for people.
    ProgramLogged(PublicProgramLogged),
    /// An execution asks a role something.
    RoleRequested(Box<PublicRoleRequested>),
    /// A role has answered.
    RoleResponded(Box<PublicRoleResponded>),
    /// A role delegates a request to a further agent.
    RoleDelegated(Box<PublicRoleDelegated>),
    /// An agent came to a state that waits for the agents it has forked.
    JoinBegun(Box<PublicJoinBegun>),
    /// An agent no longer waits for those it has forked.
    Joined(Box<PublicJoinFinished>),
    /// Facts have changed that programs of the run read.
    FactsSeen {
        /// The changes.
        changes: Vec<FactChange>,
    },
    /// A plug-in holds an agent's next turn back.
    TurnHeld(PublicTurnHeld),
    /// A reply broke the protocol; the agent is reminded in the same session.
    TurnRejected(PublicTurnRejected),
    /// A turn failed and is run again.
    TurnFailed(PublicTurnFailed),
    /// An agent ended with an error.
    AgentFailed(PublicAgentFailed),
    /// The run branches off another, whose records it shares up to here.
    RunBranched(Box<PublicRunBranched>),
    /// Failed agents live again.
    AgentsRetried {
        /// The agents, parents before their children.
        agents: Vec<RetriedAgent>,
    },
    /// Agents are given a host, or another one; `placed` says which.
    AgentsPlaced {
        /// The hosts that were declared lost, and whose agents go on elsewhere.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<HostName>,
    },
    /// A turn that ran when its agent was ended came to its own end.
    CostCounted {
        /// The turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The cost of the turn.
        #[serde(flatten)]
        cost: TurnCost,
    },
    /// An agent has used up its restarts and waits for a person.
    AgentParked(PublicAgentParked),
    /// The account's usage limit is reached: no turn starts before it resets.
    LimitReached {
        /// The time the run resumes by itself.
        until: Timestamp,
        /// The message from Claude Code.
        message: String,
    },
    /// The run is paused until it is resumed.
    RunPaused {
        /// The reason.
        pause: PauseReason,
    },
    /// The run resumes, under these settings.
    RunResumed {
        /// The settings from now on.
        settings: Box<Settings>,
    },
    /// A command from outside was taken from the inbox.
    CommandReceived {
        /// The name of the inbox entry, so that one left behind is not taken twice.
        id: String,
        /// The command.
        command: RunCommand,
    },
    /// The messages of people to an agent belong to its turn from now on.
    MessagesTaken {
        /// The turn.
        #[serde(flatten)]
        turn: TurnId,
        /// The message that the turn has read while it runs; absent for all, before it begins.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
    },
}

impl From<Event> for PublicEvent {
    fn from(event: Event) -> Self {
        match event {
            Event::RunStarted(event) => Self::RunStarted(boxed(*event)),
            Event::StepFinished(event) => Self::StepFinished(event.into()),
            Event::TransitionProposed(event) => Self::TransitionProposed(boxed(*event)),
            Event::Advanced(event) => match PublicAdvance::from(*event) {
                PublicAdvance::Graph(event) => Self::GraphAdvanced(event),
                PublicAdvance::Program(event) => Self::ProgramAdvanced(event),
                PublicAdvance::Other(event) => Self::Advanced(event),
            },
            Event::QuestionAnswered(event) => Self::QuestionAnswered(event.into()),
            Event::QuestionTimedOut(event) => Self::QuestionTimedOut(event.into()),
            Event::ApprovalAsked(event) => Self::ApprovalAsked(event.into()),
            Event::ApprovalAnswered(event) => Self::ApprovalAnswered(event.into()),
            Event::TurnSuspended(event) => Self::TurnSuspended(event.into()),
            Event::ProgramDefined(event) => Self::ProgramDefined(event),
            Event::ProgramStarted(event) => Self::ProgramStarted(boxed(*event)),
            Event::ProgramLogged(event) => Self::ProgramLogged(event.into()),
            Event::RoleRequested(event) => Self::RoleRequested(boxed(*event)),
            Event::RoleResponded(event) => Self::RoleResponded(boxed(*event)),
            Event::RoleDelegated(event) => Self::RoleDelegated(boxed(*event)),
            Event::JoinBegun(event) => Self::JoinBegun(boxed(*event)),
            Event::JoinFinished(event) => Self::Joined(boxed(*event)),
            Event::FactsSeen { changes } => Self::FactsSeen { changes },
            Event::TurnHeld(event) => Self::TurnHeld(event.into()),
            Event::TurnRejected(event) => Self::TurnRejected(event.into()),
            Event::TurnFailed(event) => Self::TurnFailed(event.into()),
            Event::AgentFailed(event) => Self::AgentFailed(event.into()),
            Event::RunBranched(event) => Self::RunBranched(boxed(*event)),
            Event::AgentsRetried { agents } => Self::AgentsRetried { agents },
            Event::AgentsPlaced { lost } => Self::AgentsPlaced { lost },
            Event::CostCounted { turn, cost } => Self::CostCounted { turn, cost },
            Event::AgentParked(event) => Self::AgentParked(event.into()),
            Event::LimitReached { until, message } => Self::LimitReached { until, message },
            Event::RunPaused { pause } => Self::RunPaused { pause },
            Event::RunResumed { settings } => Self::RunResumed { settings },
            Event::CommandReceived { id, command } => Self::CommandReceived { id, command },
            Event::MessagesTaken { turn, message } => Self::MessagesTaken { turn, message },
        }
    }
}

/// Returns a form of an event in a box of its own.
fn boxed<E, Form: From<E>>(event: E) -> Box<Form> {
    Box::new(Form::from(event))
}
