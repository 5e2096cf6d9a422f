//! The exchange of work around an activity: that of other hosts is fetched before, and the agent's own is pushed after.

use std::rc::Rc;

use super::snapshot::changes_files;
use crate::actor::activity_executor::ActivityExecutor;
use crate::actor::exchange::{NotReady, fetched, made, pushed};
use crate::domain::activity::{Activity, ActivityOutcome};
use crate::domain::id::AgentId;
use crate::domain::turn::{FailureCause, TurnId};
use crate::domain::working_dir::WorkingDir;

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
