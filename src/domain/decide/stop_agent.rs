//! The end of an agent that a person stops.

use super::TurnReport;
use super::failure::give_up;
use crate::domain::agent::Agent;
use crate::domain::event::Event;
use crate::domain::turn::FailureCause;

/// Returns the event that ends an agent which a person has stopped, with the cost of the turn that ran. Whatever that turn
/// led to is not taken.
pub(super) fn stopped_with(agent: &Agent, report: &TurnReport) -> Event {
    give_up(agent, report, FailureCause::Stopped, "a person stopped it".to_owned())
}

/// Returns the event that ends an agent which a person has stopped, and of which nothing runs; `None` if nobody has.
pub fn stopped(agent: &Agent) -> Option<Event> {
    let is_ending = agent.orders.is_ending;
    is_ending.then(|| stopped_with(agent, &TurnReport::empty(agent.turn_id())))
}
