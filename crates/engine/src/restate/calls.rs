//! Calls of objects through the server's ingress. Each ends in time, and is made again if its connection was cut.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, DATE};
use reqwest::{Client, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;

use super::failure::{damaged, of_answer, of_request, refused};
use crate::restate::objects::state::VersionedCall;
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
