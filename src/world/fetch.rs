//! The operation that fetches a page of the web: `{status, content, url}`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::address::masked;
use super::context::OperationContext;
use super::outcome::OperationError;
use super::web::{GetError, check, client, get};

/// Fetches a page. With `allow_failure` there is always an answer: its status is 0 if no server
/// answered, and its content null if it could not be read.
pub(super) async fn fetch(
    shared: &OperationContext,
    given: &str,
    allow_failure: bool,
) -> Result<Value, OperationError> {
    let url = check(given)?;
    let _permit = shared.permit().await?;
    let web = shared.web().get_or_try_init(|| client(Arc::clone(&shared.place))).await?;
    let page = shared.unless_stopped(get(web, url)).await?;
    let shown = masked(given);
    match page {
        Err(GetError::Refused(refused)) => Err(format!("cannot fetch {shown}: {refused}").into()),
        Err(_) if allow_failure => Ok(json!({"status": 0, "content": null, "url": shown})),
        Err(error) => Err(format!("cannot fetch {shown}: {error}").into()),
        Ok((response, body)) => {
            let status = response.status;
            // From 300 on there is no page: an error, or a redirect that was not followed.
            if (status >= 300 || body.is_err()) && !allow_failure {
                let why = body.err().unwrap_or_else(|| format!("the server answered {status}"));
                return Err(format!("cannot fetch {shown}: {why}").into());
            }
            Ok(json!({"status": status, "content": body.ok(), "url": response.url}))
        }
    }
}
