//! Checks before an agent's turn: its state may wait for forked agents, and its worktree must exist.

use std::path::PathBuf;
use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, WrapFuture};

use super::{AgentActor, AgentWork, TurnContext};
use crate::actor::activity_executor::LookupOutcome;
use crate::actor::message::TurnAssignment;
use crate::domain::decide::{TurnJudgement, TurnReport};
use crate::domain::id::AgentId;
use crate::domain::turn::{FailureCause, TurnFailure, TurnInput};
use crate::language::prompt::step::{self, JoinResults};
use crate::store;
use crate::store::files::{make_dir, replace};

impl TurnAssignment {
    /// Returns whether the state's own prompt is due, and nothing has been waited for yet.
    pub(super) fn may_join(&self) -> bool {
        self.results.is_none()
            && self.task.is_none()
            && self.proposal.is_none()
            && self.reminder.is_none()
    }
}

impl AgentActor {
    /// Reports a join if the agent has entered a state that waits for its forked children; returns whether it has.
    /// That takes no permit. An unreadable state reports its error when its prompt is due.
    pub(super) fn report_due_join(&mut self, assignment: &TurnAssignment) -> bool {
        if !assignment.may_join() {
            return false;
        }
        let source = self.context.source_of(assignment.folder.as_ref());
        let join = source.ok().and_then(|source| step::join(&assignment.state, &*source).ok());
        let Some(join) = join.flatten() else { return false };
        let judgement = TurnJudgement::JoinDue(Box::new(join));
        self.report(TurnReport { judgement, ..TurnReport::empty(assignment.turn.clone()) });
        true
    }

    /// Returns the results of the agents that were waited for, in the form that prompts use.
    pub(super) fn results(&self, assignment: &TurnAssignment) -> Option<JoinResults> {
        let list = assignment.results.clone()?;
        Some(JoinResults { list, file: self.file_of_results(assignment).display().to_string() })
    }

    /// Writes these results into the file that the prompt may name. The file is written at each start of the turn, so
    /// it is also correct after a crash.
    pub(super) fn keep_results(&self, assignment: &TurnAssignment) -> Result<(), store::Error> {
        let Some(list) = &assignment.results else { return Ok(()) };
        let file = self.file_of_results(assignment);
        make_dir(&self.context.results)?;
        replace(&file, list.as_bytes())
    }

    fn file_of_results(&self, assignment: &TurnAssignment) -> PathBuf {
        let name = format!("{}-{}.json", self.id.file_name(), assignment.turn.step);
        self.context.results.join(name)
    }

    /// Starts a turn once its worktree is there.
    pub(super) fn start_in_worktree(
        &mut self,
        tree: AgentId,
        input: TurnInput,
        turn_context: TurnContext,
        ctx: &mut Ctx<Self>,
    ) {
        let (turn, base) = (input.turn.clone(), turn_context.base.clone());
        let performer = Rc::clone(&self.context.performer);
        let making = async move { performer.worktree(tree, base).await };
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
        self.work = AgentWork::Preparing { turn, handle };
    }
}
