//! The supervisor advances its agents: the languages decide here, and agents perform the activities they need.
//!
//! The interpreters run in the supervisor, against the run's own facts, so nothing can happen between checking a
//! condition and waiting for it. What is not recorded yet is kept here while an activity is performed for it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use actix::{AsyncContext, Context as Ctx, Handler};
use uuid::Uuid;

use super::Supervisor;
use crate::actor::clock::now;
use crate::actor::message::{ActivityDone, AdvanceAgent, JudgeReply, TaskAnswered};
use crate::domain::activity::{Activity, ActivityOutcome};
use crate::domain::advance::{Advance, AdvanceNext};
use crate::domain::agent::Agent;
use crate::domain::decide::{ProgramStart, TurnJudgement, TurnReport, program_started};
use crate::domain::id::{AgentId, SessionId};
use crate::domain::operation::RecoveryClass;
use crate::domain::run::PauseReason;
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::language::prompt::kind::StateKind;
use crate::language::prompt::script::PreparedScript;
use crate::language::prompt::step;
use crate::language::resume::{
    LoadedWorkflow, ResumeEnvironment, ResumeInput, ResumeOutcome, SuspendedExecution, interrupted,
    resume,
};

/// An execution that waits for an activity.
pub(super) struct PendingActivity {
    workflow: LoadedWorkflow,
    suspended: SuspendedExecution,
    activity: Activity,
    /// The report that the advance will be part of: it has the cost of the turn before.
    report: TurnReport,
}

impl Supervisor {
    /// Has an agent advanced soon. A message for each leaves time for others between them.
    pub(super) fn advance_soon(&mut self, id: &AgentId, ctx: &mut Ctx<Self>) {
        if self.advancing.insert(id.clone()) {
            ctx.notify(AdvanceAgent(id.clone()));
        }
    }

    /// Advances an agent from its recorded position, or from the beginning of its state. `report` holds the cost of
    /// the turn whose result is the input, if it is one.
    pub(super) fn advance(&mut self, report: TurnReport, input: ResumeInput, ctx: &mut Ctx<Self>) {
        let id = report.turn.agent.clone();
        if self.performing.contains_key(&id) {
            return;
        }
        let Some(agent) = self.run.agents.get(&id) else { return };
        let workflow = match contained(|| self.workflow_of(agent)) {
            Ok(workflow) => workflow,
            Err(failure) => return self.fail_advance(report, failure, ctx),
        };
        self.resume(workflow, SuspendedExecution::Entered, input, report, ctx);
    }

    fn resume(
        &mut self,
        workflow: LoadedWorkflow,
        suspended: SuspendedExecution,
        input: ResumeInput,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        // A program decides on the facts as they are now, also after an activity that has changed them.
        if matches!(workflow, LoadedWorkflow::Program(..)) && !self.refresh_facts(ctx) {
            return;
        }
        let id = report.turn.agent.clone();
        let Some(environment) = self.environment_of(&id) else { return };
        match contained(|| Ok(resume(&workflow, suspended, input, &environment))) {
            Ok(ResumeOutcome::Advanced(advance)) => self.record_advance(report, *advance, ctx),
            Ok(ResumeOutcome::Needs { activity, suspended }) => {
                let is_recorded = matches!(suspended, SuspendedExecution::Recorded);
                // An activity in a record that is not durable yet is due again once it is.
                if is_recorded && self.is_pending(&id) {
                    return;
                }
                let pending =
                    PendingActivity { workflow, suspended, activity: activity.clone(), report };
                self.performing.insert(id.clone(), pending);
                self.assign_activity(&id, activity);
            }
            Ok(ResumeOutcome::Begins(start)) => {
                if self.begin_program(&id, *start, ctx)
                    && let Some(turn) = self.run.agents.get(&id).map(Agent::turn_id)
                {
                    self.advance(TurnReport::empty(turn), ResumeInput::Entered, ctx);
                }
            }
            Ok(ResumeOutcome::Turn) => {
                self.advancing.remove(&id);
            }
            Ok(ResumeOutcome::Replied(reply)) => self.have_judged(&id, reply),
            Ok(ResumeOutcome::Failed(failure)) | Err(failure) => {
                self.fail_advance(report, failure, ctx);
            }
        }
    }

    /// Has an agent judge the reply of its script, which plans the children that it forks.
    fn have_judged(&mut self, id: &AgentId, reply: String) {
        let spent = self.spent(id);
        let Some(assignment) = self.assignment_of(id) else { return };
        self.advancing.insert(id.clone());
        self.actor_of(id).do_send(JudgeReply { assignment, reply, spent });
    }

    fn environment_of(&self, id: &AgentId) -> Option<ResumeEnvironment<'_>> {
        let agent = self.run.agents.get(id)?;
        let working_dir = &agent.spec.working_dir;
        let elsewhere = if working_dir.is_usual() {
            None
        } else {
            self.context.performer.working_dir(working_dir)
        };
        Some(ResumeEnvironment {
            agent,
            run: &self.run.workflow_id,
            facts: &self.run.facts,
            settings: &self.run.settings,
            builtins: &self.context.builtins,
            working_dir: elsewhere,
            script_timeout_ms: self.run.supervision_of(agent).limits().timeout_ms,
            now: now(),
        })
    }

    /// Records the beginning of a program; returns whether it has begun.
    fn begin_program(&mut self, id: &AgentId, start: ProgramStart, ctx: &mut Ctx<Self>) -> bool {
        let Some(agent) = self.run.agents.get(id) else { return false };
        let events = program_started(&self.run, agent, start);
        self.commit_all(events, ctx);
        self.run.agents.get(id).is_some_and(|agent| agent.program().is_some())
    }

    fn record_advance(&mut self, report: TurnReport, mut advance: Advance, ctx: &mut Ctx<Self>) {
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

    /// Returns the workflow that an agent's state is written in. A program is taken from the run's record of it.
    fn workflow_of(&self, agent: &Agent) -> Result<LoadedWorkflow, TurnFailure> {
        let wrong = |why: String| TurnFailure::new(FailureCause::Workflow, why);
        let (file, folder) = (&agent.current_state, agent.folder());
        let folder = folder.as_ref();
        let source = || self.context.source_of(folder).map_err(|error| wrong(error.to_string()));
        let workflows = &self.context.workflows;
        match StateKind::of(file) {
            Some(StateKind::Graph) => {
                let entered = agent.graph().map(|own| &own.state.program);
                let graph = workflows.graph_of_agent(folder, file, entered, &*source()?);
                graph.map(LoadedWorkflow::Graph).map_err(wrong)
            }
            Some(StateKind::Program) => {
                let kept = match agent.program() {
                    Some(own) => self.run.definitions.get(&own.program),
                    None => self.run.first_definition(agent),
                };
                let source = source()?;
                let program = match kept {
                    Some(kept) => workflows.kept_program(&kept.program, file, &kept.text, &*source),
                    None => source
                        .read(file)
                        .map_err(|error| error.to_string())
                        .and_then(|text| workflows.program(file, &text, &*source)),
                };
                let path = source.path(file);
                program.map(|program| LoadedWorkflow::Program(program, path)).map_err(wrong)
            }
            Some(StateKind::Script) => {
                let script = PreparedScript::read(file, folder, &*source()?);
                script.map(LoadedWorkflow::Script).map_err(|error| wrong(error.to_string()))
            }
            Some(StateKind::Prompt) | None => Ok(LoadedWorkflow::Prompts),
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
        let failure = match outcome {
            ActivityOutcome::Done(result) => {
                return self.resume(
                    workflow,
                    suspended,
                    ResumeInput::Activity(result),
                    report,
                    ctx,
                );
            }
            ActivityOutcome::Refused(why) => {
                return self.resume(workflow, suspended, ResumeInput::Refused(why), report, ctx);
            }
            ActivityOutcome::Lost(why) => {
                let input = ResumeInput::Lost(format!("{}: {why}", activity.name()));
                return self.resume(workflow, suspended, input, report, ctx);
            }
            ActivityOutcome::Ended | ActivityOutcome::Stuck(_) => stopped(&activity),
        };
        let Some(environment) = self.environment_of(&report.turn.agent) else { return };
        let is_interrupted = failure.cause == FailureCause::Interrupted;
        let is_recorded = matches!(suspended, SuspendedExecution::Recorded);
        let kept = is_interrupted.then(|| interrupted(&workflow, suspended, &environment));
        match kept.flatten() {
            Some(advance) => self.record_advance(report, advance, ctx),
            // The recorded position says that the activity is due.
            None if is_recorded => {}
            None => self.fail_advance(report, failure, ctx),
        }
    }
}

/// Returns the failure of an agent whose activity was ended because the run was stopped.
fn stopped(activity: &Activity) -> TurnFailure {
    let cause = match activity.class() {
        RecoveryClass::Uncertain => FailureCause::Uncertain,
        RecoveryClass::Read | RecoveryClass::Converges | RecoveryClass::Guarded => {
            FailureCause::Interrupted
        }
    };
    let message = format!("{} was ended because the run was stopped", activity.name());
    TurnFailure::new(cause, message)
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

    fn handle(&mut self, AdvanceAgent(id): AdvanceAgent, ctx: &mut Self::Context) {
        let due = self.run.agents.get(&id).filter(|agent| agent.advances_itself());
        if let Some(turn) = due.map(Agent::turn_id) {
            return self.advance_in_working_dir(TurnReport::empty(turn), ctx);
        }
        self.advancing.remove(&id);
        self.schedule(ctx);
    }
}

impl Handler<TaskAnswered> for Supervisor {
    type Result = ();

    /// Advances the graph that asked for the turn. The cost of a turn that is not due any more is recorded.
    fn handle(&mut self, answered: TaskAnswered, ctx: &mut Self::Context) {
        let TaskAnswered { report, result } = answered;
        let due = self.run.agents.get(&report.turn.agent).map(Agent::turn_id);
        if due.as_ref() != Some(&report.turn) {
            return self.record_report(&report, ctx);
        }
        self.advancing.insert(report.turn.agent.clone());
        self.advance(report, ResumeInput::Turn(result), ctx);
    }
}

impl Handler<ActivityDone> for Supervisor {
    type Result = ();

    /// Continues the agent with the outcome. If the run's disk failed, the run is held and the activity stays due.
    fn handle(&mut self, done: ActivityDone, ctx: &mut Self::Context) {
        let id = done.turn.agent.clone();
        self.advancing.remove(&id);
        let pending = self.performing.remove(&id);
        if !self.run.agents.contains_key(&id) {
            self.dismiss(&id);
        }
        let is_due = self.run.agents.get(&id).is_some_and(|agent| agent.turn_id() == done.turn);
        match (pending, done.outcome) {
            _ if !is_due => {}
            (_, ActivityOutcome::Stuck(message)) => {
                self.hold(Some(PauseReason::Storage { message }), ctx);
            }
            (Some(pending), outcome) => self.continue_with(pending, outcome, ctx),
            (None, _) => {}
        }
        self.schedule(ctx);
    }
}
