//! Checks before an agent's turn: the results that it reads must be in their file, and its worktree must exist.

use std::path::Path;
use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::exchange::{NotReady, fetched, made};
use crate::domain::decide::TurnReport;
use crate::domain::id::AgentId;
use crate::domain::turn::TurnCost;
use crate::domain::turn::note_on_changes;
use crate::domain::turn::{FailureCause, TurnId, TurnInput};
use crate::language::prompt::step::JoinResults;
use crate::store;
use crate::store::files::{make_dir, replace};

/// What an earlier attempt at a turn may have left behind: the cause with which it failed, and the files that are not
/// committed.
type LeftChanges = (FailureCause, String);

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
        let repeated = input.failed_before;
        let own = (self.id.clone(), tree.clone());
        let making = async move {
            made(Rc::clone(&performer), home, own, base).await?;
            let Some(cause) = repeated else { return Ok(None) };
            Ok(performer.uncommitted(tree).await.map(|files| (cause, files)))
        };
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
        let agent = self.id.clone();
        let fetching = async move { fetched(performer, home, agent, None).await.map(|()| None) };
        self.start_once(fetching, turn, (input, turn_context), ctx);
    }

    fn start_once(
        &mut self,
        ready: impl Future<Output = Result<Option<LeftChanges>, NotReady>> + 'static,
        turn: TurnId,
        (mut input, turn_context): (TurnInput, TurnContext),
        ctx: &mut Ctx<Self>,
    ) {
        let handle = ctx.spawn(ready.into_actor(self).map(move |made, this, ctx| match made {
            Ok(left) => {
                let note = left.and_then(|(cause, files)| note_on_changes(cause, &files));
                if let Some(note) = note {
                    input.add_note(&note);
                }
                this.launch_turn(input, turn_context, ctx);
            }
            Err(NotReady::Failed(failure)) => {
                this.report(TurnReport::failed(input.turn, failure));
            }
            Err(NotReady::Ended) => this.report(TurnReport::empty(input.turn)),
        }));
        self.work = AgentWork::Preparing { turn, cost: TurnCost::default(), handle };
    }
}
