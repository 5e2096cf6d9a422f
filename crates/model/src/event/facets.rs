//! The parts that events of several kinds have, in one table.
//!
//! The table names each event, so that the compiler asks for a new one. Observers ask for the parts, and name only the
//! events that they treat in a way of their own.

use super::{Event, FinishedTask, NextAction, StoppedChild};
use crate::approval::PendingApproval;
use crate::id::{AgentId, SessionId, StateName};
use crate::question::Question;
use crate::turn::TurnCost;
use crate::turn::TurnId;

/// The parts that an event has, of those that several events have.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventFacets<'event> {
    /// The turn that it is about.
    pub turn: Option<&'event TurnId>,
    /// The state of the turn that it ends. `None` if it ends none, or a turn that ran for a graph, for a program, or for
    /// an agent that had already ended.
    pub turn_state: Option<&'event StateName>,
    /// The cost of the turn that it ends.
    pub cost: Option<&'event TurnCost>,
    /// The session that is opened.
    pub new_session: Option<&'event SessionId>,
}

impl<'event> EventFacets<'event> {
    /// Returns the facets of an event about a turn that goes on, or is due.
    fn about(turn: &'event TurnId) -> Self {
        Self { turn: Some(turn), ..Self::default() }
    }

    /// Returns the facets of an event that ends a turn.
    fn ending(turn: &'event TurnId, state: &'event StateName, cost: &'event TurnCost) -> Self {
        Self { turn_state: Some(state), cost: Some(cost), ..Self::about(turn) }
    }

    /// Returns the facets of an advance, which ends the turn whose result it took in, if there is one.
    fn advancing(turn: &'event TurnId, task: Option<&'event FinishedTask>) -> Self {
        Self { cost: task.map(|task| &task.cost), ..Self::about(turn) }
    }

    fn opening(self, new_session: Option<&'event SessionId>) -> Self {
        Self { new_session, ..self }
    }

    fn costing(self, cost: &'event TurnCost) -> Self {
        Self { cost: Some(cost), ..self }
    }
}

impl Event {
    /// Returns the parts that this event has.
    pub fn facets(&self) -> EventFacets<'_> {
        match self {
            Self::StepFinished(event) => {
                EventFacets::ending(&event.turn, &event.state, &event.cost)
                    .opening(event.new_session.as_ref())
            }
            Self::TransitionProposed(event) => {
                EventFacets::ending(&event.turn, &event.state, &event.cost)
                    .opening(Some(&event.new_session))
            }
            Self::TurnRejected(event) => {
                EventFacets::ending(&event.turn, &event.state, &event.cost)
            }
            Self::TurnFailed(event) => EventFacets::ending(&event.turn, &event.state, &event.cost),
            Self::TurnSuspended(event) => {
                EventFacets::ending(&event.turn, &event.state, &event.cost)
            }
            Self::AgentFailed(event) => EventFacets::ending(&event.turn, &event.state, &event.cost),
            Self::GraphAdvanced(event) => {
                EventFacets::advancing(&event.turn, event.task.as_deref())
                    .opening(event.new_session.as_ref())
            }
            Self::ProgramAdvanced(event) => {
                EventFacets::advancing(&event.turn, event.task.as_deref())
                    .opening(event.new_session.as_ref())
            }
            Self::LanguageAdvanced(event) => {
                EventFacets::advancing(&event.turn, event.task.as_deref())
                    .opening(event.new_session.as_ref())
            }
            Self::RoleRequested(event) => {
                EventFacets::about(&event.turn).opening(event.new_session.as_ref())
            }
            Self::RoleResponded(event) => EventFacets::about(&event.turn).costing(&event.cost),
            Self::RoleDelegated(event) => {
                EventFacets::about(&event.turn).opening(Some(&event.new_session))
            }
            Self::CostCounted { turn, cost } => EventFacets::about(turn).costing(cost),
            Self::QuestionAnswered(event) => EventFacets::about(&event.turn),
            Self::QuestionTimedOut(event) => EventFacets::about(&event.turn),
            Self::ApprovalAsked(event) => EventFacets::about(&event.turn),
            Self::ApprovalAnswered(event) => EventFacets::about(&event.turn),
            Self::ProgramStarted(event) => EventFacets::about(&event.turn),
            Self::ProgramLogged(event) => EventFacets::about(&event.turn),
            Self::JoinBegun(event) => EventFacets::about(&event.turn),
            Self::JoinFinished(event) => EventFacets::about(&event.turn),
            Self::TurnHeld(event) => EventFacets::about(&event.turn),
            Self::AgentParked(event) => EventFacets::about(&event.turn),
            Self::MessagesTaken { turn, .. } => EventFacets::about(turn),
            Self::RunStarted(_)
            | Self::ProgramDefined(_)
            | Self::FactsSeen { .. }
            | Self::LimitReached { .. }
            | Self::RunPaused { .. }
            | Self::RunResumed { .. }
            | Self::AgentsRetried { .. }
            | Self::AgentsPlaced { .. }
            | Self::RunBranched(_)
            | Self::CommandReceived { .. } => EventFacets::default(),
        }
    }

    /// Returns the session that is opened, if any.
    pub fn new_session(&self) -> Option<&SessionId> {
        self.facets().new_session
    }

    /// Returns the turn the event is about, if any.
    pub fn turn(&self) -> Option<&TurnId> {
        self.facets().turn
    }

    /// Returns the agent of the turn that the event is about; `None` if it is about none, as a command to an agent.
    pub fn agent(&self) -> Option<&AgentId> {
        self.turn().map(|turn| &turn.agent)
    }

    /// Returns the cost of the turn that the event ends; `None` if it ends none.
    pub fn cost(&self) -> Option<&TurnCost> {
        self.facets().cost
    }

    /// Returns the state of the turn that the event ends; see [`EventFacets::turn_state`].
    pub fn turn_state(&self) -> Option<&StateName> {
        self.facets().turn_state
    }

    /// Returns the question that the event asks a person, if any.
    pub fn question(&self) -> Option<Question> {
        match self {
            Self::StepFinished(event) => {
                Question::of(&event.transition).map(|(question, _)| question)
            }
            Self::ApprovalAsked(event) if event.grant.is_none() => {
                Some(event.request.question(&PendingApproval::name_of(event.number)))
            }
            other => match &*other.advance()?.next_action {
                NextAction::Question(question) => Some((**question).clone()),
                _ => None,
            },
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
        if let Self::JoinFinished(event) = self { &event.stopped } else { &[] }
    }
}
