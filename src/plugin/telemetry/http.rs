//! The transport to a collector: one request after the other, on the exporter's threads.
//!
//! These threads run no async runtime, and the exporter blocks them while it waits. So each client brings a
//! runtime of its own, which runs while a request is under way and no longer.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use http::{Request, Response};
use opentelemetry_http::{Bytes, HttpClient, HttpError, ResponseBodyTooLarge};
use reqwest::Client;
use reqwest::redirect::Policy;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::{Builder, Runtime};
use tracing::subscriber::{NoSubscriber, with_default};

use super::config::{CollectorEndpoint, TelemetryConfigError};

/// The largest answer of a collector, in bytes. [`ResponseBodyTooLarge`] names the same number.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// Sends to one endpoint, and warns the first time it does not work.
#[derive(Debug)]
pub(super) struct CollectorClient {
    client: Client,
    runtime: RequestRuntime,
    shown: String,
    has_warned: Arc<AtomicBool>,
}

impl CollectorClient {
    /// Returns a client for this endpoint. Of all clients that share `has_warned`, one warns.
    ///
    /// # Errors
    /// [`TelemetryConfigError`] if the certificate cannot be used, or a client cannot be made.
    pub(super) fn new(
        endpoint: &CollectorEndpoint,
        has_warned: Arc<AtomicBool>,
    ) -> Result<Self, TelemetryConfigError> {
        let roots = match &endpoint.certificate {
            Some(path) => read_roots(path)
                .map_err(|why| TelemetryConfigError::Certificate { path: path.clone(), why })?,
            None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        };
        let client = make_client(endpoint, roots).map_err(TelemetryConfigError::Exporter)?;
        let runtime = RequestRuntime::new()
            .map_err(|error| TelemetryConfigError::Exporter(error.to_string()))?;
        Ok(Self { client, runtime, shown: endpoint.shown(), has_warned })
    }

    fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // A client may log each byte it sends, the keys in the headers too.
        with_default(NoSubscriber::default(), || self.runtime.block_on(self.exchange(request)))
    }

    /// Sends a request and reads the answer.
    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let url = head.uri.to_string();
        // The builder makes a header of a user and a password in the URL; a given header replaces it.
        let request = self.client.request(head.method, url).headers(head.headers).body(body);
        let mut answer = request.send().await.map_err(shown_error)?;
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(shown_error)? {
            if bytes.len() + part.len() > MAX_ANSWER {
                return Err(ResponseBodyTooLarge::new().into());
            }
            bytes.extend_from_slice(&part);
        }
        let mut response = Response::new(Bytes::from(bytes));
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }

    /// Warns, unless there was a warning already.
    fn complain(&self, why: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
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
                Err(error)
            }
        }
    }
}

/// The runtime of a client's requests. It may be dropped anywhere, also where blocking is not allowed.
#[derive(Debug)]
struct RequestRuntime(Option<Runtime>);

impl RequestRuntime {
    fn new() -> std::io::Result<Self> {
        Ok(Self(Some(Builder::new_current_thread().enable_all().build()?)))
    }

    /// Waits on this thread until `work` has ended.
    fn block_on<T>(
        &self,
        work: impl Future<Output = Result<T, HttpError>>,
    ) -> Result<T, HttpError> {
        let Some(runtime) = &self.0 else { return Err("the client is closed".into()) };
        runtime.block_on(work)
    }
}

impl Drop for RequestRuntime {
    fn drop(&mut self) {
        // A plain drop would wait for a name that is being looked up, and panics in an async context.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn make_client(endpoint: &CollectorEndpoint, roots: RootCertStore) -> Result<Client, String> {
    let provider = rustls::crypto::ring::default_provider().into();
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .timeout(endpoint.timeout)
        .build()
        .map_err(|error| shown_error(error).to_string())
}

/// Returns an error with its causes and without the URL, which may hold secrets.
fn shown_error(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    let mut shown = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        shown = format!("{shown}: {cause}");
        next = cause.source();
    }
    shown.into()
}

/// Returns the certificates of a PEM file, each of which is trusted.
fn read_roots(path: &Path) -> Result<RootCertStore, String> {
    let pem = crate::plain_file::text(path).map_err(|error| error.to_string())?;
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| error.to_string())?;
    if certificates.is_empty() {
        return Err("there is none in it".to_owned());
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    Ok(roots)
}
