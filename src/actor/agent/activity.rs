//! Performs the activity that an agent's graph, program or script needs, and tells the supervisor its outcome.
//!
//! The exchange of work around an activity: that of other hosts is fetched before, and the agent's own is pushed after.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, Handler, WrapFuture};

use crate::actor::agent::{AgentActor, AgentWork, changes_files, taken};
use crate::actor::exchange::{NotReady, fetched, made, pushed};
use crate::actor::observer::{ActivityDone, PerformActivity};
use crate::actor::runner::ActivityExecutor;
use crate::domain::activity::{Activity, ActivityOutcome};
use crate::domain::id::AgentId;
use crate::domain::operation::RecoveryClass;
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::worktree_snapshot::WorkingDir;
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
            // It waited for commands of bodies, which keep running.
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

/// The exchange of work around an activity.
pub(super) struct ActivityExchange {
    performer: Rc<dyn ActivityExecutor>,
    agent: AgentId,
    working_dir: WorkingDir,
    /// True if it is performed in the agent's directory.
    is_in_directory: bool,
    /// True if it may change files there.
    changes_files: bool,
}

impl ActivityExchange {
    pub(super) fn of(
        performer: &Rc<dyn ActivityExecutor>,
        step: &TurnId,
        working_dir: &WorkingDir,
        activity: &Activity,
    ) -> Self {
        Self {
            performer: Rc::clone(performer),
            agent: step.agent.clone(),
            working_dir: working_dir.clone(),
            is_in_directory: performer.exchanges_work() && is_in_directory(activity),
            changes_files: performer.exchanges_work() && changes_files(activity),
        }
    }

    /// Waits until the activity can begin.
    pub(super) async fn before(&self, base: Option<String>) -> Result<(), NotReady> {
        if !self.is_in_directory {
            return Ok(());
        }
        let (performer, home) = (Rc::clone(&self.performer), self.working_dir.home.clone());
        let agent = self.agent.clone();
        match self.working_dir.tree.clone() {
            Some(tree) => made(performer, home, (agent, tree), base).await,
            None => fetched(performer, home, agent, None).await,
        }
    }

    /// Waits until the work is where other hosts find it.
    pub(super) async fn after(self) -> Result<(), NotReady> {
        if !self.changes_files {
            return Ok(());
        }
        let WorkingDir { home, tree, .. } = self.working_dir;
        pushed(self.performer, home, self.agent, tree).await
    }
}

/// Returns the outcome of an activity that could not begin, or whose work is not where other hosts find it.
pub(super) fn outcome_of(not_ready: NotReady) -> ActivityOutcome {
    match not_ready {
        NotReady::Ended => ActivityOutcome::Ended,
        NotReady::Failed(failure) if failure.cause == FailureCause::Lost => {
            ActivityOutcome::Lost(failure.message)
        }
        NotReady::Failed(failure) => ActivityOutcome::Refused(failure.message),
    }
}

/// Returns whether an activity is performed in the agent's directory.
fn is_in_directory(activity: &Activity) -> bool {
    match activity {
        Activity::Operation(_)
        | Activity::Command(_)
        | Activity::Commands(_)
        | Activity::Bases { .. }
        | Activity::Changes { .. } => true,
        Activity::StartWorkflow(_)
        | Activity::Assert { .. }
        | Activity::Retract { .. }
        | Activity::Claim { .. } => false,
    }
}
