//! Fields that events of several kinds have in common.

use super::{Event, NextAction, StoppedChild};
use crate::domain::approval::PendingApproval;
use crate::domain::id::{AgentId, SessionId, StateName};
use crate::domain::question::Question;
use crate::domain::turn::TurnId;
use crate::domain::turn_cost::TurnCost;

impl Event {
    /// Returns the session that is opened, if any.
    pub fn new_session(&self) -> Option<&SessionId> {
        match self {
            Self::StepFinished(event) => event.new_session.as_ref(),
            Self::TransitionProposed(event) => Some(&event.new_session),
            Self::Advanced(event) => event.new_session.as_ref(),
            Self::RoleRequested(event) => event.new_session.as_ref(),
            Self::RoleDelegated(event) => Some(&event.new_session),
            Self::RunStarted(_)
            | Self::QuestionAnswered(_)
            | Self::QuestionTimedOut(_)
            | Self::ApprovalAsked(_)
            | Self::ApprovalAnswered(_)
            | Self::TurnSuspended(_)
            | Self::ProgramDefined(_)
            | Self::ProgramStarted(_)
            | Self::ProgramLogged(_)
            | Self::RoleResponded(_)
            | Self::JoinBegun(_)
            | Self::JoinFinished(_)
            | Self::FactsSeen { .. }
            | Self::TurnHeld(_)
            | Self::TurnRejected(_)
            | Self::TurnFailed(_)
            | Self::AgentFailed(_)
            | Self::CostCounted { .. }
            | Self::AgentParked(_)
            | Self::LimitReached { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::AgentsRetried { .. }
            | Self::AgentsPlaced { .. }
            | Self::RunBranched(_)
            | Self::CommandReceived { .. }
            | Self::MessagesTaken { .. } => None,
        }
    }

    /// Returns the turn the event is about, if any.
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            Self::StepFinished(event) => Some(&event.turn),
            Self::TransitionProposed(event) => Some(&event.turn),
            Self::Advanced(event) => Some(&event.turn),
            Self::QuestionAnswered(event) => Some(&event.turn),
            Self::QuestionTimedOut(event) => Some(&event.turn),
            Self::ApprovalAsked(event) => Some(&event.turn),
            Self::ApprovalAnswered(event) => Some(&event.turn),
            Self::TurnSuspended(event) => Some(&event.turn),
            Self::ProgramStarted(event) => Some(&event.turn),
            Self::ProgramLogged(event) => Some(&event.turn),
            Self::RoleRequested(event) => Some(&event.turn),
            Self::RoleResponded(event) => Some(&event.turn),
            Self::RoleDelegated(event) => Some(&event.turn),
            Self::JoinBegun(event) => Some(&event.turn),
            Self::JoinFinished(event) => Some(&event.turn),
            Self::TurnHeld(event) => Some(&event.turn),
            Self::TurnRejected(event) => Some(&event.turn),
            Self::TurnFailed(event) => Some(&event.turn),
            Self::AgentFailed(event) => Some(&event.turn),
            Self::AgentParked(event) => Some(&event.turn),
            Self::CostCounted { turn, .. } | Self::MessagesTaken { turn, .. } => Some(turn),
            Self::RunStarted(_)
            | Self::ProgramDefined(_)
            | Self::FactsSeen { .. }
            | Self::LimitReached { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::AgentsRetried { .. }
            | Self::AgentsPlaced { .. }
            | Self::RunBranched(_)
            | Self::CommandReceived { .. } => None,
        }
    }

    /// Returns the agent of the turn that the event is about; `None` if it is about none, as a command to an agent.
    pub fn agent(&self) -> Option<&AgentId> {
        self.turn().map(|turn| &turn.agent)
    }

    /// Returns the cost of the turn that the event ends; `None` if it ends none.
    pub fn cost(&self) -> Option<&TurnCost> {
        match self {
            Self::StepFinished(event) => Some(&event.cost),
            Self::TransitionProposed(event) => Some(&event.cost),
            Self::Advanced(event) => event.task.as_ref().map(|task| &task.cost),
            Self::RoleResponded(event) => Some(&event.cost),
            Self::TurnRejected(event) => Some(&event.cost),
            Self::TurnFailed(event) => Some(&event.cost),
            Self::TurnSuspended(event) => Some(&event.cost),
            Self::AgentFailed(event) => Some(&event.cost),
            Self::CostCounted { cost, .. } => Some(cost),
            Self::RunStarted(_)
            | Self::QuestionAnswered(_)
            | Self::QuestionTimedOut(_)
            | Self::ApprovalAsked(_)
            | Self::ApprovalAnswered(_)
            | Self::ProgramDefined(_)
            | Self::ProgramStarted(_)
            | Self::ProgramLogged(_)
            | Self::RoleRequested(_)
            | Self::RoleDelegated(_)
            | Self::JoinBegun(_)
            | Self::JoinFinished(_)
            | Self::FactsSeen { .. }
            | Self::TurnHeld(_)
            | Self::AgentParked(_)
            | Self::LimitReached { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::AgentsRetried { .. }
            | Self::AgentsPlaced { .. }
            | Self::RunBranched(_)
            | Self::CommandReceived { .. }
            | Self::MessagesTaken { .. } => None,
        }
    }

    /// Returns the state of the turn that the event ends. `None` if it ends none, or a turn that ran for a graph,
    /// for a program, or for an agent that had already ended.
    pub fn turn_state(&self) -> Option<&StateName> {
        match self {
            Self::StepFinished(event) => Some(&event.state),
            Self::TransitionProposed(event) => Some(&event.state),
            Self::TurnRejected(event) => Some(&event.state),
            Self::TurnFailed(event) => Some(&event.state),
            Self::TurnSuspended(event) => Some(&event.state),
            Self::AgentFailed(event) => Some(&event.state),
            Self::RunStarted(_)
            | Self::Advanced(_)
            | Self::QuestionAnswered(_)
            | Self::QuestionTimedOut(_)
            | Self::ApprovalAsked(_)
            | Self::ApprovalAnswered(_)
            | Self::ProgramDefined(_)
            | Self::ProgramStarted(_)
            | Self::ProgramLogged(_)
            | Self::RoleRequested(_)
            | Self::RoleResponded(_)
            | Self::RoleDelegated(_)
            | Self::JoinBegun(_)
            | Self::JoinFinished(_)
            | Self::FactsSeen { .. }
            | Self::TurnHeld(_)
            | Self::CostCounted { .. }
            | Self::AgentParked(_)
            | Self::LimitReached { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::AgentsRetried { .. }
            | Self::AgentsPlaced { .. }
            | Self::RunBranched(_)
            | Self::CommandReceived { .. }
            | Self::MessagesTaken { .. } => None,
        }
    }

    /// Returns the question that the event asks a person, if any.
    pub fn question(&self) -> Option<Question> {
        match self {
            Self::StepFinished(event) => {
                Question::of(&event.transition).map(|(question, _)| question)
            }
            Self::Advanced(event) => match &event.next_action {
                NextAction::Question(question) => Some((**question).clone()),
                NextAction::Walk
                | NextAction::Operation(_)
                | NextAction::Task(_)
                | NextAction::Agent { .. }
                | NextAction::Join(_)
                | NextAction::Wait
                | NextAction::Nothing => None,
            },
            Self::ApprovalAsked(event) if event.grant.is_none() => {
                Some(event.request.question(&PendingApproval::name_of(event.number)))
            }
            Self::RunStarted(_)
            | Self::ApprovalAsked(_)
            | Self::TransitionProposed(_)
            | Self::QuestionAnswered(_)
            | Self::QuestionTimedOut(_)
            | Self::ApprovalAnswered(_)
            | Self::TurnSuspended(_)
            | Self::ProgramDefined(_)
            | Self::ProgramStarted(_)
            | Self::ProgramLogged(_)
            | Self::RoleRequested(_)
            | Self::RoleResponded(_)
            | Self::RoleDelegated(_)
            | Self::JoinBegun(_)
            | Self::JoinFinished(_)
            | Self::FactsSeen { .. }
            | Self::TurnHeld(_)
            | Self::TurnRejected(_)
            | Self::TurnFailed(_)
            | Self::AgentFailed(_)
            | Self::CostCounted { .. }
            | Self::AgentParked(_)
            | Self::LimitReached { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::AgentsRetried { .. }
            | Self::AgentsPlaced { .. }
            | Self::RunBranched(_)
            | Self::CommandReceived { .. }
            | Self::MessagesTaken { .. } => None,
        }
    }

    /// Returns whether the event ends agents that it is not about: with the whole run, or because a join does not need them.
    pub fn ends_others(&self) -> bool {
        self.ends_run() || !self.stopped_children().is_empty()
    }

    /// Returns whether the event ends an agent that it is not about.
    pub fn ends_other(&self, agent: &AgentId) -> bool {
        let is_stopped = || self.stopped_children().iter().any(|child| child.agent == *agent);
        (self.ends_run() && self.agent() != Some(agent)) || is_stopped()
    }

    /// Returns whether the event is a failure that ends all agents.
    pub fn ends_run(&self) -> bool {
        matches!(self, Self::AgentFailed(failure) if failure.ends_run)
    }

    /// Returns the agents that the event ends because a join does not need them.
    pub fn stopped_children(&self) -> &[StoppedChild] {
        match self {
            Self::JoinFinished(event) => &event.stopped,
            Self::RunStarted(_)
            | Self::StepFinished(_)
            | Self::TransitionProposed(_)
            | Self::Advanced(_)
            | Self::QuestionAnswered(_)
            | Self::QuestionTimedOut(_)
            | Self::ApprovalAsked(_)
            | Self::ApprovalAnswered(_)
            | Self::TurnSuspended(_)
            | Self::ProgramDefined(_)
            | Self::ProgramStarted(_)
            | Self::ProgramLogged(_)
            | Self::RoleRequested(_)
            | Self::RoleResponded(_)
            | Self::RoleDelegated(_)
            | Self::JoinBegun(_)
            | Self::FactsSeen { .. }
            | Self::TurnHeld(_)
            | Self::TurnRejected(_)
            | Self::TurnFailed(_)
            | Self::AgentFailed(_)
            | Self::CostCounted { .. }
            | Self::AgentParked(_)
            | Self::LimitReached { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::AgentsRetried { .. }
            | Self::AgentsPlaced { .. }
            | Self::RunBranched(_)
            | Self::CommandReceived { .. }
            | Self::MessagesTaken { .. } => &[],
        }
    }
}
