//! Runs the activities of an agent that carries out a program.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};

use super::{AgentActor, AgentWork};
use crate::actor::activity_executor::ActivityOutcome;
use crate::actor::message::ActivityDone;
use crate::domain::program_execution::Activity;
use crate::domain::turn::TurnId;
use crate::domain::working_dir::WorkingDir;
use crate::fault::point;

impl AgentActor {
    /// Runs an activity that is durably due, and tells the supervisor its outcome.
    pub(super) fn run_activity(
        &mut self,
        turn: TurnId,
        working_dir: WorkingDir,
        activity: Activity,
        may_have_begun: bool,
        ctx: &mut Ctx<Self>,
    ) {
        let performer = Rc::clone(&self.context.performer);
        let step = turn.clone();
        let fetching = async move {
            point("activity.before");
            let outcome = performer.run_activity(step, working_dir, activity, may_have_begun).await;
            point("activity.after");
            outcome
        };
        let done = turn.clone();
        let handle = ctx.spawn(fetching.into_actor(self).map(move |outcome, this, _| {
            this.work = AgentWork::Idle;
            this.reported = matches!(outcome, ActivityOutcome::Done(_)).then(|| done.clone());
            this.context.supervisor.activities.do_send(ActivityDone { turn: done, outcome });
        }));
        self.work = AgentWork::AdvancingProgram { turn, _handle: handle };
    }
}
