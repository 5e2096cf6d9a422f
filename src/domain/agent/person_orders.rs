//! The orders of people to one agent: messages for its next prompt, a hold, and its end.

use serde::{Deserialize, Serialize};

use super::Agent;
use crate::domain::time::Timestamp;

/// A message of a person to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonMessage {
    /// The text.
    pub text: String,
    /// True once it belongs to the turn that is due.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_taken: bool,
}

/// The orders of people to an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonOrders {
    /// The messages that no turn has ended with, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<PersonMessage>,
    /// The time since which nothing of it begins until a person releases it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<Timestamp>,
    /// True if it ends as soon as nothing of it runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_ending: bool,
}

impl PersonOrders {
    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { messages, held_since, is_ending } = self;
        messages.is_empty() && held_since.is_none() && !is_ending
    }

    /// Returns the texts of the messages that belong to the turn that is due.
    pub fn taken(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter(|message| message.is_taken).map(|message| &*message.text)
    }

    /// Returns the number of messages that belong to no turn yet.
    #[must_use]
    pub fn untaken(&self) -> usize {
        self.messages.iter().filter(|message| !message.is_taken).count()
    }

    /// Gives all messages to the turn that is due.
    pub(in crate::domain) fn take(&mut self) {
        self.messages.iter_mut().for_each(|message| message.is_taken = true);
    }

    /// Forgets the messages of a turn that has ended.
    pub(in crate::domain) fn forget_taken(&mut self) {
        self.messages.retain(|message| !message.is_taken);
    }
}

impl Agent {
    /// Returns whether a person holds it.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.orders.held_since.is_some()
    }

    /// Returns whether its next turn begins with messages that belong to no turn yet. An evaluator's turn is not its own.
    #[must_use]
    pub fn has_messages_to_take(&self) -> bool {
        self.orders.untaken() > 0 && self.proposal().is_none()
    }
}
