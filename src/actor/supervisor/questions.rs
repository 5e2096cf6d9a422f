//! The supervisor and questions: agents that wait for answers, the answers, and their timeouts.

use actix::Context as Ctx;

use super::Supervisor;
use super::advance::new_session;
use crate::actor::clock::now;
use crate::domain::agent::Agent;
use crate::domain::decide::{answer, first_prepared_answer, retry_agents, timed_out};
use crate::domain::event::{Event, RunCommand};
use crate::domain::id::AgentId;
use crate::domain::person_command::{AgentMessage, AttachedSession, PromptEdit};
use crate::domain::retry::RetrySelection;
use crate::domain::run::PauseReason;
use crate::domain::turn::TurnId;

impl Supervisor {
    /// Lets an agent wait for an answer until it comes or the timeout is over. That may take days, so no process
    /// is kept for it.
    pub(super) fn await_answer(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(id) else { return };
        self.context.registry.show(self.view_of(agent));
        let Some(asked) = agent.question() else { return };
        self.context.runner.keep(id, &|_| false);
        let Some(late) = &asked.late else { return };
        let late = late.at;
        if let Some(event) = timed_out(agent, now()) {
            return self.commit(event, ctx);
        }
        self.wake(id, late.plus(1), ctx);
    }

    /// Gives answers from `resume` to agents that already wait.
    pub(super) fn give_resume_answers(&mut self, ctx: &mut Ctx<Self>) {
        while let Some(event) = first_prepared_answer(&self.run) {
            let seq = self.run.seq;
            self.commit(event, ctx);
            if self.run.seq == seq {
                return;
            }
        }
    }

    /// Returns whether a pause has to wait because the run stays up for an event that would end it.
    pub(super) fn stays_up_for(&self, pause: &PauseReason) -> bool {
        match pause {
            PauseReason::Asking { .. } => {
                self.stay_up.is_for_questions()
                    || (self.stay_up.is_for_signals() && self.run.external_waits().next().is_some())
            }
            PauseReason::Waiting { .. } => self.stay_up.is_for_signals(),
            // A person who holds an agent is there to release it.
            PauseReason::Parked { .. } => {
                self.stay_up.is_for_questions() && self.run.agents.values().any(Agent::is_held)
            }
            PauseReason::Budget { .. }
            | PauseReason::Agents { .. }
            | PauseReason::Interrupted
            | PauseReason::Plugin { .. }
            | PauseReason::Stopped
            | PauseReason::UsageLimit { .. }
            | PauseReason::Storage { .. }
            | PauseReason::Authentication { .. }
            | PauseReason::Unavailable { .. } => false,
        }
    }

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
                    tracing::warn!("{agent} has ended, so a command to it changes nothing");
                }
                None
            }
        };
        let received = Event::CommandReceived { id, command };
        self.commit_all(std::iter::once(received).chain(follows).collect(), ctx);
    }
}
