//! Calls of objects through the server's ingress. Each ends in time, and is made again if its connection was cut.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, DATE};
use reqwest::{Client, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::restate::objects::state::{OTHER_VERSION, VERSION, VersionedCall};
use crate::{EngineAddress, EngineError};

/// The time for a call.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(8);
/// The time for a call that carries much.
pub(super) const LARGE_CALL_LIMIT: Duration = Duration::from_secs(30);

/// A handler of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct CalledHandler<'n> {
    pub(super) service: &'static str,
    pub(super) key: &'n str,
    pub(super) handler: &'static str,
}

/// The way to the objects.
#[derive(Debug, Clone)]
pub(super) struct ObjectCaller {
    pub(super) address: EngineAddress,
    pub(super) handle: Handle,
    client: Client,
    ingress: Url,
}

impl ObjectCaller {
    pub(super) fn new(
        address: EngineAddress,
        ingress: Url,
        client: Client,
        handle: Handle,
    ) -> Self {
        Self { address, handle, client, ingress }
    }

    /// Calls a handler, and waits for its answer on this thread, which must not be one of a runtime.
    pub(super) fn call<C: Serialize, A: DeserializeOwned>(
        &self,
        called: CalledHandler<'_>,
        call: C,
        limit: Duration,
    ) -> Result<A, EngineError> {
        self.handle.block_on(self.ask(called, call, limit))
    }

    /// Calls a handler.
    pub(super) async fn ask<C: Serialize, A: DeserializeOwned>(
        &self,
        called: CalledHandler<'_>,
        call: C,
        limit: Duration,
    ) -> Result<A, EngineError> {
        let body = serde_json::to_vec(&VersionedCall::new(call)).map_err(|error| {
            refused(&self.address, format!("the call cannot be written: {error}"))
        })?;
        let answer = self.send(called, body, limit).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            damaged(&self.address, format!("{} {}", called.service, called.key), error.to_string())
        })
    }

    /// Sends bytes to a handler. A call that was cut off may have been carried out: then it changes nothing the second time.
    pub(super) async fn send(
        &self,
        called: CalledHandler<'_>,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<Vec<u8>, EngineError> {
        let mut url = self.ingress.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend([called.service, called.key, called.handler]);
        }
        match self.attempt(url.clone(), body.clone(), limit).await {
            Err(error) if !error.is_timeout() && !error.is_connect() => {}
            answered => return self.judged(answered),
        }
        let answered = self.attempt(url, body, limit).await;
        self.judged(answered)
    }

    /// Returns the date that the server says; `None` if it says none.
    pub(super) fn date(&self) -> Result<Option<String>, EngineError> {
        let mut url = self.ingress.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["restate", "health"]);
        }
        let ask = async { self.client.get(url).timeout(CALL_LIMIT).send().await };
        let answer = self.handle.block_on(ask);
        let answer = answer.map_err(|error| of_request(&self.address, &error))?;
        Ok(answer.headers().get(DATE).and_then(|date| date.to_str().ok()).map(str::to_owned))
    }

    async fn attempt(
        &self,
        url: Url,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<(u16, Vec<u8>), reqwest::Error> {
        let request = self.client.post(url).header(CONTENT_TYPE, "application/octet-stream");
        let response = request.body(body).timeout(limit).send().await?;
        let status = response.status().as_u16();
        Ok((status, response.bytes().await?.to_vec()))
    }

    fn judged(
        &self,
        answered: Result<(u16, Vec<u8>), reqwest::Error>,
    ) -> Result<Vec<u8>, EngineError> {
        match answered {
            Ok((200..=299, answer)) => Ok(answer),
            Ok((status, answer)) => Err(of_answer(&self.address, status, &answer)),
            Err(error) => Err(of_request(&self.address, &error)),
        }
    }
}

// Errors of calls: what the server's answers mean, and their texts.

/// The remedy if nobody serves the objects.
const NOBODY_SERVES: &str = "no worker has registered raymond's objects there: start one with `raymond worker --listen ADDRESS:PORT`";

/// An answer of the server that reports a failure.
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

/// Judges an answer that reports a failure.
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
