//! Checks before an agent's turn: the results that it reads must be in their file, and its worktree must exist.

use std::path::Path;
use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::exchange::{NotReady, fetched, made};
use crate::domain::decide::TurnReport;
use crate::domain::id::AgentId;
use crate::domain::turn::{TurnId, TurnInput};
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
        let making = made(performer, home, (self.id.clone(), tree), base);
        self.start_once(making, turn, (input, turn_context), ctx);
    }

    /// Starts a turn in the run's own directory once the work of other hosts is there.
    pub(super) fn start_with_fetched_work(
        &mut self,
        input: TurnInput,
        turn_context: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let performer = Rc::clone(&self.context.performer);
        let (turn, home) = (input.turn.clone(), input.working_dir.home.clone());
        let fetching = fetched(performer, home, self.id.clone(), None);
        self.start_once(fetching, turn, (input, turn_context), ctx);
    }

    fn start_once(
        &mut self,
        ready: impl Future<Output = Result<(), NotReady>> + 'static,
        turn: TurnId,
        (input, turn_context): (TurnInput, TurnContext),
        ctx: &mut Ctx<Self>,
    ) {
        let handle = ctx.spawn(ready.into_actor(self).map(move |made, this, ctx| match made {
            Ok(()) => this.launch_turn(input, turn_context, ctx),
            Err(NotReady::Failed(failure)) => {
                this.report(TurnReport::failed(input.turn, failure));
            }
            Err(NotReady::Ended) => this.report(TurnReport::empty(input.turn)),
        }));
        self.work = AgentWork::Preparing { turn, cost: TurnCost::default(), handle };
    }
}
