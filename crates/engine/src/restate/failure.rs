//! Errors of calls: what the server's answers mean, and their texts.

use std::error::Error as _;

use serde::Deserialize;

use crate::restate::objects::state::{OTHER_VERSION, VERSION};
use crate::{EngineAddress, EngineError};

/// The remedy if nobody serves the objects.
const NOBODY_SERVES: &str = "no worker has registered raymond's objects there: start one with `raymond worker --listen ADDRESS:PORT`";

/// An answer of the server that is no success.
#[derive(Debug, Deserialize)]
struct ServerMessage {
    message: String,
}

/// Returns the error about an address.
pub(super) fn address_error(address: &EngineAddress, why: &str) -> EngineError {
    EngineError::Address { address: address.to_string(), why: why.to_owned() }
}

/// Returns an error that may pass.
pub(super) fn unreachable(address: &EngineAddress, why: impl Into<String>) -> EngineError {
    EngineError::Unreachable { engine: address.to_string(), why: why.into() }
}

/// Returns an error that stays.
pub(super) fn refused(address: &EngineAddress, why: impl Into<String>) -> EngineError {
    EngineError::Refused { engine: address.to_string(), why: why.into() }
}

/// Returns an error about what is kept.
pub(super) fn damaged(
    address: &EngineAddress,
    what: impl Into<String>,
    why: impl Into<String>,
) -> EngineError {
    EngineError::Damaged { engine: address.to_string(), what: what.into(), why: why.into() }
}

/// Judges a request that got no answer.
pub(super) fn of_request(address: &EngineAddress, error: &reqwest::Error) -> EngineError {
    if error.is_timeout() {
        let why = "no answer within the time for a call; the server, or the worker that serves raymond's objects to it, may be down or busy";
        return unreachable(address, why);
    }
    let why = causes(error);
    if error.is_connect() {
        let remedy = "check that a Restate server listens there, and the machine and the port of the address";
        return unreachable(address, format!("{why}; {remedy}"));
    }
    unreachable(address, format!("the connection broke: {why}"))
}

/// Judges an answer that is no success.
pub(super) fn of_answer(address: &EngineAddress, status: u16, body: &[u8]) -> EngineError {
    let message: Option<ServerMessage> = serde_json::from_slice(body).ok();
    let message = message.map(|message| one_line(&message.message));
    let text = message
        .clone()
        .unwrap_or_else(|| one_line(&String::from_utf8_lossy(body.get(..200).unwrap_or(body))));
    match status {
        OTHER_VERSION => {
            let found = text.rsplit(' ').next().and_then(|found| found.parse().ok());
            let engine = address.to_string();
            EngineError::Version { engine, found: found.unwrap_or_default(), known: VERSION }
        }
        404 if message.as_ref().is_some_and(|message| message.contains("Raymond")) => {
            refused(address, NOBODY_SERVES)
        }
        401 | 403 => refused(
            address,
            format!(
                "{text} (status {status}); give a user and a password, as in restate://USER:PASSWORD@HOST:PORT"
            ),
        ),
        413 => refused(
            address,
            format!(
                "{text} (status {status}); raise the server's limits of the size of a request and of a message"
            ),
        ),
        422 => damaged(address, "an object", text),
        404 | 405 | 400 | 415 if message.is_none() => refused(
            address,
            format!(
                "status {status}: no ingress of a Restate server answers there; check the port, which is 8080 unless the server is configured otherwise"
            ),
        ),
        429 | 500..=599 => unreachable(address, format!("{text} (status {status})")),
        _ => refused(address, format!("{text} (status {status})")),
    }
}

/// Returns an error with its causes, in one line and without the URL, which may have a password in it.
fn causes(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if parts.last() != Some(&text) {
            parts.push(text);
        }
        next = cause.source();
    }
    if parts.is_empty() {
        parts.push("no answer".to_owned());
    }
    one_line(&parts.join(": "))
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
