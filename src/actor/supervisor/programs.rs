//! The supervisor and programs: it advances them with the interpreter, and asks their roles.
//!
//! The interpreter runs here, against the run's own facts, so nothing can happen between checking a condition and
//! waiting for it.

use std::rc::Rc;
use std::sync::Arc;

use actix::Context as Ctx;
use uuid::Uuid;

use super::Supervisor;
use super::dispatch::choice;
use super::graphs::contained;
use crate::actor::clock::now;
use crate::domain::activity::ActivityResult;
use crate::domain::agent::Agent;
use crate::domain::decide::{
    ProgramStart, TurnJudgement, TurnReport, decide, delegated_answer, program_started,
    role_delegated, role_stopped,
};
use crate::domain::event::Event;
use crate::domain::fact::FactSelection;
use crate::domain::id::{AgentId, SessionId};
use crate::domain::program_execution::RequestBody;
use crate::domain::run::PauseReason;
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::language::program::checked_program::Program;
use crate::language::program::interpreter::{ProgramEnvironment, advance};
use crate::language::prompt::step;
use crate::language::source::WorkflowSource;

impl Supervisor {
    /// Advances a program, from its beginning or from its position; `fetched` is the result of the activity that
    /// was due.
    pub(super) fn advance_program(
        &mut self,
        id: &AgentId,
        fetched: Option<Result<ActivityResult, String>>,
        ctx: &mut Ctx<Self>,
    ) {
        let Some(agent) = self.run.agents.get(id) else { return };
        let (definition, path) = match self.program_of(agent) {
            Ok(program) => program,
            Err(why) => {
                let failure = TurnFailure::new(FailureCause::Workflow, why);
                return self.record_report(&TurnReport::failed(agent.turn_id(), failure), ctx);
            }
        };
        if agent.program().is_none() && !self.begin_program(id, &definition, ctx) {
            return;
        }
        if !self.refresh_facts(ctx) {
            return;
        }
        let Some(agent) = self.run.agents.get(id) else { return };
        let Some(execution) = agent.program() else { return };
        if execution.position.activity.is_some() && fetched.is_none() {
            let activity = execution.position.activity.clone();
            if let Some(activity) =
                activity.filter(|_| !self.is_pending(id) && !self.advancing.contains(id))
            {
                self.assign_activity(id, activity);
            }
            return;
        }
        let environment = ProgramEnvironment {
            definition: &definition,
            execution,
            facts: &self.run.facts,
            run: &self.run.workflow_id,
            file: &agent.current_state,
            path: &path,
            now: now(),
        };
        let turn = agent.turn_id();
        let advanced = contained(|| Ok(advance(&environment, fetched)));
        let advance = match advanced {
            Ok(advance) => advance.with_sessions(|_| session()),
            Err(failure) => return self.record_report(&TurnReport::failed(turn, failure), ctx),
        };
        let judgement = TurnJudgement::Advanced(Box::new(advance));
        let report = TurnReport { judgement, ..TurnReport::empty(turn) };
        let events = decide(&self.run, &report, choice(None));
        if events.is_empty() {
            self.end_idle_processes(id);
            return self.wake_at_deadline(id, ctx);
        }
        self.commit_all(events, ctx);
    }

    /// Returns the program that an agent executes or is to begin, and the path of its file for messages.
    fn program_of(&self, agent: &Agent) -> Result<(Rc<Program>, String), String> {
        let source = self.context.source_of(agent.folder().as_ref());
        let source: Arc<dyn WorkflowSource> = source.map_err(|error| error.to_string())?;
        let (file, programs) = (&agent.current_state, &self.context.workflows);
        let kept = match agent.program() {
            Some(own) => self.run.definitions.get(&own.program),
            None => self.run.first_definition(agent),
        };
        let program = if let Some(kept) = kept {
            programs.kept_program(&kept.program, file, &kept.text, &*source)?
        } else {
            let text = source.read(file).map_err(|error| error.to_string())?;
            programs.program(file, &text, &*source)?
        };
        Ok((program, source.path(file)))
    }

    /// Records the beginning of a program; returns whether it has begun.
    fn begin_program(&mut self, id: &AgentId, definition: &Program, ctx: &mut Ctx<Self>) -> bool {
        let Some(agent) = self.run.agents.get(id) else { return false };
        let settings = &self.run.settings;
        let mut context = settings.variables.clone();
        context.extend(settings.context.clone());
        context.extend(agent.placeholder_values().into_iter().filter(|(name, text)| {
            name != "input" || !text.is_empty() || !settings.context.contains_key(name)
        }));
        let beginning = ProgramStart {
            definition: definition.kept(agent.current_state.clone(), agent.folder()),
            start: definition.states.first().map(|state| state.name.clone()).unwrap_or_default(),
            label: settings.label.clone().unwrap_or_else(|| self.run.workflow_id.to_string()),
            branch: settings.branch.clone(),
            context,
        };
        let events = program_started(&self.run, agent, beginning);
        self.commit_all(events, ctx);
        self.run.agents.get(id).is_some_and(|agent| agent.program().is_some())
    }

    /// Returns the facts that programs of this run can match.
    fn selected_facts(&self) -> FactSelection {
        let mut all = FactSelection::default();
        for own in self.run.definitions.values() {
            let programs = &self.context.workflows;
            let program = programs.known_program(&own.program).or_else(|| {
                let source = self.context.source_of(own.folder.as_ref()).ok()?;
                programs.kept_program(&own.program, &own.file, &own.text, &*source).ok()
            });
            match program {
                Some(program) => all.extend(&program.facts),
                // What it runs is not there now, so only the labels are known.
                None => all.extend(&FactSelection::of_labels(&own.labels)),
            }
        }
        all
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
        let changes: Vec<_> =
            changes.into_iter().filter(|change| self.run.facts.is_news(change)).collect();
        if !changes.is_empty() {
            self.commit(Event::FactsSeen { changes }, ctx);
        }
        true
    }

    /// Ends the processes of the roles of a program that waits for an outside event, which may take days.
    fn end_idle_processes(&self, id: &AgentId) {
        let Some(execution) = self.run.agents.get(id).and_then(Agent::program) else {
            return;
        };
        if !execution.position.wait.as_ref().is_some_and(|wait| wait.outside) {
            return;
        }
        let idle = execution
            .handles
            .values()
            .filter(|role| self.run.agents.get(role).is_some_and(Agent::waits));
        for role in idle {
            self.context.runner.keep(role, &|_| false);
        }
    }

    /// Looks again at the time that a program waits for.
    fn wake_at_deadline(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
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
            _ => crate::domain::agent::AgentOptions::default(),
        };
        let event = role_stopped(agent)
            .or_else(|| delegated_answer(agent))
            .or_else(|| role_delegated(agent, options, session()));
        event.is_some_and(|event| {
            self.commit(event, ctx);
            true
        })
    }
}

fn session() -> SessionId {
    SessionId::new(&Uuid::new_v4().to_string())
}
