//! Checks before an agent's turn: the results that it reads must be in their file, and its worktree must exist.

use std::path::Path;
use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::activity_executor::LookupOutcome;
use crate::domain::decide::TurnReport;
use crate::domain::id::AgentId;
use crate::domain::turn::{FailureCause, TurnFailure, TurnInput};
use crate::domain::turn_cost::TurnCost;
use crate::language::prompt::context::JoinResults;
use crate::store;
use crate::store::files::{make_dir, replace};

/// Writes the results of a join into the file that the prompt may name. The file is written at each start of the turn,
/// so it is also correct after a crash.
pub(super) fn keep_results(results: &JoinResults) -> Result<(), store::Error> {
    let file = Path::new(&results.file);
    if let Some(directory) = file.parent() {
        make_dir(directory)?;
    }
    replace(file, results.list.as_bytes())
}

impl AgentActor {
    /// Starts a turn once its worktree is there.
    pub(super) fn start_in_worktree(
        &mut self,
        tree: AgentId,
        input: TurnInput,
        turn_context: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let (turn, base) = (input.turn.clone(), turn_context.rules.base.clone());
        let performer = Rc::clone(&self.context.performer);
        let home = input.working_dir.home.clone();
        let making = async move { performer.worktree(home, tree, base).await };
        let handle = ctx.spawn(making.into_actor(self).map(move |made, this, ctx| match made {
            LookupOutcome::Done(Ok(())) => this.launch_turn(input, turn_context, ctx),
            LookupOutcome::Done(Err(why)) => {
                this.report(TurnReport::failed(
                    input.turn,
                    TurnFailure::new(FailureCause::Workflow, why),
                ));
            }
            LookupOutcome::Ended => this.report(TurnReport::empty(input.turn)),
        }));
        self.work = AgentWork::Preparing { turn, cost: TurnCost::default(), handle };
    }
}
