//! The orders of people to single agents.

use super::{ApplyError, due};
use crate::domain::agent::PersonMessage;
use crate::domain::effect::Effect;
use crate::domain::event::RunCommand;
use crate::domain::id::AgentId;
use crate::domain::person_command::{AgentFamily, AgentMessage};
use crate::domain::run::Run;
use crate::domain::time::Timestamp;
use crate::domain::turn::TurnId;

/// Takes in a command. One about an agent that has ended changes nothing.
pub(super) fn command_received(run: &mut Run, command: &RunCommand, at: Timestamp) -> Vec<Effect> {
    match command {
        RunCommand::Stop => vec![Effect::Stop],
        RunCommand::Answer(_) | RunCommand::Retry(_) => Vec::new(),
        RunCommand::Tell(AgentMessage { agent, text }) => {
            if let Some(agent) = run.agents.get_mut(agent) {
                let message = PersonMessage { text: text.clone(), is_taken: false };
                agent.orders.messages.push(message);
            }
            Vec::new()
        }
        RunCommand::Hold(family) => set_hold(run, family, Some(at)),
        RunCommand::Release(family) => set_hold(run, family, None),
        RunCommand::StopAgent { agent } => match run.agents.get_mut(agent) {
            Some(state) => {
                state.orders.is_ending = true;
                vec![Effect::StopAgent(agent.clone())]
            }
            None => Vec::new(),
        },
    }
}

fn set_hold(run: &mut Run, family: &AgentFamily, since: Option<Timestamp>) -> Vec<Effect> {
    let ids: Vec<AgentId> =
        run.agents.values().map(|agent| agent.id.clone()).filter(|id| family.has(id)).collect();
    for id in &ids {
        if let Some(agent) = run.agents.get_mut(id) {
            agent.orders.held_since = since.map(|since| agent.orders.held_since.unwrap_or(since));
        }
    }
    ids.into_iter().map(Effect::Proceed).collect()
}

/// Gives the messages of an agent to the turn that is due.
pub(super) fn messages_taken(run: &mut Run, turn: &TurnId) -> Result<Vec<Effect>, ApplyError> {
    due(run, turn)?.orders.take();
    Ok(vec![Effect::Proceed(turn.agent.clone())])
}
