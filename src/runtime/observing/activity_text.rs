//! The activity of an agent in words, or the reason why it waits or has ended. Pure.

use super::agent_entries::{AgentEntry, MonitoredRun, TopAgentStatus};
use crate::domain::agent_status::AgentStatus;
use crate::domain::id::AgentId;
use crate::domain::printable::one_line;
use crate::domain::run::AgentEnding;
use crate::domain::settings::AnswererKind;
use crate::domain::time::Timestamp;
use crate::plugin::sentence::wait::{own_work, wait_sentence};

/// Returns the activity of an agent, or the reason why it waits; `until` words the time until which it does.
pub fn activity(
    known: MonitoredRun<'_>,
    entry: &AgentEntry,
    until: impl Fn(Timestamp) -> String,
) -> String {
    let agent = known.run.agents.get(&entry.id);
    let doing = || {
        let seen = known.seen.get(&entry.id).and_then(|seen| seen.doing.as_deref());
        let silent = match known.run.settings.answerer {
            AnswererKind::Claude => "starting",
            AnswererKind::Scripted => "a script answers it",
            AnswererKind::Replay => "a cassette answers it",
        };
        seen.unwrap_or(silent).to_owned()
    };
    match &entry.status {
        TopAgentStatus::Silent => format!("silent since: {}", doing()),
        TopAgentStatus::Live(AgentStatus::Running) => match agent {
            Some(agent) if agent.proposal().is_some() => format!("is evaluated: {}", doing()),
            _ => agent.and_then(own_work).unwrap_or_else(doing),
        },
        TopAgentStatus::Live(AgentStatus::Waiting(reason)) => wait_sentence(reason, until),
        TopAgentStatus::Failed | TopAgentStatus::Finished | TopAgentStatus::Unneeded => {
            let Some(ended) = entry.ended.and_then(|place| known.run.finished.get(place)) else {
                return String::new();
            };
            match (&ended.ending, ended.cause) {
                (AgentEnding::Result(payload), _) => one_line(payload),
                (AgentEnding::Error(error), Some(cause)) => format!("{cause}: {}", one_line(error)),
                (AgentEnding::Error(error), None) => one_line(error),
            }
        }
    }
}

/// Returns the whole reason why an agent has failed or waits for a person; `None` if it does neither.
pub fn whole_reason(known: MonitoredRun<'_>, agent: &AgentId) -> Option<String> {
    if let Some(agent) = known.run.agents.get(agent) {
        return agent.parked_reason().map(|reason| format!("waits for a person: {reason}"));
    }
    let ended = known.run.finished.iter().find(|ended| ended.id == *agent)?;
    match (&ended.ending, ended.cause) {
        (AgentEnding::Error(error), Some(cause)) => Some(format!("failed ({cause}): {error}")),
        (AgentEnding::Error(error), None) => Some(format!("failed: {error}")),
        (AgentEnding::Result(_), _) => None,
    }
}
