//! The supervisor advances its agents: the languages decide here, and agents perform the activities they need.
//!
//! The interpreters run in the supervisor, against the run's own facts, so nothing can happen between checking a
//! condition and waiting for it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use actix::{AsyncContext, Context as Ctx, Handler};
use uuid::Uuid;

use super::Supervisor;
use super::activities::PendingActivity;
use crate::actor::context::now;
use crate::actor::message::{AdvanceAgent, DispatchTurn, TakeTransition};
use crate::domain::activity::ActivityResult;
use crate::domain::advance::{Advance, AdvanceNext};
use crate::domain::agent::Agent;
use crate::domain::decide::{ProgramStart, TurnJudgement, TurnReport, program_started};
use crate::domain::fact::KnownFacts;
use crate::domain::id::{AgentId, SessionId};
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::language::prompt::judgement::JudgedReply;
use crate::language::prompt::step;
use crate::language::resume::turn::JudgedTurn;
use crate::language::resume::{
    LoadedWorkflow, ResumeEnvironment, ResumeInput, ResumeOutcome, SuspendedExecution, resume,
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
            let source = self.context.source_of_agent(agent)?;
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

    /// Returns the other facts if an agent takes one that only its run still has: the record of the advance ends it.
    fn facts_without_kept(&self, id: &AgentId, input: &ResumeInput) -> Option<KnownFacts> {
        let ResumeInput::Activity(Ok(ActivityResult::Claimed(Some(_)))) = input else {
            return None;
        };
        let program = self.run.agents.get(id)?.program()?;
        let fact = self.run.kept_fact(program.position.activity.as_ref()?)?;
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
            ResumeOutcome::Begins(start) => {
                if self.begin_execution(&id, *start, ctx)
                    && let Some(turn) = self.run.agents.get(&id).map(Agent::turn_id)
                {
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
            ResumeOutcome::Judged(judged) => self.take_judgement(*judged, report, ctx),
            ResumeOutcome::Failed(failure) => self.fail_advance(report, failure, ctx),
        }
    }

    /// Has an agent take the transition of an accepted reply. Any other judgement is recorded at once.
    fn take_judgement(&mut self, judged: JudgedTurn, report: TurnReport, ctx: &mut Ctx<Self>) {
        let JudgedTurn { rules, shown, reply: JudgedReply { judgement, warning } } = judged;
        let id = report.turn.agent.clone();
        if let Some(warning) = warning {
            tracing::warn!(agent = %id, "{warning}");
        }
        let is_accepted = matches!(judgement, TurnJudgement::Accepted(_));
        let report = TurnReport { shown, judgement, ..report };
        if !is_accepted {
            return self.record_report(&report, ctx);
        }
        let taken = TakeTransition { report, rules: Box::new(rules), spent: self.spent(&id) };
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

    /// Records the beginning of an execution; returns whether it has begun.
    fn begin_execution(&mut self, id: &AgentId, start: ProgramStart, ctx: &mut Ctx<Self>) -> bool {
        let Some(agent) = self.run.agents.get(id) else { return false };
        let events = program_started(&self.run, agent, start);
        self.commit_all(events, ctx);
        self.run.agents.get(id).is_some_and(|agent| !agent.execution.is_prompts())
    }

    pub(super) fn record_advance(
        &mut self,
        report: TurnReport,
        mut advance: Advance,
        ctx: &mut Ctx<Self>,
    ) {
        let id = report.turn.agent.clone();
        if let AdvanceNext::Agent { spec, .. } = &mut advance.next {
            let source = self.context.source_of(spec.folder.as_ref());
            spec.options =
                source.map(|source| step::agent_options(&spec.state, &*source)).unwrap_or_default();
        }
        self.may_have_begun.remove(&id);
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
        let TurnReport { turn, cost, .. } = report;
        self.record_report(&TurnReport { cost, ..TurnReport::failed(turn, failure) }, ctx);
    }

    /// Returns the workflow that an agent's state is written in.
    fn workflow_of(&self, agent: &Agent) -> Result<LoadedWorkflow, TurnFailure> {
        let source = self.context.source_of_agent(agent)?;
        self.context.workflows.load(agent, self.run.kept_program(agent), &*source)
    }
}

/// Runs an interpreter; a panic in it is the failure of this agent alone.
fn contained<T>(work: impl FnOnce() -> Result<T, TurnFailure>) -> Result<T, TurnFailure> {
    // What the closure reads is not changed by it, so nothing is left half done.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(TurnFailure::new(FailureCause::Panic, "the runtime failed while it served this agent"))
    })
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
