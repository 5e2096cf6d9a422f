//! An answer that a run takes: to a question, or to a tool call that needs approval.

use super::approval::PendingApproval;
use super::event::{ApprovalAnswered, Event, QuestionAnswered};
use super::printable::{one_line, printable_line};
use super::question::OTHER;
use super::turn::TurnId;

/// An answer that a run takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptedAnswer {
    /// To a question.
    Question(QuestionAnswered),
    /// To a tool call that needs approval.
    Approval(ApprovalAnswered),
}

impl AcceptedAnswer {
    /// Returns the answer that an event is; `None` if it is none.
    pub fn of(event: Event) -> Option<Self> {
        if let Event::QuestionAnswered(event) = event {
            return Some(Self::Question(event));
        }
        if let Event::ApprovalAnswered(event) = event { Some(Self::Approval(event)) } else { None }
    }

    /// Returns the event.
    pub fn event(&self) -> Event {
        match self {
            Self::Question(event) => Event::QuestionAnswered(event.clone()),
            Self::Approval(event) => Event::ApprovalAnswered(event.clone()),
        }
    }

    /// Returns the turn that is due.
    pub fn turn(&self) -> &TurnId {
        match self {
            Self::Question(event) => &event.turn,
            Self::Approval(event) => &event.turn,
        }
    }

    /// Returns the name under which it was asked.
    pub fn name(&self) -> String {
        match self {
            Self::Question(event) => event.node.clone(),
            Self::Approval(event) => PendingApproval::name_of(event.number),
        }
    }

    /// Returns the id of the answer.
    pub fn id(&self) -> &str {
        match self {
            Self::Question(event) => &event.answer.id,
            Self::Approval(event) => event.verdict.id(),
        }
    }

    /// Returns the answer as it was given.
    pub fn given(&self) -> &str {
        match self {
            Self::Question(event) => &event.answer.raw,
            Self::Approval(event) => event.verdict.id(),
        }
    }

    /// Returns the answer in short.
    pub fn chosen(&self) -> String {
        match self {
            Self::Question(event) if event.answer.id == OTHER => one_line(&event.answer.raw),
            Self::Question(event) => event.answer.id.clone(),
            Self::Approval(event) => one_line(&event.verdict.phrase()),
        }
    }

    /// Returns a line that says what was answered.
    pub fn line(&self) -> String {
        let line = format!("{}/{} is answered: {}", self.turn().agent, self.name(), self.chosen());
        printable_line(&line) + "\n"
    }
}
