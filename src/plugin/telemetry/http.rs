//! The transport to a collector: one blocking request after the other, on the exporter's threads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tracing::subscriber::{NoSubscriber, with_default};
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::config::{CollectorEndpoint, TelemetryConfigError};

/// Sends to one endpoint, and warns the first time it does not work.
#[derive(Debug)]
pub(super) struct CollectorClient {
    agent: Agent,
    shown: String,
    told: Arc<AtomicBool>,
}

impl CollectorClient {
    /// Returns a client for this endpoint. Of all clients that share `told`, one warns.
    ///
    /// # Errors
    /// [`TelemetryConfigError`] if the certificate cannot be used.
    pub(super) fn new(
        endpoint: &CollectorEndpoint,
        told: Arc<AtomicBool>,
    ) -> Result<Self, TelemetryConfigError> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = &endpoint.certificate {
            let roots = roots(path)
                .map_err(|why| TelemetryConfigError::Certificate { path: path.clone(), why })?;
            tls = tls.root_certs(roots);
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(endpoint.timeout))
            .tls_config(tls.build())
            .build();
        Ok(Self { agent: config.into(), shown: endpoint.shown(), told })
    }

    fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        // What the client logs shows every byte it sends, the keys in the headers too.
        with_default(NoSubscriber::default(), || {
            let answer = self.agent.run(request.map(Vec::from))?;
            let (head, mut body) = answer.into_parts();
            Ok(Response::from_parts(head, body.read_to_vec()?.into()))
        })
    }

    /// Warns, unless there was a warning already.
    fn complain(&self, why: &str) {
        if !self.told.swap(true, Ordering::Relaxed) {
            tracing::warn!("telemetry does not arrive at {}: {why}; the run continues", self.shown);
        }
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        match self.post(request) {
            Ok(answer) => {
                if !answer.status().is_success() {
                    self.complain(&format!("the collector answers {}", answer.status()));
                }
                Ok(answer)
            }
            Err(error) => {
                self.complain(&error.to_string());
                Err(error.into())
            }
        }
    }
}

/// Returns the certificates of a PEM file, each of which is trusted.
fn roots(path: &Path) -> Result<RootCerts, String> {
    let pem = std::fs::read(path).map_err(|error| error.to_string())?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| error.to_string())? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err("there is none in it".to_owned());
    }
    Ok(certificates.into())
}
