//! Requests and answers of a supervisor that are too large for the mailbox.

use crate::domain::host_work::{HostAnswer, HostWork};
use crate::engine::EngineError;
use crate::engine::host_mailbox::HostRequest;
use crate::engine::run_space::RunSpace;
use crate::runtime::sharing::{fetch_mail, store_if_large};

/// Has the engine keep the body of a request that is too large, and names that content in its place.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(super) fn store_request(
    space: &dyn RunSpace,
    request: &mut HostRequest,
) -> Result<(), EngineError> {
    if let Some(mail) = store_if_large(space, &request.body)?
        && let Ok(body) = serde_json::to_string(&HostWork::Stored { mail })
    {
        request.body = body;
    }
    Ok(())
}

/// Reads an answer, from a content of the engine if it is one.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(super) fn answer_in(space: &dyn RunSpace, body: &str) -> Result<HostAnswer, EngineError> {
    let answer = read(body);
    let HostAnswer::Stored { mail } = &answer else { return Ok(answer) };
    Ok(match fetch_mail(space, mail)? {
        Ok(body) => read(&body),
        Err(why) => HostAnswer::Refused { why: format!("its answer cannot be fetched: {why}") },
    })
}

fn read(body: &str) -> HostAnswer {
    serde_json::from_str(body).unwrap_or_else(|error| HostAnswer::Refused {
        why: format!("its answer cannot be read: {error}"),
    })
}
