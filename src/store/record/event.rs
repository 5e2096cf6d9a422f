//! The event of a stored record, and the conversions from and to the event of the domain.

use serde::{Deserialize, Serialize};

use super::advance::{
    StoredAdvance, StoredGraphAdvanced, StoredLanguageAdvanced, StoredProgramAdvanced,
};
use super::approval::{StoredApprovalAnswered, StoredApprovalAsked, StoredTurnSuspended};
use super::join::{StoredJoinBegun, StoredJoinFinished};
use super::program::{
    StoredProgramLogged, StoredProgramStarted, StoredRoleDelegated, StoredRoleRequested,
    StoredRoleResponded,
};
use super::question::{StoredQuestionAnswered, StoredQuestionTimedOut};
use super::run::{StoredRunBranched, StoredRunStarted, StoredStepFinished};
use super::turns::{
    StoredAgentFailed, StoredAgentParked, StoredTransitionProposed, StoredTurnFailed,
    StoredTurnHeld, StoredTurnRejected,
};
use crate::domain::event::{Event, ProgramDefined, RunCommand};
use crate::domain::fact::FactChange;
use crate::domain::host::HostName;
use crate::domain::id::MessageId;
use crate::domain::retry::RetriedAgent;
use crate::domain::run::PauseReason;
use crate::domain::settings::Settings;
use crate::domain::time::Timestamp;
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

/// An event as it is stored, in the newest format.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "most records are of finished steps")]
pub(super) enum StoredEvent {
    /// The run began, with its first agent.
    RunStarted(Box<StoredRunStarted>),
    /// An agent took a transition. A `<fork>` is the parent's next step and the child's creation in one.
    StepFinished(StoredStepFinished),
    /// An agent asked for a transition, and its state's evaluator checks it first.
    TransitionProposed(Box<StoredTransitionProposed>),
    /// An agent executed nodes of a graph, up to the next action that changes the world.
    GraphAdvanced(Box<StoredGraphAdvanced>),
    /// A question has its answer.
    QuestionAnswered(StoredQuestionAnswered),
    /// A question was not answered in time.
    QuestionTimedOut(StoredQuestionTimedOut),
    /// Claude Code asks whether a tool call may run.
    ApprovalAsked(StoredApprovalAsked),
    /// A tool call has been allowed or denied.
    ApprovalAnswered(StoredApprovalAnswered),
    /// A turn was ended while tool calls needed approval, and goes on after the answers.
    TurnSuspended(StoredTurnSuspended),
    /// The text of a program is recorded.
    ProgramDefined(Box<ProgramDefined>),
    /// An execution of a program begins.
    ProgramStarted(Box<StoredProgramStarted>),
    /// An execution has advanced as far as possible.
    ProgramAdvanced(Box<StoredProgramAdvanced>),
    /// An agent advanced in a state of another language.
    Advanced(Box<StoredLanguageAdvanced>),
    /// An execution logs a line for people.
    ProgramLogged(StoredProgramLogged),
    /// An execution asks a role something.
    RoleRequested(Box<StoredRoleRequested>),
    /// A role has answered.
    RoleResponded(Box<StoredRoleResponded>),
    /// A role delegates a request to a further agent.
    RoleDelegated(Box<StoredRoleDelegated>),
    /// An agent came to a state that waits for the agents it has forked.
    JoinBegun(Box<StoredJoinBegun>),
    /// An agent no longer waits for those it has forked.
    Joined(Box<StoredJoinFinished>),
    /// Facts have changed that programs of the run read.
    FactsSeen {
        /// The changes.
        changes: Vec<FactChange>,
    },
    /// A plug-in holds an agent's next turn back.
    TurnHeld(StoredTurnHeld),
    /// A reply broke the protocol; the agent is reminded in the same session.
    TurnRejected(StoredTurnRejected),
    /// A turn failed and is run again.
    TurnFailed(StoredTurnFailed),
    /// An agent ended with an error.
    AgentFailed(StoredAgentFailed),
    /// The run branches off another, whose records it shares up to here.
    RunBranched(Box<StoredRunBranched>),
    /// Failed agents live again.
    AgentsRetried {
        /// The agents, parents before their children.
        agents: Vec<RetriedAgent>,
    },
    /// Agents are given a host, or another one.
    AgentsPlaced {
        /// The hosts that were declared lost.
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
    AgentParked(StoredAgentParked),
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
        /// The one that the running turn has read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
    },
}

impl From<Event> for StoredEvent {
    fn from(event: Event) -> Self {
        match event {
            Event::RunStarted(event) => Self::RunStarted(boxed(*event)),
            Event::StepFinished(event) => Self::StepFinished(event.into()),
            Event::TransitionProposed(event) => Self::TransitionProposed(boxed(*event)),
            Event::Advanced(event) => match StoredAdvance::from(*event) {
                StoredAdvance::Graph(event) => Self::GraphAdvanced(event),
                StoredAdvance::Program(event) => Self::ProgramAdvanced(event),
                StoredAdvance::Other(event) => Self::Advanced(event),
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

impl From<StoredEvent> for Event {
    fn from(event: StoredEvent) -> Self {
        match event {
            StoredEvent::RunStarted(event) => Self::RunStarted(boxed(*event)),
            StoredEvent::StepFinished(event) => Self::StepFinished(event.into()),
            StoredEvent::TransitionProposed(event) => Self::TransitionProposed(boxed(*event)),
            StoredEvent::GraphAdvanced(event) => Self::Advanced(boxed(*event)),
            StoredEvent::QuestionAnswered(event) => Self::QuestionAnswered(event.into()),
            StoredEvent::QuestionTimedOut(event) => Self::QuestionTimedOut(event.into()),
            StoredEvent::ApprovalAsked(event) => Self::ApprovalAsked(event.into()),
            StoredEvent::ApprovalAnswered(event) => Self::ApprovalAnswered(event.into()),
            StoredEvent::TurnSuspended(event) => Self::TurnSuspended(event.into()),
            StoredEvent::ProgramDefined(event) => Self::ProgramDefined(event),
            StoredEvent::ProgramStarted(event) => Self::ProgramStarted(boxed(*event)),
            StoredEvent::ProgramAdvanced(event) => Self::Advanced(boxed(*event)),
            StoredEvent::Advanced(event) => Self::Advanced(boxed(*event)),
            StoredEvent::ProgramLogged(event) => Self::ProgramLogged(event.into()),
            StoredEvent::RoleRequested(event) => Self::RoleRequested(boxed(*event)),
            StoredEvent::RoleResponded(event) => Self::RoleResponded(boxed(*event)),
            StoredEvent::RoleDelegated(event) => Self::RoleDelegated(boxed(*event)),
            StoredEvent::JoinBegun(event) => Self::JoinBegun(boxed(*event)),
            StoredEvent::Joined(event) => Self::JoinFinished(boxed(*event)),
            StoredEvent::FactsSeen { changes } => Self::FactsSeen { changes },
            StoredEvent::TurnHeld(event) => Self::TurnHeld(event.into()),
            StoredEvent::TurnRejected(event) => Self::TurnRejected(event.into()),
            StoredEvent::TurnFailed(event) => Self::TurnFailed(event.into()),
            StoredEvent::AgentFailed(event) => Self::AgentFailed(event.into()),
            StoredEvent::RunBranched(event) => Self::RunBranched(boxed(*event)),
            StoredEvent::AgentsRetried { agents } => Self::AgentsRetried { agents },
            StoredEvent::AgentsPlaced { lost } => Self::AgentsPlaced { lost },
            StoredEvent::CostCounted { turn, cost } => Self::CostCounted { turn, cost },
            StoredEvent::AgentParked(event) => Self::AgentParked(event.into()),
            StoredEvent::LimitReached { until, message } => Self::LimitReached { until, message },
            StoredEvent::RunPaused { pause } => Self::RunPaused { pause },
            StoredEvent::RunResumed { settings } => Self::RunResumed { settings },
            StoredEvent::CommandReceived { id, command } => Self::CommandReceived { id, command },
            StoredEvent::MessagesTaken { turn, message } => Self::MessagesTaken { turn, message },
        }
    }
}

/// Returns a form of an event in a box of its own.
fn boxed<E, Form: From<E>>(event: E) -> Box<Form> {
    Box::new(Form::from(event))
}
