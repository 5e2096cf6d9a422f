//! Commands of people: each is recorded, and then what follows from it.

use actix::Context as Ctx;

use super::Supervisor;
use super::advance::new_session;
use crate::domain::decide::{answer, retry_agents};
use crate::domain::event::{Event, RunCommand};
use crate::domain::person_command::{AgentMessage, AttachedSession, PromptEdit};
use crate::domain::retry::RetrySelection;
use crate::domain::turn::TurnId;

impl Supervisor {
    /// Returns the event with which failed agents live again; `None` if the selection chooses none.
    pub(super) fn retry(&self, selection: &RetrySelection) -> Option<Event> {
        let decided = retry_agents(&self.run, selection, new_session);
        decided.map_err(|why| tracing::warn!("nothing is retried: {why}")).ok()
    }

    /// Returns a command, with a mark if it is about a turn that was due and has begun. No record tells that.
    fn with_lateness(&self, mut command: RunCommand) -> RunCommand {
        if let RunCommand::Edit(PromptEdit { turn, is_late, .. })
        | RunCommand::Attach(AttachedSession { turn, is_late, .. }) = &mut command
        {
            *is_late = self.admission.holders().any(|holder| *holder == turn.agent);
        }
        command
    }

    /// Handles a command; the record that it was taken comes first.
    pub(super) fn handle_command(&mut self, id: String, command: RunCommand, ctx: &mut Ctx<Self>) {
        let command = self.with_lateness(command);
        let follows = match &command {
            RunCommand::Stop | RunCommand::Hold(_) | RunCommand::Release(_) => None,
            RunCommand::Answer(given) => match answer(&self.run, given) {
                Ok(event) => Some(event),
                Err(why) => {
                    tracing::warn!("an answer is not accepted: {why}");
                    None
                }
            },
            RunCommand::Retry(selection) => self.retry(selection),
            RunCommand::Tell(AgentMessage { agent, .. })
            | RunCommand::Edit(PromptEdit { turn: TurnId { agent, .. }, .. })
            | RunCommand::Attach(AttachedSession { turn: TurnId { agent, .. }, .. })
            | RunCommand::StopAgent { agent } => {
                if !self.run.agents.contains_key(agent) {
                    tracing::warn!("{agent} has ended, so a command to it has no effect");
                }
                None
            }
        };
        let received = Event::CommandReceived { id, command };
        self.commit_all(std::iter::once(received).chain(follows).collect(), ctx);
    }
}
