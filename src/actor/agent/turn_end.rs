//! Takes the outcome of an agent's turn, and the transition that its reply was judged to be.
//!
//! Makes a snapshot of an agent's worktree once a turn or an activity of it is over, before that is recorded.
//!
//! If hosts exchange work, it is pushed then, too.

use std::rc::Rc;

use actix::{ActorFutureExt, AsyncContext, Context as Ctx, Handler, WrapFuture};

use crate::actor::activity_executor::{ActivityExecutor, LookupOutcome};
use crate::actor::agent::{AgentActor, AgentWork, TurnContext};
use crate::actor::exchange::{NotReady, pushed};
use crate::actor::message::{TakeTransition, TurnEnded, TurnReplied};
use crate::domain::activity::Activity;
use crate::domain::decide::TurnReport;
use crate::domain::host::Home;
use crate::domain::id::AgentId;
use crate::domain::operation::RecoveryClass;
use crate::domain::session::SessionKeeping;
use crate::domain::turn::{TurnCost, TurnId, TurnOutcome};
use crate::domain::working_dir::WorkingDir;
use crate::domain::worktree_snapshot::{SnapshotOutcome, WorktreeSnapshot};
use crate::fault::point;

impl Handler<TurnEnded> for AgentActor {
    type Result = ();

    /// Reports a failed turn. A reply is judged by the supervisor, which knows the agent's position.
    fn handle(&mut self, ended: TurnEnded, ctx: &mut Ctx<Self>) {
        let AgentWork::RunningTurn { turn, rules, .. } = &self.work else { return };
        if *turn != ended.turn {
            return;
        }
        let reply = match ended.outcome {
            TurnOutcome::Failed(failure) => {
                let report = TurnReport::failed(ended.turn, failure);
                let place = rules.working_dir.clone();
                return self.with_snapshot(
                    &place,
                    report,
                    OnSnapshotStop::Report,
                    ctx,
                    Self::report,
                );
            }
            TurnOutcome::Replied(reply) => reply,
        };
        let report = TurnReport {
            cost: TurnCost::of_reply(&reply),
            message: reply.message.clone(),
            kept_session: match &reply.session {
                Some(SessionKeeping::Kept(kept)) => Some(kept.clone()),
                Some(SessionKeeping::OnlyHere(_)) | None => None,
            },
            ..TurnReport::empty(ended.turn)
        };
        let (rules, place) = (rules.clone(), rules.working_dir.clone());
        self.with_snapshot(&place, report, OnSnapshotStop::Postpone, ctx, move |this, report| {
            // The same turn is due again if judging it fails, so it does not count as reported.
            this.work = AgentWork::Idle;
            this.context.supervisor.replies.do_send(TurnReplied { report, rules, reply });
        });
    }
}

impl Handler<TakeTransition> for AgentActor {
    type Result = ();

    fn handle(&mut self, due: TakeTransition, ctx: &mut Ctx<Self>) {
        let TakeTransition { report, rules, spent } = due;
        self.work = AgentWork::Starting(report.turn.clone());
        self.consult_after(report, TurnContext { rules, spent }, ctx);
    }
}

/// The consequence for a turn's report if the run is stopped before the snapshot is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnSnapshotStop {
    /// The turn is due again: its outcome is on disk.
    Postpone,
    /// The report has no snapshot.
    Report,
}

impl AgentActor {
    /// Makes a snapshot of the worktree that a turn ran in, if one is due; then continues with the report.
    pub(super) fn with_snapshot(
        &mut self,
        working_dir: &WorkingDir,
        report: TurnReport,
        on_stop: OnSnapshotStop,
        ctx: &mut Ctx<Self>,
        then: impl FnOnce(&mut Self, TurnReport) + 'static,
    ) {
        let snapshot_tree = working_dir.snapshot_tree().cloned();
        let performer = Rc::clone(&self.context.performer);
        if snapshot_tree.is_none() && !performer.exchanges_work() {
            return then(self, report);
        }
        let (turn, cost) = (report.turn.clone(), report.cost.clone());
        let WorkingDir { home, tree, .. } = working_dir.clone();
        let (agent, own_turn) = (self.id.clone(), turn.clone());
        let keeping = async move {
            let snapshot = match snapshot_tree {
                None => None,
                Some(tree) => {
                    let performer = Rc::clone(&performer);
                    match taken(performer, home.clone(), tree, own_turn).await {
                        None => return (None, Err(NotReady::Ended)),
                        snapshot => snapshot,
                    }
                }
            };
            (snapshot, pushed(performer, home, agent, tree).await)
        };
        let handle = ctx.spawn(keeping.into_actor(self).map(move |(snapshot, kept), this, _| {
            match (kept, on_stop) {
                // Of a turn that has failed there is nothing to postpone, and nothing more to fail.
                (Ok(()), _) | (Err(_), OnSnapshotStop::Report) => {
                    then(this, TurnReport { snapshot, ..report });
                }
                (Err(NotReady::Ended), OnSnapshotStop::Postpone) => {
                    let TurnReport { turn, cost, .. } = report;
                    this.report(TurnReport { cost, ..TurnReport::empty(turn) });
                }
                (Err(NotReady::Failed(failure)), OnSnapshotStop::Postpone) => {
                    let TurnReport { turn, cost, .. } = report;
                    this.report(TurnReport { cost, ..TurnReport::failed(turn, failure) });
                }
            }
        }));
        self.work = AgentWork::Preparing { turn, cost, handle };
    }
}

/// Makes a snapshot of a worktree; `None` if the run was stopped before it was made.
pub(super) async fn taken(
    performer: Rc<dyn ActivityExecutor>,
    home: Home,
    tree: AgentId,
    turn: TurnId,
) -> Option<Box<WorktreeSnapshot>> {
    let outcome = match performer.snapshot(home, tree.clone(), turn).await {
        LookupOutcome::Done(Ok(commit)) => {
            if !commit.left_out.is_empty() {
                let files = commit.left_out.join(", ");
                tracing::info!(agent = %tree, "the snapshot of the worktree is without {files}: they are too large, or in a separate repository");
            }
            SnapshotOutcome::Taken(commit)
        }
        LookupOutcome::Done(Err(why)) | LookupOutcome::Stuck(why) => {
            tracing::warn!(agent = %tree, "the worktree has no snapshot, so no run can branch off here: {why}");
            SnapshotOutcome::Failed(why)
        }
        LookupOutcome::Ended => return None,
    };
    point("snapshot.after");
    Some(Box::new(WorktreeSnapshot { tree, outcome }))
}

/// Returns whether an activity may change files.
pub(super) fn changes_files(activity: &Activity) -> bool {
    match activity {
        Activity::Operation(operation) => operation.class() != RecoveryClass::Read,
        Activity::Command(_) | Activity::Commands(_) => true,
        Activity::StartWorkflow(_)
        | Activity::Bases { .. }
        | Activity::Changes { .. }
        | Activity::Assert { .. }
        | Activity::Retract { .. }
        | Activity::Claim { .. } => false,
    }
}
