//! The deployment of raymond's objects, as the server's admin interface has it.

use std::time::Duration;

use reqwest::{Client, Method, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::failure::{of_answer, of_request, refused, unreachable};
use crate::restate::objects::shell::RUN;
use crate::{EngineAddress, EngineError};

/// The time for a call. The server dials the worker meanwhile.
const ADMIN_LIMIT: Duration = Duration::from_secs(15);

/// The service that tells where the objects are.
#[derive(Debug, Deserialize)]
struct RegisteredService {
    deployment_id: String,
}

/// A deployment of the objects.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ObjectDeployment {
    id: String,
    uri: String,
}

impl ObjectDeployment {
    /// Returns whether it is at a URL.
    pub(super) fn is_at(&self, url: &str) -> bool {
        self.uri.trim_end_matches('/') == url.trim_end_matches('/')
    }
}

/// The admin interface of the server.
#[derive(Debug, Clone)]
pub(super) struct DeploymentAdmin {
    pub(super) address: EngineAddress,
    pub(super) admin: Url,
    pub(super) client: Client,
    pub(super) handle: Handle,
}

impl DeploymentAdmin {
    /// Returns the deployment that serves the objects; `None` if none was registered.
    pub(super) fn current(&self) -> Result<Option<ObjectDeployment>, EngineError> {
        let Some(service) = self.ask::<RegisteredService>(Method::GET, &["services", RUN], None)?
        else {
            return Ok(None);
        };
        self.ask(Method::GET, &["deployments", &service.deployment_id], None)
    }

    /// Registers the objects at a URL.
    pub(super) fn register(&self, url: &str) -> Result<(), EngineError> {
        let body = json!({ "uri": url, "force": true });
        self.ask::<Value>(Method::POST, &["deployments"], Some(&body)).map(drop)
    }

    /// Moves a deployment to a URL. What was under way goes on there.
    pub(super) fn move_to(
        &self,
        deployment: &ObjectDeployment,
        url: &str,
    ) -> Result<(), EngineError> {
        let body = json!({ "uri": url, "overwrite": true });
        let path = ["deployments", &deployment.id];
        self.ask::<Value>(Method::PATCH, &path, Some(&body)).map(drop)
    }

    /// Asks the interface; `None` if there is no such thing.
    fn ask<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&Value>,
    ) -> Result<Option<A>, EngineError> {
        let mut url = self.admin.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let mut request = self.client.request(method, url).timeout(ADMIN_LIMIT);
        if let Some(body) = body {
            let body = body.to_string();
            request = request.header("content-type", "application/json").body(body);
        }
        let answered = self.handle.block_on(async {
            let response = request.send().await?;
            let status = response.status().as_u16();
            Ok::<_, reqwest::Error>((status, response.bytes().await?))
        });
        match answered {
            Ok((200..=299, body)) => serde_json::from_slice(&body).map(Some).map_err(|error| {
                self.told(refused(&self.address, format!("an answer cannot be read: {error}")))
            }),
            Ok((404, body)) if serde_json::from_slice::<Value>(&body).is_ok() => Ok(None),
            Ok((status, body)) => Err(self.told(of_answer(&self.address, status, &body))),
            Err(error) => Err(self.told(of_request(&self.address, &error))),
        }
    }

    /// Returns an error with the part of the server that it is about.
    fn told(&self, error: EngineError) -> EngineError {
        let place = format!(
            "its admin interface at {}:{}, which ?admin=URL names",
            self.admin.host_str().unwrap_or_default(),
            self.admin.port_or_known_default().unwrap_or_default()
        );
        match error {
            EngineError::Unreachable { why, .. } => {
                unreachable(&self.address, format!("{place}: {why}"))
            }
            EngineError::Refused { why, .. } => refused(&self.address, format!("{place}: {why}")),
            other => other,
        }
    }
}
