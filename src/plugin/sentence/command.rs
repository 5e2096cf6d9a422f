//! The sentence about a command that a person gives to a run.

use crate::domain::event::RunCommand;
use crate::domain::person_command::AgentHold;
use crate::domain::printable::one_line;

/// Returns the sentence.
pub(super) fn given(command: &RunCommand) -> String {
    match command {
        RunCommand::Stop => "asked to stop".to_owned(),
        RunCommand::Answer(given) => {
            format!("someone answers {}: {}", given.node, one_line(&given.text))
        }
        RunCommand::Retry(_) => "asked to retry failed agents".to_owned(),
        RunCommand::Tell(told) => {
            format!("{}  someone sends a message: {}", told.agent, one_line(&told.text))
        }
        RunCommand::Hold(AgentHold { family, visit: None }) => format!("{family}  is held"),
        RunCommand::Hold(AgentHold { family, visit: Some(_) }) => {
            format!("{family}  is held while someone works on it")
        }
        RunCommand::Release(AgentHold { family, visit: None }) => format!("{family}  is released"),
        RunCommand::Release(AgentHold { family, visit: Some(_) }) => {
            format!("{family}  is released after someone worked on it")
        }
        RunCommand::Edit(edit) => {
            format!("{}  someone edits its prompt: {}", edit.turn.agent, one_line(&edit.text))
        }
        RunCommand::Attach(attached) => {
            let (agent, session) = (&attached.turn.agent, &attached.session);
            format!("{agent}  someone talked to it; it continues in the session {session}")
        }
        RunCommand::StopAgent { agent } => format!("{agent}  asked to stop"),
    }
}
