//! What is owed once an event has happened: collected by `apply`, performed by the supervisor.
//!
//! After a crash an effect may be performed a second time; each is therefore idempotent by the
//! identity of the step it names.

use super::id::AgentId;

/// Something the supervisor does after a record is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// See that this agent has an actor, and let it take its next turn.
    Proceed(AgentId),
    /// This agent waits for someone's answer.
    Ask(AgentId),
    /// This agent has ended: its actor goes.
    Retire(AgentId),
    /// This agent was ended, whatever it is at: what runs for it is ended, and its actor goes.
    Discard(AgentId),
    /// Someone should know.
    Warn {
        /// The agent it is about.
        agent: AgentId,
        /// What happened, and why it is probably not meant.
        text: String,
    },
    /// The run is paused: no turn may start, running ones come to their end.
    Hold,
    /// Someone asked the run to pause: as above, and what still runs after a while is ended.
    Stop,
    /// No turn starts before the usage limit resets.
    AwaitLimit,
    /// All agents have ended with one: what still runs is ended.
    Abort,
    /// The last agent has ended.
    End,
}
