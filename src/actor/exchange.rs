//! The exchange of work between hosts, before something begins at one and after it is over there.
//!
//! A host that cannot reach the exchange is asked again until it can. In the meantime, the agent waits, and raymond
//! reports why. So a step counts only once its work is where other hosts find it, and no turn is repeated for that.

use std::rc::Rc;
use std::time::Duration;

use super::runner::{ActivityExecutor, ExchangeOutcome, LookupOutcome};
use crate::domain::git_exchange::ExchangeDirection;
use crate::domain::host::Home;
use crate::domain::id::AgentId;
use crate::domain::turn::{FailureCause, TurnFailure};
use crate::domain::worktree_snapshot::WorkingDir;

/// The pause before the exchange is tried again for the first time; each one is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The reason why an agent cannot begin, or why what it has done does not count yet.
#[derive(Debug)]
pub(super) enum NotReady {
    /// It fails.
    Failed(TurnFailure),
    /// It was ended, and is still due.
    Ended,
}

impl NotReady {
    fn of(cause: FailureCause, why: String) -> Self {
        Self::Failed(TurnFailure::new(cause, why))
    }
}

/// The exchange of an agent's work, at the host of its directory.
pub(super) struct WorkExchange {
    performer: Rc<dyn ActivityExecutor>,
    agent: AgentId,
    home: Home,
    /// The agent whose worktree it works in, if it is not the run's own directory.
    tree: Option<AgentId>,
}

impl WorkExchange {
    pub(super) fn of(
        performer: &Rc<dyn ActivityExecutor>,
        agent: &AgentId,
        working_dir: &WorkingDir,
    ) -> Self {
        let WorkingDir { home, tree, .. } = working_dir.clone();
        Self { performer: Rc::clone(performer), agent: agent.clone(), home, tree }
    }

    /// Waits until the agent can begin: the work of other hosts is fetched, and its worktree is there.
    pub(super) async fn prepare(&self, base: Option<String>) -> Result<(), NotReady> {
        self.exchange(ExchangeDirection::Fetch).await?;
        let Some(tree) = self.tree.clone() else { return Ok(()) };
        match Rc::clone(&self.performer).worktree(self.home.clone(), tree, base).await {
            LookupOutcome::Done(Ok(())) => Ok(()),
            LookupOutcome::Done(Err(why)) => Err(NotReady::of(FailureCause::Workflow, why)),
            LookupOutcome::Stuck(why) => Err(NotReady::of(FailureCause::Storage, why)),
            LookupOutcome::Ended => Err(NotReady::Ended),
        }
    }

    /// Waits until the agent's work is where other hosts find it.
    pub(super) async fn push(&self) -> Result<(), NotReady> {
        self.exchange(ExchangeDirection::Push).await
    }

    async fn exchange(&self, direction: ExchangeDirection) -> Result<(), NotReady> {
        if !self.performer.exchanges_work() {
            return Ok(());
        }
        let agent = &self.agent;
        let host = self.home.host_name();
        let (mut pause, mut warned) = (FIRST_PAUSE, None);
        loop {
            let (home, tree) = (self.home.clone(), self.tree.clone());
            let outcome = Rc::clone(&self.performer).exchange(home, tree, direction).await;
            let why = match (outcome, direction) {
                (ExchangeOutcome::Done(note), _) => {
                    if let Some(note) = note {
                        tracing::warn!(%agent, "host {host}: {note}");
                    }
                    return Ok(());
                }
                (ExchangeOutcome::Ended, _) => return Err(NotReady::Ended),
                (ExchangeOutcome::Lost(why), _) => {
                    return Err(NotReady::of(FailureCause::Lost, why));
                }
                (ExchangeOutcome::Refused(why), ExchangeDirection::Fetch) => {
                    let why = format!("host {host}: {why}");
                    return Err(NotReady::of(FailureCause::Unavailable, why));
                }
                // The turn is paid for, so it is not given up.
                (ExchangeOutcome::Refused(why), ExchangeDirection::Push)
                | (ExchangeOutcome::Failed(why), _) => why,
            };
            if warned.as_ref() != Some(&why) {
                tracing::warn!(%agent, "it waits, and raymond retries until this succeeds: host {host}: {why}");
                warned = Some(why);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
