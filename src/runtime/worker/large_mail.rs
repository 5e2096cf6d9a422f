//! Requests and answers of a host that are too large for the mailbox.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use crate::domain::host_work::{HostAnswer, HostWork, MAX_MAIL_BYTES, StoredMail};
use crate::engine::host_mailbox::HostRequest;
use crate::engine::{Engine, EngineError};
use crate::runtime::sharing::{fetch_mail, put_content};

/// The beginning of a request that is a content of the engine.
const STORED: &str = "{\"work\":\"stored\"";

/// Fetches the body of a request that is a content of the engine. One that cannot be used stays as it is, and is refused
/// when it is carried out.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(super) fn open_request(
    engine: &dyn Engine,
    request: &mut HostRequest,
) -> Result<(), EngineError> {
    if request.body.starts_with(STORED)
        && let Ok(HostWork::Stored { mail }) = serde_json::from_str(&request.body)
    {
        match fetch_mail(engine, &mail)? {
            Ok(body) => request.body = body,
            Err(why) => tracing::warn!("the request {} is refused: {why}", request.key),
        }
    }
    Ok(())
}

/// Has the engine keep an answer that is too large. If the engine refuses, the mailbox carries the answer itself.
pub(super) async fn stored_if_large(engine: &Arc<dyn Engine>, answer: HostAnswer) -> HostAnswer {
    let Some(body) = serde_json::to_string(&answer).ok().filter(|body| body.len() > MAX_MAIL_BYTES)
    else {
        return answer;
    };
    let (engine, bytes) = (Arc::clone(engine), body.len() as u64);
    match spawn_blocking(move || put_content(&*engine, body.as_bytes())).await {
        Ok(Ok(sum)) => HostAnswer::Stored { mail: StoredMail { checksum: sum.into(), bytes } },
        Ok(Err(error)) => {
            tracing::warn!("an answer of {bytes} bytes goes through the mailbox: {error}");
            answer
        }
        Err(_) => answer,
    }
}
