//! Tells a person from an agent at the command line.
//!
//! An agent may signal as itself, and may not act for the person who started it.

use super::exit::Error;
use super::options::ConsentArgs;
use crate::process::ancestry::{self, ActingAgent};
use crate::store::trust::TrustOrigin;

/// Returns the agent in whose turn this command was given; `None` for a person.
pub(super) fn acting_agent() -> Option<ActingAgent> {
    ancestry::acting_agent(|name| std::env::var(name).ok())
}

/// Returns how a person gave their trust, if they did. The word of an agent does not count: the environment that
/// it inherits may give trust too.
pub(super) fn trust_origin(consent: &ConsentArgs) -> Option<TrustOrigin> {
    let origin = match (consent.trust, consent.trust_by_environment) {
        (true, _) => TrustOrigin::Flag,
        (false, true) => TrustOrigin::Environment,
        (false, false) => return None,
    };
    acting_agent().is_none().then_some(origin)
}

/// Refuses an action that only a person may take.
///
/// # Errors
/// [`Error::NotAPerson`].
pub(super) fn must_act(what: &'static str) -> Result<(), Error> {
    match acting_agent() {
        None => Ok(()),
        Some(ActingAgent { run, agent }) => {
            Err(Error::NotAPerson { agent: format!("{run}/{agent}"), what })
        }
    }
}

/// Refuses an action that only a person may take, because it holds for all future runs. No process below a raymond
/// counts as a person here, even if its agent is not known.
///
/// # Errors
/// [`Error::NotAPerson`].
pub(super) fn must_speak(what: &'static str) -> Result<(), Error> {
    must_act(what)?;
    if ancestry::has_raymond_above() {
        return Err(Error::NotAPerson { agent: "of a run".to_owned(), what });
    }
    Ok(())
}
