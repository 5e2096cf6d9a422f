//! Performs the activity that an agent's graph, program or script needs, and tells the supervisor its outcome.
//!
//! If hosts exchange work, that of other hosts is fetched before an activity, and the agent's own is pushed after it.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, Handler, WrapFuture};

use crate::actor::agent::{AgentActor, AgentWork, snapshot_of};
use crate::actor::exchange::{NotReady, WorkExchange};
use crate::actor::observer::{ActivityDone, PerformActivity};
use crate::domain::activity::{Activity, ActivityOutcome};
use crate::domain::operation::RecoveryClass;
use crate::domain::turn::FailureCause;
use crate::fault::FaultPoint;

impl Handler<PerformActivity> for AgentActor {
    type Result = ();

    /// Ignores an activity that is being performed already.
    fn handle(&mut self, pending: PerformActivity, ctx: &mut Ctx<Self>) {
        let PerformActivity { turn, working_dir, base, activity, may_have_started } = pending;
        if self.turn().is_some_and(|running| running == turn) {
            return;
        }
        if let AgentWork::PerformingActivity { handle, .. } = &self.work {
            // It waited for commands of bodies, which keep running.
            ctx.cancel_future(*handle);
        }
        let performer = Rc::clone(&self.context.performer);
        let step = turn.clone();
        let performing = async move {
            let (before, after) = failpoints(&activity).unzip();
            if let Some(before) = before {
                before.reach();
            }
            let changes_files = changes_files(&activity);
            let is_exchanged = performer.exchanges_work();
            let exchange = WorkExchange::of(&performer, &step.agent, &working_dir);
            if is_exchanged
                && is_in_directory(&activity)
                && let Err(not_ready) = exchange.prepare(base).await
            {
                return (outcome_of(not_ready), None);
            }
            let (home, tree) = (working_dir.home.clone(), working_dir.snapshot_tree().cloned());
            let outcome = Rc::clone(&performer)
                .perform(step.clone(), working_dir, activity, may_have_started)
                .await;
            if let Some(after) = after {
                after.reach();
            }
            let snapshot = match tree.filter(|_| changes_files) {
                Some(tree) => snapshot_of(performer, home, tree, step).await,
                None => None,
            };
            if is_exchanged
                && changes_files
                && let Err(not_ready) = exchange.push().await
            {
                return (outcome_of(not_ready), None);
            }
            (outcome, snapshot)
        };
        let done = turn.clone();
        let handle =
            ctx.spawn(performing.into_actor(self).map(move |(outcome, snapshot), this, _| {
                this.work = AgentWork::Idle;
                let done = ActivityDone { turn: done, outcome, snapshot };
                this.context.supervisor.activities.do_send(done);
            }));
        self.work = AgentWork::PerformingActivity { turn, handle };
    }
}

/// Returns the failpoints before and after an activity; what only reads has none.
fn failpoints(activity: &Activity) -> Option<(FaultPoint, FaultPoint)> {
    match activity {
        Activity::Operation(operation) => (operation.class() != RecoveryClass::Read)
            .then_some((FaultPoint::OperationBefore, FaultPoint::OperationAfter)),
        Activity::Command(_) => Some((FaultPoint::OperationBefore, FaultPoint::OperationAfter)),
        // Each of the commands has its own.
        Activity::Commands(_) => None,
        _ => Some((FaultPoint::ActivityBefore, FaultPoint::ActivityAfter)),
    }
}

/// Returns the outcome of an activity that could not begin, or whose work is not where other hosts find it.
fn outcome_of(not_ready: NotReady) -> ActivityOutcome {
    match not_ready {
        NotReady::Ended => ActivityOutcome::Ended,
        NotReady::Failed(failure) if failure.cause == FailureCause::Lost => {
            ActivityOutcome::Lost(failure.message)
        }
        NotReady::Failed(failure) => ActivityOutcome::Refused(failure.message),
    }
}

/// Returns whether an activity may change files.
fn changes_files(activity: &Activity) -> bool {
    match activity {
        Activity::Operation(operation) => operation.class() != RecoveryClass::Read,
        activity => matches!(activity, Activity::Command(_) | Activity::Commands(_)),
    }
}

/// Returns whether an activity is performed in the agent's directory.
fn is_in_directory(activity: &Activity) -> bool {
    !matches!(
        activity,
        Activity::StartWorkflow(_)
            | Activity::Assert { .. }
            | Activity::Retract { .. }
            | Activity::Claim { .. }
    )
}
