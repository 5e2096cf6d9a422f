//! Effects that are due after an event: collected by `apply`, performed by the supervisor.
//!
//! After a crash an effect may be performed a second time. Each is therefore idempotent by the identity of the
//! step it names.

use super::approval::ApprovalVerdict;
use super::id::{AgentId, MessageId};

/// An action of the supervisor once a record is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make sure that this agent has an actor, and let it take its next turn.
    Proceed(AgentId),
    /// This agent waits for a person's answer.
    Ask(AgentId),
    /// The turn of this agent was ended, and goes on after a person has approved its calls.
    AwaitApproval(AgentId),
    /// Tell a running turn whether a tool call may run, or that a person is asked about it.
    TellApproval {
        /// The agent whose turn runs.
        agent: AgentId,
        /// The id of the call.
        call: String,
        /// The answer; `None` if a person is asked.
        verdict: Option<ApprovalVerdict>,
    },
    /// Tell the turn of an agent something, if it runs. Otherwise its next prompt does.
    TellMessage {
        /// The agent.
        agent: AgentId,
        /// The id by which the turn shows that it has read it.
        id: MessageId,
        /// The text, as the model gets it.
        text: String,
    },
    /// This agent has ended: stop its actor.
    Retire(AgentId),
    /// This agent was ended early: stop its processes and its actor.
    Discard(AgentId),
    /// A person ends this agent: stop what runs of it, and then record its end.
    StopAgent(AgentId),
    /// Warn people.
    Warn {
        /// The agent it is about.
        agent: AgentId,
        /// The warning: the event, and the reason it is probably a mistake.
        text: String,
    },
    /// The run is paused: start no turn, let running ones finish.
    Hold,
    /// A pause was requested: as above, and turns that still run after a while are cancelled.
    Stop,
    /// No turn starts before the usage limit resets.
    AwaitLimit,
    /// All agents have ended because one failed: cancel what still runs.
    Abort,
    /// The last agent has ended.
    End,
}
