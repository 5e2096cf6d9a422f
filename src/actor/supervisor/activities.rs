//! The supervisor and activities: agents perform them, and the execution that waits for one continues with its outcome.
//!
//! What is not recorded yet is kept here while an activity is performed for it.

use actix::{Context as Ctx, Handler};

use super::{ShutdownPhase, Supervisor};
use crate::actor::message::{ActivityDone, PerformActivity};
use crate::domain::activity::{Activity, ActivityOutcome, ActivityResult};
use crate::domain::agent::Agent;
use crate::domain::decide::TurnReport;
use crate::domain::id::AgentId;
use crate::domain::run::PauseReason;
use crate::language::resume::{
    InterruptedActivity, LoadedWorkflow, ResumeInput, SuspendedExecution, interrupted,
};

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
        let base = agent.own_base();
        let activity = pending.activity.clone();
        let may_have_begun = self.may_have_begun.remove(&id);
        self.performing.insert(id.clone(), pending);
        self.advancing.insert(id.clone());
        let due = PerformActivity { turn, working_dir, base, activity, may_have_begun };
        self.actor_of(&id).do_send(due);
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
        if !is_waiting || !matches!(self.shutdown, ShutdownPhase::NotBegun) {
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
            let wanted = program.map(|own| own.position.commands()).unwrap_or_default();
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
                return self.interrupt_activity(&workflow, suspended, &activity, report, ctx);
            }
        };
        self.resume(workflow, suspended, input, report, ctx);
    }

    /// Records the consequence of an activity that was ended because the run was stopped.
    fn interrupt_activity(
        &mut self,
        workflow: &LoadedWorkflow,
        suspended: SuspendedExecution,
        activity: &Activity,
        report: TurnReport,
        ctx: &mut Ctx<Self>,
    ) {
        if !self.run.agents.contains_key(&report.turn.agent) {
            return;
        }
        match interrupted(workflow, suspended, activity) {
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
