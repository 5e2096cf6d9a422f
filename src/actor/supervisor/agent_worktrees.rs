//! Makes the worktree of an agent before it advances for the first time.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};

use super::Supervisor;
use crate::actor::exchange::{NotReady, made};
use crate::domain::decide::TurnReport;
use crate::language::resume::ResumeInput;

impl Supervisor {
    /// Advances an agent that enters its state, once its worktree is there.
    pub(super) fn advance_in_working_dir(&mut self, report: TurnReport, ctx: &mut Ctx<Self>) {
        let Some(agent) = self.run.agents.get(&report.turn.agent) else { return };
        let tree = agent.spec.working_dir.tree.clone();
        let tree = tree.map(|tree| (tree, agent.spec.working_dir.home.clone()));
        let Some(made_tree) = tree.filter(|tree| !self.made_trees.contains(tree)) else {
            return self.advance(report, ResumeInput::Entered, ctx);
        };
        let (tree, home) = made_tree.clone();
        let base = agent.own_base();
        let making = made(Rc::clone(&self.context.performer), home, (agent.id.clone(), tree), base);
        ctx.spawn(making.into_actor(self).map(move |made, this, ctx| match made {
            Ok(()) => {
                this.made_trees.insert(made_tree);
                this.advance(report, ResumeInput::Entered, ctx);
            }
            Err(NotReady::Failed(failure)) => this.fail_advance(report, failure, ctx),
            Err(NotReady::Ended) => {
                this.advancing.remove(&report.turn.agent);
                this.schedule(ctx);
            }
        }));
    }
}
