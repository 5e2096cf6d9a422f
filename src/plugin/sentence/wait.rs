//! The sentence for people on why an agent waits, or on why several of them do.

use super::date;
use crate::domain::agent::Agent;
use crate::domain::id::StateKind;
use crate::domain::printable::{flat, one_line};
use crate::domain::time::Timestamp;
use crate::domain::wait_reason::WaitReason;

/// The maximum length of the reason why a person is waited for. Views of a fixed width cut it themselves.
const MAX_REASON_BYTES: usize = 1000;

/// Returns the work of an agent that advances by itself.
pub fn own_work(agent: &Agent) -> Option<String> {
    agent.own_work().map(execution_sentence)
}

/// Returns the work of an agent in a state of this kind.
pub fn execution_sentence(kind: StateKind) -> String {
    format!("executes the {}", kind.noun())
}

/// Returns why an agent waits, as a sentence about it. `when` gives the time of its next try in words.
pub fn wait_sentence(reason: &WaitReason, when: impl Fn(Timestamp) -> String) -> String {
    match reason {
        WaitReason::Permit => "waits for a free process".to_owned(),
        WaitReason::Host(None) => "waits for a host".to_owned(),
        WaitReason::Host(Some(label)) => format!("waits for a host with the label {label}"),
        WaitReason::Budget => "waits for money that running turns have reserved".to_owned(),
        WaitReason::Backoff(until) => format!("restarts {}", when(*until)),
        WaitReason::Stagger(until) => format!("starts {}", when(*until)),
        WaitReason::Plugin { by, until } => {
            format!("held until {} by the plug-in {}", date(*until), one_line(by))
        }
        WaitReason::UsageLimit(until) => {
            format!("waits for the usage limit until {}", date(*until))
        }
        WaitReason::Person(because) => {
            format!("waits for a person: {}", flat(because, MAX_REASON_BYTES))
        }
        WaitReason::Held => "is held until a person releases it".to_owned(),
        WaitReason::Answer { node, question } => {
            format!("waits for an answer to {node}: {}", one_line(question))
        }
        WaitReason::Approval { name, tool } => {
            format!("waits for approval of {}: {name}", one_line(tool))
        }
        WaitReason::Agent(other) => format!("waits for {other}"),
        WaitReason::Join { more, of, failed, until, .. } => {
            let agents = if *of == 1 { "agent" } else { "agents" };
            let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
            let until = until.map(|until| format!(", until {}", date(until))).unwrap_or_default();
            format!("waits for {more} more of {of} {agents}{failed}{until}")
        }
        WaitReason::Program(awaiting) => format!("waits for {}", one_line(awaiting)),
        WaitReason::Request => "waits for a request of its program".to_owned(),
        WaitReason::RunPaused => "waits: the run is paused".to_owned(),
        WaitReason::RunInterrupted => "waits for the run to be resumed".to_owned(),
    }
}

/// Returns why several agents wait, to stand behind their number.
pub fn waits_of_many(reason: &WaitReason) -> &'static str {
    match reason {
        WaitReason::Permit => "wait for a free process",
        WaitReason::Host(_) => "wait for a host",
        WaitReason::Budget => "wait for money that running turns have reserved",
        WaitReason::Backoff(_) => "restart after a pause",
        WaitReason::Stagger(_) => "start in a moment",
        WaitReason::Plugin { .. } => "held by a plug-in",
        WaitReason::UsageLimit(_) => "wait for the usage limit",
        WaitReason::Person(_) => "wait for a person",
        WaitReason::Held => "are held until a person releases them",
        WaitReason::Answer { .. } => "wait for an answer",
        WaitReason::Approval { .. } => "wait for an approval",
        WaitReason::Agent(_) => "wait for another agent",
        WaitReason::Join { .. } => "wait for agents they have forked",
        WaitReason::Program(_) => "wait as their programs say",
        WaitReason::Request => "wait for a request of their program",
        WaitReason::RunPaused => "wait: the run is paused",
        WaitReason::RunInterrupted => "wait for the run to be resumed",
    }
}
