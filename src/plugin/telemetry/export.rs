//! The exporter: spans and metrics wait in bounded queues until separate threads send them.
//!
//! A slow or missing collector costs the run nothing: data that finds the queue full is dropped. Lost data is
//! counted and reported once, at the end, which waits for a few seconds only.

use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::{Request, Response};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, ResponseBodyTooLarge};
use opentelemetry_otlp::{Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor,
};
use reqwest::Client;
use reqwest::redirect::Policy;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::{Builder, Runtime};
use tracing::subscriber::{NoSubscriber, with_default};

use super::config::{CollectorEndpoint, TelemetryConfig, TelemetryConfigError};
use super::meters::MetricInstruments;
use super::span::{RUN, scope};
use crate::domain::id::RunId;

/// The time the end of a run waits for the last data to be sent.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of waiting spans, unless `OTEL_BSP_MAX_QUEUE_SIZE` is set: those of a busy minute.
const MAX_WAITING_SPANS: usize = 16_384;

/// The queues of spans and metrics, and their counters.
#[derive(Debug)]
pub(super) struct TelemetryExporter {
    spans: Option<SpanQueue>,
    metrics: Option<SdkMeterProvider>,
    /// The instruments of the metrics.
    pub(super) meters: Option<MetricInstruments>,
}

/// The spans on their way.
#[derive(Debug)]
struct SpanQueue {
    processor: BatchSpanProcessor,
    given: u64,
    arrived: Arc<AtomicU64>,
    shown: String,
}

impl TelemetryExporter {
    /// Starts the threads. `instance` tells this process from every other.
    ///
    /// # Errors
    /// [`TelemetryConfigError`] if the exporters refuse their configuration.
    pub(super) fn start(
        config: &TelemetryConfig,
        run: &RunId,
        instance: String,
    ) -> Result<Self, TelemetryConfigError> {
        let resource = resource(config, run, instance);
        let has_warned = Arc::new(AtomicBool::new(false));
        let spans = config
            .traces
            .as_ref()
            .map(|endpoint| SpanQueue::start(endpoint, &resource, &has_warned));
        let metrics = config
            .metrics
            .as_ref()
            .map(|endpoint| meters(endpoint, resource.clone(), has_warned.clone()));
        let (spans, metrics) = (spans.transpose()?, metrics.transpose()?);
        let meters = metrics
            .as_ref()
            .map(|provider| MetricInstruments::new(&provider.meter_with_scope(scope())));
        Ok(Self { spans, metrics, meters })
    }

    /// Puts a span into the queue, if there is room.
    pub(super) fn send(&mut self, span: SpanData) {
        if let Some(spans) = &mut self.spans {
            spans.given += 1;
            spans.processor.on_end(span);
        }
    }

    /// Sends the remaining data, and reports lost data.
    pub(super) fn finish(self) {
        let (done, dones) = mpsc::channel();
        let spans = self.spans.map(|spans| {
            let SpanQueue { processor, given, arrived, shown } = spans;
            let done = done.clone();
            let _ = std::thread::Builder::new().spawn(move || {
                let _ = processor.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
                let _ = done.send(());
            });
            (given, arrived, shown)
        });
        if let Some(provider) = self.metrics {
            let _ = std::thread::Builder::new().spawn(move || {
                let _ = provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
                let _ = done.send(());
            });
        } else {
            drop(done);
        }
        let end = Instant::now() + SHUTDOWN_TIMEOUT;
        while dones.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok() {}
        let Some((given, arrived, shown)) = spans else { return };
        let lost = given.saturating_sub(arrived.load(Ordering::Acquire));
        if lost > 0 {
            tracing::warn!(
                "telemetry: {lost} of {given} spans did not arrive at {shown}; the journal has the same information"
            );
        }
    }
}

impl SpanQueue {
    fn start(
        endpoint: &CollectorEndpoint,
        resource: &Resource,
        has_warned: &Arc<AtomicBool>,
    ) -> Result<Self, TelemetryConfigError> {
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::new(endpoint, has_warned.clone())?)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&endpoint.url)
            .with_timeout(endpoint.timeout)
            .build()
            .map_err(|error| TelemetryConfigError::Exporter(error.to_string()))?;
        let arrived = Arc::new(AtomicU64::new(0));
        let exporter = CountingExporter { exporter, arrived: Arc::clone(&arrived) };
        let mut batches = BatchConfigBuilder::default();
        if !endpoint.queue_is_set {
            batches = batches.with_max_queue_size(MAX_WAITING_SPANS);
        }
        let mut processor =
            BatchSpanProcessor::builder(exporter).with_batch_config(batches.build()).build();
        processor.set_resource(resource);
        Ok(Self { processor, given: 0, arrived, shown: endpoint.shown() })
    }
}

fn meters(
    endpoint: &CollectorEndpoint,
    resource: Resource,
    has_warned: Arc<AtomicBool>,
) -> Result<SdkMeterProvider, TelemetryConfigError> {
    let exporter = opentelemetry_otlp::MetricExporter::builder()
        .with_http()
        .with_http_client(CollectorClient::new(endpoint, has_warned)?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(&endpoint.url)
        .with_timeout(endpoint.timeout)
        .build()
        .map_err(|error| TelemetryConfigError::Exporter(error.to_string()))?;
    let reader = PeriodicReader::builder(exporter).build();
    Ok(SdkMeterProvider::builder().with_resource(resource).with_reader(reader).build())
}

/// Returns the sender's attributes: the program, its process and its run. `OTEL_RESOURCE_ATTRIBUTES` overrides
/// these, and `OTEL_SERVICE_NAME` overrides all.
fn resource(config: &TelemetryConfig, run: &RunId, instance: String) -> Resource {
    let own = Resource::builder_empty()
        .with_service_name(env!("CARGO_PKG_NAME"))
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance),
            KeyValue::new(RUN, run.to_string()),
        ])
        .with_detector(Box::new(EnvResourceDetector::new()));
    match &config.service {
        Some(name) => own.with_service_name(name.clone()).build(),
        None => own.build(),
    }
}

/// An exporter whose successes are counted.
#[derive(Debug)]
struct CountingExporter {
    exporter: opentelemetry_otlp::SpanExporter,
    arrived: Arc<AtomicU64>,
}

impl SpanExporter for CountingExporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        self.exporter.export(batch).await?;
        self.arrived.fetch_add(count, Ordering::Release);
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

// The transport to a collector: one request after the other, on the exporter's threads.
//
// These threads run no async runtime, and the exporter blocks them while it waits. So each client has its own runtime,
// which runs only during a request.

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
