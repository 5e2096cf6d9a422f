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

/// Has a host fetch the work of other hosts for an agent, until it has.
pub(super) async fn fetched(
    performer: Rc<dyn ActivityExecutor>,
    home: Home,
    agent: AgentId,
    tree: Option<AgentId>,
) -> Result<(), NotReady> {
    exchanged(performer, home, (agent, tree), ExchangeDirection::Fetch).await
}

/// Has a host push the work of an agent, until it has.
pub(super) async fn pushed(
    performer: Rc<dyn ActivityExecutor>,
    home: Home,
    agent: AgentId,
    tree: Option<AgentId>,
) -> Result<(), NotReady> {
    exchanged(performer, home, (agent, tree), ExchangeDirection::Push).await
}

/// Has a host make the worktree that an agent works in, after the work of other hosts was fetched.
pub(super) async fn made(
    performer: Rc<dyn ActivityExecutor>,
    home: Home,
    (agent, tree): (AgentId, AgentId),
    base: Option<String>,
) -> Result<(), NotReady> {
    fetched(Rc::clone(&performer), home.clone(), agent, Some(tree.clone())).await?;
    match performer.worktree(home, tree, base).await {
        LookupOutcome::Done(Ok(())) => Ok(()),
        LookupOutcome::Done(Err(why)) => Err(NotReady::of(FailureCause::Workflow, why)),
        LookupOutcome::Stuck(why) => Err(NotReady::of(FailureCause::Storage, why)),
        LookupOutcome::Ended => Err(NotReady::Ended),
    }
}

async fn exchanged(
    performer: Rc<dyn ActivityExecutor>,
    home: Home,
    (agent, tree): (AgentId, Option<AgentId>),
    direction: ExchangeDirection,
) -> Result<(), NotReady> {
    if !performer.exchanges_work() {
        return Ok(());
    }
    let host = home.host.as_ref().map_or_else(String::new, ToString::to_string);
    let (mut pause, mut told) = (FIRST_PAUSE, None);
    loop {
        let exchange = Rc::clone(&performer).exchange(home.clone(), tree.clone(), direction);
        let why = match (exchange.await, direction) {
            (ExchangeOutcome::Done(said), _) => {
                if let Some(said) = said {
                    tracing::warn!(%agent, "host {host}: {said}");
                }
                return Ok(());
            }
            (ExchangeOutcome::Ended, _) => return Err(NotReady::Ended),
            (ExchangeOutcome::Lost(why), _) => return Err(NotReady::of(FailureCause::Lost, why)),
            (ExchangeOutcome::Refused(why), ExchangeDirection::Fetch) => {
                let why = format!("host {host}: {why}");
                return Err(NotReady::of(FailureCause::Unavailable, why));
            }
            // The turn is paid for, so it is not given up.
            (ExchangeOutcome::Refused(why), ExchangeDirection::Push)
            | (ExchangeOutcome::Failed(why), _) => why,
        };
        if told.as_ref() != Some(&why) {
            tracing::warn!(%agent, "it waits, and raymond retries until this succeeds: host {host}: {why}");
            told = Some(why);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
