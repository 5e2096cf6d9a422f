//! Performs the activity that an agent's graph, program or script needs, and tells the supervisor its outcome.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, Handler, WrapFuture};

use super::activity_exchange::{ActivityExchange, outcome_of};
use super::snapshot::{changes_files, taken};
use super::{AgentActor, AgentWork};
use crate::actor::message::{ActivityDone, PerformActivity};
use crate::domain::activity::Activity;
use crate::domain::operation::RecoveryClass;
use crate::fault::point;

impl Handler<PerformActivity> for AgentActor {
    type Result = ();

    /// Ignores an activity that is being performed already.
    fn handle(&mut self, due: PerformActivity, ctx: &mut Ctx<Self>) {
        let PerformActivity { turn, working_dir, base, activity, may_have_begun } = due;
        if self.turn().is_some_and(|running| running == turn) {
            return;
        }
        if let AgentWork::PerformingActivity { handle, .. } = &self.work {
            // It waited for commands of bodies, which run on.
            ctx.cancel_future(*handle);
        }
        let performer = Rc::clone(&self.context.performer);
        let step = turn.clone();
        let performing = async move {
            let points = failpoints(&activity);
            if let Some((before, _)) = points {
                point(before);
            }
            let tree = working_dir.snapshot_tree().filter(|_| changes_files(&activity)).cloned();
            let (home, again) = (working_dir.home.clone(), may_have_begun);
            let exchange = ActivityExchange::of(&performer, &step, &working_dir, &activity);
            if let Err(not_ready) = exchange.before(base).await {
                return (outcome_of(not_ready), None);
            }
            let outcome =
                Rc::clone(&performer).perform(step.clone(), working_dir, activity, again).await;
            if let Some((_, after)) = points {
                point(after);
            }
            let snapshot = match tree {
                Some(tree) => taken(performer, home, tree, step).await,
                None => None,
            };
            match exchange.after().await {
                Ok(()) => (outcome, snapshot),
                Err(not_ready) => (outcome_of(not_ready), None),
            }
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
fn failpoints(activity: &Activity) -> Option<(&'static str, &'static str)> {
    match activity {
        Activity::Operation(operation) => (operation.class() != RecoveryClass::Read)
            .then_some(("operation.before", "operation.after")),
        Activity::Command(_) => Some(("operation.before", "operation.after")),
        // Each of the commands has its own.
        Activity::Commands(_) => None,
        Activity::StartWorkflow(_)
        | Activity::Bases { .. }
        | Activity::Changes { .. }
        | Activity::Assert { .. }
        | Activity::Retract { .. }
        | Activity::Claim { .. } => Some(("activity.before", "activity.after")),
    }
}
