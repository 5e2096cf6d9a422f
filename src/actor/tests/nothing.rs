//! An empty world: it holds nothing, and performs no activity.

use std::rc::Rc;

use crate::actor::runner::{ActivityExecutor, LocalFuture, LookupOutcome};
use crate::domain::activity::{Activity, ActivityOutcome};
use crate::domain::fact::{FactChange, FactSelection, KnownFacts};
use crate::domain::host::Home;
use crate::domain::id::AgentId;
use crate::domain::turn::TurnId;
use crate::domain::worktree_snapshot::{SnapshotCommit, WorkingDir};

/// Performs nothing.
pub(crate) struct Nothing;

impl ActivityExecutor for Nothing {
    fn text(
        self: Rc<Self>,
        _: WorkingDir,
        file: String,
        _: u64,
    ) -> LocalFuture<LookupOutcome<String>> {
        Box::pin(async move { LookupOutcome::Done(Err(format!("there is no {file} here"))) })
    }

    fn directory(self: Rc<Self>, _: WorkingDir) -> LocalFuture<LookupOutcome<()>> {
        Box::pin(async { LookupOutcome::Done(Ok(())) })
    }

    fn commit(self: Rc<Self>, _: String, _: WorkingDir) -> LocalFuture<LookupOutcome<String>> {
        Box::pin(async { LookupOutcome::Done(Err("there is no repository here".to_owned())) })
    }

    fn snapshot(
        self: Rc<Self>,
        _: Home,
        _: AgentId,
        _: TurnId,
    ) -> LocalFuture<LookupOutcome<SnapshotCommit>> {
        Box::pin(async { LookupOutcome::Ended })
    }

    fn worktree(
        self: Rc<Self>,
        _: Home,
        _: AgentId,
        _: Option<String>,
    ) -> LocalFuture<LookupOutcome<()>> {
        Box::pin(async { LookupOutcome::Done(Err("there is no repository here".to_owned())) })
    }

    fn perform(
        self: Rc<Self>,
        step: TurnId,
        _: WorkingDir,
        _: Activity,
        _: bool,
    ) -> LocalFuture<ActivityOutcome> {
        Box::pin(std::future::ready(ActivityOutcome::Done(Err(format!("nobody performs {step}")))))
    }

    fn changed_facts(&self, _: &FactSelection, _: &KnownFacts) -> Result<Vec<FactChange>, String> {
        Ok(Vec::new())
    }

    fn stop(&self) {}

    fn stop_agent(&self, _: &AgentId) {}
}
