//! The decision to retry failed agents.

use crate::domain::event::Event;
use crate::domain::id::SessionId;
use crate::domain::retry::{RetriedAgent, RetryError, RetrySelection, plan_retry};
use crate::domain::run::Run;

/// Returns the event with which the chosen agents live again, each in a new session.
///
/// # Errors
/// [`RetryError`] if the selection chooses none.
pub fn retry_agents(
    run: &Run,
    selection: &RetrySelection,
    mut new_session: impl FnMut() -> SessionId,
) -> Result<Event, RetryError> {
    let plan = plan_retry(run, selection)?;
    let agents = plan.agents.into_iter();
    let agents = agents.map(|planned| RetriedAgent { agent: planned.id, session: new_session() });
    Ok(Event::AgentsRetried { agents: agents.collect() })
}
