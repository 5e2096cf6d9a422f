//! The orders of people to single agents.

use super::{ApplyError, due};
use crate::agent::PersonMessage;
use crate::apply::Effect;
use crate::event::RunCommand;
use crate::event::{AgentHold, AgentMessage, AttachedSession, PromptEdit};
use crate::id::{AgentId, MessageId};
use crate::run::Run;
use crate::session::Session;
use crate::time::Timestamp;
use crate::turn::TurnId;

/// Takes in a command. One about an agent that has ended changes nothing.
pub(super) fn command_received(
    run: &mut Run,
    (id, command): (&str, &RunCommand),
    at: Timestamp,
) -> Vec<Effect> {
    match command {
        RunCommand::Stop => vec![Effect::Stop],
        RunCommand::Answer(_) | RunCommand::Retry(_) => Vec::new(),
        RunCommand::Tell(AgentMessage { agent, text }) => {
            let Some(agent) = run.agents.get_mut(agent) else { return Vec::new() };
            let message = PersonMessage::of_command(id, text);
            let told = agent.tells_turn(&message);
            agent.orders.messages.push(message);
            told.into_iter().collect()
        }
        RunCommand::Hold(hold) => set_hold(run, hold, Some(at)),
        RunCommand::Release(hold) => set_hold(run, hold, None),
        RunCommand::Edit(PromptEdit { turn, text, is_late }) => match due(run, turn) {
            Ok(agent) if agent.is_held() && !is_late => {
                agent.edit_asked_text(text.clone());
                Vec::new()
            }
            Ok(_) | Err(_) => vec![too_late(turn, "its prompt was not edited")],
        },
        RunCommand::Attach(attached) => match due(run, &attached.turn) {
            Ok(agent)
                if agent.session.history() == Some(&attached.from)
                    && agent.is_held()
                    && !attached.is_late =>
            {
                let AttachedSession { session, message, .. } = attached;
                agent.session = Session::resumed(session.clone(), message.clone());
                Vec::new()
            }
            Ok(_) | Err(_) => {
                let session = &attached.session;
                let what = format!("what was said in the session {session} is not in its history");
                vec![too_late(&attached.turn, &what)]
            }
        },
        RunCommand::StopAgent { agent } => match run.agents.get_mut(agent) {
            Some(state) => {
                state.orders.is_ending = true;
                vec![Effect::StopAgent(agent.clone())]
            }
            None => Vec::new(),
        },
    }
}

/// Returns the warning about an order for a turn that is over.
fn too_late(turn: &TurnId, what: &str) -> Effect {
    let text = format!("it continued in the meantime, so {what}");
    Effect::Warn { agent: turn.agent.clone(), text }
}

/// Holds agents from a time on, or releases them.
fn set_hold(run: &mut Run, hold: &AgentHold, since: Option<Timestamp>) -> Vec<Effect> {
    let AgentHold { family, visit } = hold;
    let ids: Vec<AgentId> = if family.descendants {
        run.agents.values().map(|agent| agent.id.clone()).filter(|id| family.has(id)).collect()
    } else {
        run.agents.get(&family.agent).map(|agent| agent.id.clone()).into_iter().collect()
    };
    for id in &ids {
        if let Some(agent) = run.agents.get_mut(id) {
            match since {
                Some(since) => agent.orders.hold(visit.as_deref(), since),
                None => agent.orders.release(visit.as_deref()),
            }
        }
    }
    ids.into_iter().map(Effect::Proceed).collect()
}

/// Gives the messages of an agent to the turn that is due, or one of them to the turn that runs.
pub(super) fn messages_taken(
    run: &mut Run,
    turn: &TurnId,
    read: Option<&MessageId>,
) -> Result<Vec<Effect>, ApplyError> {
    due(run, turn)?.orders.take(read);
    let is_running = read.is_some();
    Ok(if is_running { Vec::new() } else { vec![Effect::Proceed(turn.agent.clone())] })
}
