//! The messages of people that a running turn reads.

use crate::domain::event::Event;
use crate::domain::id::MessageId;
use crate::domain::run::Run;
use crate::domain::turn::TurnId;

/// Returns the event of a message that a running turn has read; `None` if its turn is over, or if it is no message of a
/// person that still waits.
pub fn message_read(run: &Run, turn: &TurnId, message: &MessageId) -> Option<Event> {
    let agent = run.agents.get(&turn.agent).filter(|agent| agent.turn_id() == *turn)?;
    let is_read = |id: &MessageId| id == message;
    let mut waiting = agent.orders.messages.iter().filter(|message| !message.is_taken);
    waiting
        .any(|waiting| waiting.id.as_ref().is_some_and(is_read))
        .then(|| Event::MessagesTaken { turn: turn.clone(), message: Some(message.clone()) })
}
