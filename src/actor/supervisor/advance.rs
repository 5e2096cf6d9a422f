//! The supervisor advances its agents: the languages decide here, and agents perform the activities they need.
//!
//! The interpreters run in the supervisor, against the run's own facts, so nothing can happen between checking a
//! condition and waiting for it.

use actix::{AsyncContext, Context as Ctx, Handler};
use uuid::Uuid;

use super::dispatch::choice;
use super::{FirstRecordParts, ShutdownPhase, Supervisor};
use crate::actor::context::{contained, now};
use crate::actor::observer::{
    ActivityDone, AdvanceAgent, AgentDown, ApiThrottled, DispatchTurn, PerformActivity,
    TakeTransition, TaskDone, TurnReported,
};
use crate::domain::activity::{Activity, ActivityOutcome, ActivityResult};
use crate::domain::advance::{Advance, AdvanceNext};
use crate::domain::agent::{Agent, AgentOptions};
use crate::domain::decide::{
    LoadSign, TurnJudgement, TurnReport, decide, program_started, role_event,
};
use crate::domain::event::{Event, NextAction};
use crate::domain::fact::{FactChange, FactSelection, KnownFacts};
use crate::domain::graph_execution::RequestBody;
use crate::domain::id::{AgentId, Folder, SessionId};
use crate::domain::run::PauseReason;
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::language::prompt::judgement::JudgedReply;
use crate::language::prompt::step;
use crate::language::resume::turn::TurnRules;
use crate::language::resume::{
    InterruptedActivity, LoadedWorkflow, ResumeEnvironment, ResumeInput, ResumeOutcome,
    SuspendedExecution, interrupted, resume,
};
use crate::language::source::WorkflowSource;

impl Supervisor {
    /// Has an agent advanced soon. A message for each leaves time for others between them.
    pub(super) fn advance_soon(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        if self.advancing.insert(id.clone()) {
            ctx.notify(AdvanceAgent { agent: id.clone(), permit: None });
        }
    }

    /// Advances an agent from its recorded position, or from the beginning of its state. `report` holds the cost of
    /// the turn whose result is the input, if it is one.
    pub(super) fn advance(&mut self, report: TurnReport, input: ResumeInput, ctx: &mut Ctx<Self>) {
        let id = report.turn.agent.clone();
        if self.performing.contains_key(&id) {
            return self.advance_beside_commands(&id, ctx);
        }
        let Some(agent) = self.run.agents.get(&id) else { return };
        let workflow = match contained(|| self.workflow_of(agent)) {
            Ok(workflow) => workflow,
            Err(failure) => return self.fail_advance(report, failure, ctx),
        };
        self.resume(workflow, SuspendedExecution::Entered, input, report, ctx);
    }

    pub(super) fn resume(
        &mut self,
        workflow: LoadedWorkflow,
        suspended: SuspendedExecution,
        input: ResumeInput,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        // The facts count as they are now, also after an activity that has changed them.
        if workflow.reads_facts() && !self.refresh_facts(ctx) {
            return;
        }
        let id = report.turn.agent.clone();
        let others = self.facts_without_kept(&id, &input);
        let outcome = contained(|| {
            let Some(agent) = self.run.agents.get(&id) else { return Ok(None) };
            let source = self.context.source_of(agent.folder().as_ref())?;
            let mut environment = self.environment_of(agent, &*source);
            environment.facts = others.as_ref().unwrap_or(environment.facts);
            Ok(Some(resume(&workflow, suspended, input, &environment)))
        });
        match outcome {
            Ok(Some(outcome)) => self.take_outcome(workflow, outcome, report, ctx),
            Ok(None) => {}
            Err(failure) => self.fail_advance(report, failure, ctx),
        }
    }

    /// Returns the other facts if an agent takes a fact that only its run still has. The record of the advance ends
    /// that fact.
    fn facts_without_kept(&self, id: &AgentId, input: &ResumeInput) -> Option<KnownFacts> {
        let ResumeInput::Activity(Ok(ActivityResult::Claimed(Some(_)))) = input else {
            return None;
        };
        let fact = self.run.kept_fact_of(id)?;
        Some(self.run.facts.without(&fact.label, &fact.key))
    }

    fn take_outcome(
        &mut self,
        workflow: LoadedWorkflow,
        outcome: ResumeOutcome,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        let id = report.turn.agent.clone();
        match outcome {
            ResumeOutcome::Advanced(advance) => self.record_advance(report, *advance, ctx),
            ResumeOutcome::Needs { activity, suspended } => {
                let pending = PendingActivity { workflow, suspended, activity, report };
                self.perform_activity(pending, ctx);
            }
            ResumeOutcome::Begins { definition, started } => {
                let Some(agent) = self.run.agents.get(&id) else { return };
                let events = program_started(&self.run, agent, *definition, *started);
                self.commit_all(events, ctx);
                let started =
                    self.run.agents.get(&id).filter(|agent| !agent.execution.is_prompts());
                if let Some(turn) = started.map(Agent::turn_id) {
                    self.advance(TurnReport::empty(turn), ResumeInput::Entered, ctx);
                }
            }
            ResumeOutcome::AwaitsPermit => {
                self.advancing.remove(&id);
                self.end_if_still(ctx);
            }
            ResumeOutcome::JoinDue(join) => {
                let judgement = TurnJudgement::JoinDue(join);
                self.record_report(&TurnReport { judgement, ..report }, ctx);
            }
            ResumeOutcome::Turn(prepared) => self.actor_of(&id).do_send(DispatchTurn(prepared)),
            ResumeOutcome::Judged { rules, reply } => {
                self.take_judgement(rules, reply, report, ctx);
            }
            ResumeOutcome::Failed(failure) => self.fail_advance(report, failure, ctx),
        }
    }

    /// Has an agent take the transition of an accepted reply. Any other judgement is recorded at once.
    fn take_judgement(
        &mut self,
        rules: Box<TurnRules>,
        JudgedReply { judgement, warning, shown }: JudgedReply,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        let id = report.turn.agent.clone();
        if let Some(warning) = warning {
            tracing::warn!(agent = %id, "{warning}");
        }
        let is_accepted = matches!(judgement, TurnJudgement::Accepted(_));
        let report = TurnReport { shown, judgement, ..report };
        if !is_accepted {
            return self.record_report(&report, ctx);
        }
        let taken = TakeTransition { report, rules, spent: self.spent(&id) };
        self.advancing.insert(id.clone());
        self.actor_of(&id).do_send(taken);
    }

    pub(super) fn environment_of<'run>(
        &'run self,
        agent: &'run Agent,
        source: &'run dyn WorkflowSource,
    ) -> ResumeEnvironment<'run> {
        let (context, working_dir) = (&self.context, &agent.spec.working_dir);
        let elsewhere =
            if working_dir.is_usual() { None } else { context.performer.working_dir(working_dir) };
        let results = format!("{}-{}.json", agent.id.file_name(), agent.step);
        ResumeEnvironment {
            agent,
            run: &self.run.workflow_id,
            facts: &self.run.facts,
            settings: &self.run.settings,
            granted_rules: &self.run.approval_rules,
            budget_left: self.run.budget_left(),
            ceiling: &context.ceiling,
            source,
            workflows: &context.workflows,
            builtins: &context.builtins,
            working_dir: elsewhere,
            limits: self.run.supervision_of(agent).limits(),
            results_file: context.results.join(results).display().to_string(),
            now: now(),
        }
    }

    pub(super) fn record_advance(
        &mut self,
        report: TurnReport,
        mut advance: Advance,
        ctx: &mut Ctx<Self>,
    ) {
        let id = report.turn.agent.clone();
        if let AdvanceNext::Action(NextAction::Agent { spec, .. }) = &mut advance.next {
            let source = self.context.source_of(spec.folder.as_ref());
            spec.options =
                source.map(|source| step::agent_options(&spec.state, &*source)).unwrap_or_default();
        }
        self.may_have_started.remove(&id);
        let judgement = TurnJudgement::Advanced(Box::new(advance.with_sessions(|_| new_session())));
        let seq = self.run.seq;
        self.record_report(&TurnReport { judgement, ..report }, ctx);
        if self.run.seq == seq {
            // A program that still waits where it waited changes nothing.
            self.end_idle_processes(&id);
            self.wake_at_deadline(&id, ctx);
        }
    }

    pub(super) fn fail_advance(
        &mut self,
        report: TurnReport,
        failure: TurnFailure,
        ctx: &mut Ctx<Self>,
    ) {
        self.record_report(&report.fail(failure), ctx);
    }

    /// Returns the workflow that an agent's state is written in.
    fn workflow_of(&self, agent: &Agent) -> Result<LoadedWorkflow, TurnFailure> {
        let source = self.context.source_of(agent.folder().as_ref())?;
        self.context.workflows.load(agent, self.run.kept_program(agent), &*source)
    }
}

/// Returns the id of a new session.
pub(super) fn new_session() -> SessionId {
    SessionId::new(&Uuid::new_v4().to_string())
}

impl Handler<AdvanceAgent> for Supervisor {
    type Result = ();

    /// Advances an agent that needs no permit, or prepares the turn that has one.
    fn handle(&mut self, AdvanceAgent { agent: id, permit }: AdvanceAgent, ctx: &mut Ctx<Self>) {
        if let Some(permit) = permit {
            return self.advance_with_permit(&id, permit, ctx);
        }
        match self.run.agents.get(&id) {
            Some(agent) if agent.advances_itself() => {
                self.advance_in_working_dir(TurnReport::empty(agent.turn_id()), ctx);
            }
            Some(agent) if agent.may_join() => {
                self.advance(TurnReport::empty(agent.turn_id()), ResumeInput::Entered, ctx);
            }
            Some(_) | None => {
                self.advancing.remove(&id);
                self.schedule(ctx);
            }
        }
    }
}

// The supervisor's handlers of what agents report.
//
// These are the outcomes of turns, throttling by the API, and the loss of an actor.

impl Supervisor {
    /// Records the consequences of a report. A late or repeated report changes nothing, and does not return the permit
    /// of the current turn.
    pub(super) fn record_report(&mut self, report: &TurnReport, ctx: &mut Ctx<Self>) {
        self.advancing.remove(&report.turn.agent);
        if !self.run.agents.contains_key(&report.turn.agent) {
            self.dismiss(&report.turn.agent);
        }
        let elsewhere = self
            .run
            .agents
            .get(&report.turn.agent)
            .is_some_and(|known| !known.spec.working_dir.is_usual());
        let ready = if elsewhere { None } else { self.context.runner.offer() };
        let events = decide(&self.run, report, choice(ready.clone()));
        if let Some(ready) = ready
            && events.iter().any(|event| event.new_session() == Some(&ready))
        {
            self.context.runner.promise(&ready);
        }
        if let Some(message) = report.stuck.clone() {
            self.hold(Some(PauseReason::Storage { message }), ctx);
        }
        if events.is_empty() {
            let due = self.run.agents.get(&report.turn.agent).map(Agent::turn_id);
            if report.returns_permit(due.as_ref()) {
                self.admission.release(&report.turn.agent);
                self.schedule(ctx);
            }
            return;
        }
        match report.load_sign() {
            LoadSign::Throttled => self.slow_down(),
            LoadSign::Answered => self.throttle.succeeded(),
            LoadSign::Nothing => {}
        }
        self.admission.release(&report.turn.agent);
        let agent = self.run.agents.get(&report.turn.agent);
        // An evaluator's session is never continued elsewhere, because its state is evaluated again.
        let kept_session = report
            .kept_session
            .clone()
            .filter(|kept| agent.is_some_and(|agent| agent.session.id == kept.session_id));
        let first = FirstRecordParts {
            snapshot: report.snapshot.clone(),
            kept_session,
            ..FirstRecordParts::default()
        };
        self.commit_with(events, first, ctx);
        if !self.run.agents.contains_key(&report.turn.agent) {
            // Its slot is the next one to be free, so no other process has to be ended for the next agent.
            self.context.runner.keep(&report.turn.agent, &|_| false);
        }
        self.schedule(ctx);
    }

    fn slow_down(&mut self) {
        if self.throttle.throttled(self.admission.running(), now()) {
            let allowed = self.throttle.allowed();
            tracing::warn!(
                "the API asks for fewer requests: {allowed} at a time from now on, more after successes"
            );
        }
    }
}

impl Handler<ApiThrottled> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: ApiThrottled, _: &mut Self::Context) {
        self.slow_down();
    }
}

impl Handler<TurnReported> for Supervisor {
    type Result = ();

    fn handle(&mut self, TurnReported(report): TurnReported, ctx: &mut Self::Context) {
        self.record_report(&report, ctx);
    }
}

impl Handler<TaskDone> for Supervisor {
    type Result = ();

    /// Continues the graph with the result. The cost of a turn that is no longer due is recorded.
    fn handle(&mut self, TaskDone { report, result }: TaskDone, ctx: &mut Self::Context) {
        let due = self.run.agents.get(&report.turn.agent).map(Agent::turn_id);
        if due.as_ref() != Some(&report.turn) {
            return self.record_report(&report, ctx);
        }
        self.advance(report, ResumeInput::TaskDone(result), ctx);
    }
}

impl Handler<AgentDown> for Supervisor {
    type Result = ();

    /// Starts a new actor for an agent whose actor failed; it continues the same turn.
    fn handle(&mut self, down: AgentDown, ctx: &mut Self::Context) {
        if !down.panicked {
            return;
        }
        self.agents.remove(&down.agent);
        self.advancing.remove(&down.agent);
        let cost = self.performing.remove(&down.agent).map(|pending| pending.report.cost);
        self.leave_if_still(ctx);
        self.may_have_started.insert(down.agent.clone());
        match down.turn {
            Some(turn) => {
                let failure = TurnFailure::new(
                    FailureCause::Panic,
                    "the runtime failed while it served this agent",
                );
                let report = TurnReport::failed(turn, failure);
                self.record_report(&TurnReport { cost: cost.unwrap_or_default(), ..report }, ctx);
            }
            None if self.is_pending(&down.agent) => {}
            None => {
                self.dispatch_agent(&down.agent, ctx);
                self.schedule(ctx);
            }
        }
    }
}

// The supervisor and activities: agents perform them, and the execution that waits for one continues with its outcome.
//
// What is not recorded yet is kept here while an activity is performed for it.

/// An execution that waits for an activity.
pub(super) struct PendingActivity {
    pub(super) workflow: LoadedWorkflow,
    pub(super) suspended: SuspendedExecution,
    pub(super) activity: Activity,
    /// The report that the advance will be part of: it has the cost of the turn before.
    pub(super) report: TurnReport,
}

impl Supervisor {
    /// Has an agent perform an activity. One in a record that is not durable yet is due again once it is.
    pub(super) fn perform_activity(&mut self, pending: PendingActivity, ctx: &mut Ctx<Self>) {
        let id = pending.report.turn.agent.clone();
        let is_recorded = matches!(pending.suspended, SuspendedExecution::Recorded);
        let Some(agent) = self.run.agents.get(&id) else { return };
        if is_recorded && self.is_pending(&id) {
            return;
        }
        if let Some(fact) = self.run.kept_fact(&pending.activity) {
            // The dataspace has it no longer, and no other run can take it.
            let PendingActivity { workflow, suspended, report, .. } = pending;
            let input = ResumeInput::Activity(Ok(ActivityResult::Claimed(Some(fact))));
            return self.resume(workflow, suspended, input, report, ctx);
        }
        let (turn, working_dir) = (agent.turn_id(), agent.spec.working_dir.clone());
        let base = agent.worktree_base();
        let activity = pending.activity.clone();
        let may_have_started = self.may_have_started.remove(&id);
        self.performing.insert(id.clone(), pending);
        self.advancing.insert(id.clone());
        let order = PerformActivity { turn, working_dir, base, activity, may_have_started };
        self.actor_of(&id).do_send(order);
        // Other bodies may wait for a time beside commands.
        self.wake_at_deadline(&id, ctx);
    }

    /// Advances a program while commands of its bodies run: other bodies may continue. If none does, it still waits
    /// for the commands.
    pub(super) fn advance_beside_commands(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        let is_waiting = self
            .performing
            .get(id)
            .is_some_and(|pending| matches!(pending.activity, Activity::Commands(_)));
        if !is_waiting || !matches!(self.shutdown, ShutdownPhase::NotStarted) {
            return;
        }
        let Some(pending) = self.performing.remove(id) else { return };
        let input = ResumeInput::Activity(Ok(ActivityResult::Commands(Vec::new())));
        let (workflow, report) = (pending.workflow.clone(), pending.report.clone());
        self.resume(workflow, SuspendedExecution::Recorded, input, report, ctx);
        let agent = self.run.agents.get(id);
        if agent.is_some_and(|agent| agent.turn_id() == pending.report.turn) {
            self.performing.insert(id.clone(), pending);
            self.advancing.insert(id.clone());
        }
    }

    /// Ends the commands of bodies that the agent's program no longer waits for, once that is durable.
    pub(super) fn end_unneeded_commands(&self, id: &AgentId) {
        let performer = &self.context.performer;
        if performer.has_commands(id) && !self.queued_effects.contains(id) {
            let program = self.run.agents.get(id).and_then(Agent::program);
            let wanted = program.map(|execution| execution.position.commands()).unwrap_or_default();
            performer.keep_commands(id, &wanted);
        }
    }

    /// Continues an execution with the outcome of its activity.
    fn continue_with(
        &mut self,
        pending: PendingActivity,
        outcome: ActivityOutcome,
        ctx: &mut Ctx<Self>,
    ) {
        let PendingActivity { workflow, suspended, activity, report } = pending;
        let input = match outcome {
            ActivityOutcome::Done(result) => ResumeInput::Activity(result),
            ActivityOutcome::Refused(why) => ResumeInput::Refused(why),
            ActivityOutcome::Lost(why) => ResumeInput::Lost(format!("{}: {why}", activity.name())),
            ActivityOutcome::Ended | ActivityOutcome::Stuck(_) => {
                return self.interrupt_activity(suspended, &activity, report, ctx);
            }
        };
        self.resume(workflow, suspended, input, report, ctx);
    }

    /// Records the consequence of an activity that was ended because the run was stopped.
    fn interrupt_activity(
        &mut self,
        suspended: SuspendedExecution,
        activity: &Activity,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        if !self.run.agents.contains_key(&report.turn.agent) {
            return;
        }
        match interrupted(suspended, activity) {
            InterruptedActivity::Advanced(advance) => self.record_advance(report, *advance, ctx),
            InterruptedActivity::StillDue => {}
            InterruptedActivity::Failed(failure) => self.fail_advance(report, failure, ctx),
        }
    }
}

impl Handler<ActivityDone> for Supervisor {
    type Result = ();

    /// Continues the agent with the outcome. If the disk failed, the run is held and the activity stays due.
    fn handle(&mut self, done: ActivityDone, ctx: &mut Self::Context) {
        let id = done.turn.agent.clone();
        if self.performing.get(&id).is_some_and(|pending| pending.report.turn != done.turn) {
            // Commands ended while the program advanced beside them; their outcomes are kept for the next wait.
            return;
        }
        self.advancing.remove(&id);
        let mut pending = self.performing.remove(&id);
        if self.is_over() {
            // Its outcome is in its note.
            return self.leave_if_still(ctx);
        }
        if let Some(pending) = pending.as_mut().filter(|_| done.snapshot.is_some()) {
            pending.report.snapshot = done.snapshot;
        }
        if !self.run.agents.contains_key(&id) {
            self.dismiss(&id);
        }
        let is_due = self.run.agents.get(&id).is_some_and(|agent| agent.turn_id() == done.turn);
        match (pending, done.outcome) {
            // The agent has ended: the permit of the turn before is returned, and its cost recorded.
            (Some(pending), _) if !is_due => self.record_report(&pending.report, ctx),
            (None, _) if !is_due => {}
            (_, ActivityOutcome::Stuck(message)) => {
                self.hold(Some(PauseReason::Storage { message }), ctx);
            }
            (Some(pending), outcome) => self.continue_with(pending, outcome, ctx),
            (None, _) => {}
        }
        self.schedule(ctx);
    }
}

// The supervisor and programs: their facts, and the roles that serve them.

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
