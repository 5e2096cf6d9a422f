//! Makes the worktree of an agent before it advances for the first time.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};

use super::Supervisor;
use crate::actor::activity_executor::LookupOutcome;
use crate::domain::decide::TurnReport;
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::language::resume::ResumeInput;

impl Supervisor {
    /// Advances an agent that enters its state, once its worktree is there.
    pub(super) fn advance_in_working_dir(&mut self, report: TurnReport, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(&report.turn.agent) else { return };
        let tree = agent.spec.working_dir.tree.clone();
        let Some(tree) = tree.filter(|tree| !self.made_trees.contains(tree)) else {
            return self.advance(report, ResumeInput::Entered, ctx);
        };
        let base = (agent.id == tree).then(|| agent.spec.base.clone()).flatten();
        let performer = Rc::clone(&self.context.performer);
        let (home, made_tree) = (agent.spec.working_dir.home.clone(), tree.clone());
        let making = async move { performer.worktree(home, tree, base).await };
        ctx.spawn(making.into_actor(self).map(move |made, this, ctx| match made {
            LookupOutcome::Done(Ok(())) => {
                this.made_trees.insert(made_tree);
                this.advance(report, ResumeInput::Entered, ctx);
            }
            LookupOutcome::Done(Err(why)) => {
                this.fail_advance(report, TurnFailure::new(FailureCause::Workflow, why), ctx);
            }
            LookupOutcome::Ended => {
                this.advancing.remove(&report.turn.agent);
                this.schedule(ctx);
            }
        }));
    }
}
