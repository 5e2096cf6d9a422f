//! The supervisor and programs: their facts, and the roles that serve them.

use actix::Context as Ctx;

use super::Supervisor;
use super::advance::new_session;
use crate::domain::agent::AgentOptions;
use crate::domain::decide::role_event;
use crate::domain::event::Event;
use crate::domain::fact::{FactChange, FactSelection};
use crate::domain::id::{AgentId, Folder};
use crate::domain::program_execution::RequestBody;
use crate::domain::run::PauseReason;
use crate::language::prompt::step;

impl Supervisor {
    /// Returns the facts that programs of this run can match at their positions.
    fn selected_facts(&self) -> FactSelection {
        let files = |folder: Option<&Folder>| self.context.source_of(folder);
        self.context.workflows.selected_facts(&self.run, files)
    }

    /// Records the changes of facts that programs of this run can match. If they cannot be read, the run holds still,
    /// because its programs depend on them. Returns true if they can be read.
    pub(super) fn refresh_facts(&mut self, ctx: &mut Ctx<Self>) -> bool {
        let selection = self.selected_facts();
        if selection.is_empty() || self.run.agents.is_empty() {
            return true;
        }
        let changes = match self.context.performer.changed_facts(&selection, &self.run.facts) {
            Ok(changes) => changes,
            Err(message) => {
                self.hold(Some(PauseReason::Storage { message }), ctx);
                return false;
            }
        };
        let changes: Vec<_> = changes.into_iter().filter(|change| self.is_news(change)).collect();
        if !changes.is_empty() {
            self.commit(Event::FactsSeen { changes }, ctx);
        }
        true
    }

    /// Returns whether the run is to see a change of a fact.
    fn is_news(&self, change: &FactChange) -> bool {
        self.run.facts.is_news(change) && !self.run.hides(change)
    }

    /// Ends the processes of the roles of a program that waits for an outside event, which may take days.
    pub(super) fn end_idle_processes(&self, id: &AgentId) {
        let idle = self.run.agents.get(id).map(|agent| self.run.idle_roles(agent));
        for role in idle.into_iter().flatten() {
            self.context.runner.keep(&role, &|_| false);
        }
    }

    /// Looks again at the time that a program waits for.
    pub(super) fn wake_at_deadline(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(id) else { return };
        let Some(until) = agent.program_wait().and_then(|wait| wait.until) else { return };
        self.wake(id, until.plus(1), ctx);
    }

    /// Advances an agent that serves a program. A request to a folder is done by another agent, whose result is the
    /// answer; the role ends when its program has ended. Returns true if the agent has no other work now.
    pub(super) fn advance_role(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) -> bool {
        let Some(agent) = self.run.agents.get(id) else { return true };
        let Some(mailbox) = agent.mailbox() else { return false };
        let options = match mailbox.current.as_deref().map(|request| &request.body) {
            Some(RequestBody::Folder { folder, start, .. }) => {
                let folder = folder.clone().or_else(|| agent.folder());
                let source = self.context.source_of(folder.as_ref());
                source.map(|source| step::agent_options(start, &*source)).unwrap_or_default()
            }
            Some(RequestBody::Prompt(_)) | None => AgentOptions::default(),
        };
        role_event(agent, options, new_session()).is_some_and(|event| {
            self.commit(event, ctx);
            true
        })
    }
}
