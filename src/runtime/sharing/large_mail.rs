//! Requests and answers that are too large for the mailbox: they are contents of the engine, and the mailbox names them.

use super::shared_terms::blob_name;
use crate::domain::host_work::{MAX_MAIL_BYTES, StoredMail};
use crate::engine::EngineError;
use crate::engine::run_space::RunSpace;
use crate::language::checksum::checksum;

/// The largest request or answer that is fetched, in bytes.
const MAX_FETCHED_BYTES: u64 = 256 * 1024 * 1024;

/// Has an engine keep a request or an answer, if it is too large for the mailbox; `None` if it is not.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(in crate::runtime) fn store_if_large(
    space: &dyn RunSpace,
    body: &str,
) -> Result<Option<StoredMail>, EngineError> {
    if body.len() <= MAX_MAIL_BYTES {
        return Ok(None);
    }
    let sum = checksum(body);
    space.put_blob(blob_name(&sum), body.as_bytes())?;
    Ok(Some(StoredMail { checksum: sum.into(), bytes: body.len() as u64 }))
}

/// Fetches a request or an answer; the inner error says why it cannot be used.
///
/// # Errors
/// [`EngineError`] if the engine cannot be reached, or refuses.
pub(in crate::runtime) fn fetch_mail(
    space: &dyn RunSpace,
    mail: &StoredMail,
) -> Result<Result<String, String>, EngineError> {
    let StoredMail { checksum: sum, bytes } = mail;
    if *bytes > MAX_FETCHED_BYTES {
        return Ok(Err(format!(
            "it has {bytes} bytes, more than the {MAX_FETCHED_BYTES} that are fetched"
        )));
    }
    let content = match space.blob(blob_name(sum), *bytes) {
        Err(error @ EngineError::Damaged { .. }) => return Ok(Err(error.to_string())),
        content => content?,
    };
    let content = content.filter(|content| checksum(content) == **sum);
    let text = content.map(String::from_utf8).and_then(Result::ok);
    Ok(text.ok_or_else(|| format!("its content {sum} is gone or was changed in the engine")))
}
