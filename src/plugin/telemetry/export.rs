//! Exports telemetry: the queues of spans and metrics, the transport to a collector, and the configuration.
//!
//! Spans and metrics wait in bounded queues until separate threads send them. A slow or missing collector costs the run
//! nothing: data that finds the queue full is dropped. Lost data is counted and reported once, at the end, which waits
//! for a few seconds only.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::{Request, Response, Uri};
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
    let builder = Resource::builder_empty()
        .with_service_name(env!("CARGO_PKG_NAME"))
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", instance),
            KeyValue::new(RUN, run.to_string()),
        ])
        .with_detector(Box::new(EnvResourceDetector::new()));
    match &config.service {
        Some(name) => builder.with_service_name(name.clone()).build(),
        None => builder.build(),
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

// The telemetry configuration: `--otlp` and OpenTelemetry's own variables.
//
// Telemetry is off unless it is asked for: by the option, by a variable that names an endpoint, or by
// `OTEL_TRACES_EXPORTER=otlp` (or `…METRICS…`), which means the collector of this machine. The option takes
// precedence over variables, but `OTEL_SDK_DISABLED=true` and `OTEL_TRACES_EXPORTER=none` always hold, so that
// the administrator of a machine has the last word.

/// The default address of the collector.
const HERE: &str = "http://localhost:4318";

/// The kinds of data to send, and their endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// The endpoint of the spans.
    pub(super) traces: Option<CollectorEndpoint>,
    /// The endpoint of the metrics.
    pub(super) metrics: Option<CollectorEndpoint>,
    /// The name of the service, if it is not the program's.
    pub(super) service: Option<String>,
}

/// The endpoint of one kind of data. Its debug output holds no secrets.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CollectorEndpoint {
    pub(super) url: String,
    pub(super) timeout: Duration,
    /// The file of the certificates that are trusted instead of the public ones.
    pub(super) certificate: Option<PathBuf>,
    /// True if the maximum number of waiting spans is set.
    pub(super) queue_is_set: bool,
}

/// The reason why nothing can be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryConfigError {
    /// It is not the address of a collector.
    #[error(
        "{name} is not the address of a collector: {why}; write for example http://localhost:4318"
    )]
    Url {
        /// The option or the variable.
        name: String,
        /// The error in it.
        why: &'static str,
    },
    /// Another protocol is asked for.
    #[error(
        "{name} asks for {protocol}, and raymond speaks http/protobuf only; name the port of the collector for that, often 4318"
    )]
    Protocol {
        /// The variable.
        name: String,
        /// The value of the variable, such as `grpc`.
        protocol: String,
    },
    /// The certificate cannot be used.
    #[error("the certificates in {} cannot be used: {why}", path.display())]
    Certificate {
        /// The file that the variable names.
        path: PathBuf,
        /// The error in it.
        why: String,
    },
    /// The exporter refuses its configuration.
    #[error("{0}")]
    Exporter(String),
}

/// Checks the value of `--otlp`.
///
/// # Errors
/// The error in the value.
pub fn url(text: &str) -> Result<String, String> {
    checked(text).map(|()| text.to_owned()).map_err(str::to_owned)
}

impl TelemetryConfig {
    /// Returns the configuration by an option and the variables of an environment; `None` if none is asked for.
    ///
    /// # Errors
    /// [`TelemetryConfigError`] if the requested export is not possible.
    pub fn of(
        option: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, TelemetryConfigError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let traces = endpoint("TRACES", "v1/traces", option, &variable)?;
        let metrics = endpoint("METRICS", "v1/metrics", option, &variable)?;
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { traces, metrics, service: variable("OTEL_SERVICE_NAME") }))
    }
}

/// Returns the endpoint of one kind of data, if it is sent at all.
fn endpoint(
    kind: &str,
    path: &str,
    option: Option<&str>,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<CollectorEndpoint>, TelemetryConfigError> {
    let exporter = variable(&format!("OTEL_{kind}_EXPORTER")).unwrap_or_default();
    let mut exporters = exporter.split(',').map(str::trim);
    if !exporter.is_empty() && !exporters.clone().any(|exporter| exporter == "otlp") {
        return Ok(None);
    }
    let of_signal = |what: &str| named(&format!("OTEL_EXPORTER_OTLP_{kind}_{what}"), variable);
    let common = |what: &str| named(&format!("OTEL_EXPORTER_OTLP_{what}"), variable);
    let either = |what: &str| of_signal(what).or_else(|| common(what));
    let joined = |base: &str| format!("{}/{path}", base.trim_end_matches('/'));
    let (name, url) = if let Some(base) = option {
        ("--otlp".to_owned(), joined(base))
    } else if let Some((name, url)) = of_signal("ENDPOINT") {
        (name, url)
    } else if let Some((name, base)) = common("ENDPOINT") {
        (name, joined(&base))
    } else if exporters.any(|exporter| exporter == "otlp") {
        (String::new(), joined(HERE))
    } else {
        return Ok(None);
    };
    checked(&url).map_err(|why| TelemetryConfigError::Url { name: name.clone(), why })?;
    if let Some((name, protocol)) = either("PROTOCOL")
        && protocol != "http/protobuf"
        && option.is_none()
    {
        return Err(TelemetryConfigError::Protocol { name, protocol });
    }
    let millis = either("TIMEOUT").and_then(|(_, millis)| millis.parse().ok()).unwrap_or(10_000);
    let certificate = either("CERTIFICATE").map(|(_, path)| path.into());
    let queue_is_set = variable("OTEL_BSP_MAX_QUEUE_SIZE").is_some();
    Ok(Some(CollectorEndpoint {
        url,
        timeout: Duration::from_millis(millis),
        certificate,
        queue_is_set,
    }))
}

/// Returns the value of a variable, with its name.
fn named(name: &str, variable: &impl Fn(&str) -> Option<String>) -> Option<(String, String)> {
    Some((name.to_owned(), variable(name)?.trim().to_owned()))
}

fn checked(url: &str) -> Result<(), &'static str> {
    let uri: Uri = url.parse().map_err(|_| "it is not a URL")?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(()),
        Some("http" | "https") => Err("it names no host"),
        Some(_) => Err("only http:// and https:// can be used"),
        None => Err("it does not begin with http:// or https://"),
    }
}

impl CollectorEndpoint {
    /// Returns the address as it may be shown: without a user, a password or a query.
    pub(super) fn shown(&self) -> String {
        let Ok(uri) = self.url.parse::<Uri>() else { return "the collector".to_owned() };
        let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
        let (scheme, host) = (uri.scheme_str().unwrap_or("http"), uri.host().unwrap_or_default());
        format!("{scheme}://{host}{port}{}", uri.path())
    }
}

impl fmt::Debug for CollectorEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

#[cfg(test)]
mod config_tests {
    use super::*;

    fn config(
        option: Option<&str>,
        variables: &[(&str, &str)],
    ) -> Result<Option<TelemetryConfig>, TelemetryConfigError> {
        TelemetryConfig::of(option, |name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    /// Returns the endpoints of spans and metrics.
    fn urls(option: Option<&str>, variables: &[(&str, &str)]) -> [Option<String>; 2] {
        let config = config(option, variables).expect("it can be done");
        let url = |endpoint: Option<CollectorEndpoint>| endpoint.map(|endpoint| endpoint.url);
        config.map_or([None, None], |config| [url(config.traces), url(config.metrics)])
    }

    const BASE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/base/");

    #[test]
    fn export_is_off_unless_requested() {
        for variables in [&[][..], &[("OTEL_SERVICE_NAME", "x")], &[(BASE.0, " ")]] {
            assert_eq!(config(None, variables), Ok(None), "{variables:?}");
        }
        for off in [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_SDK_DISABLED", "true")] {
            assert_eq!(config(Some("http://c"), &[BASE, off]), Ok(None));
        }
    }

    #[test]
    fn base_endpoint_serves_traces_and_metrics() {
        let both = |base: &str| ["traces", "metrics"].map(|kind| Some(format!("{base}/v1/{kind}")));
        assert_eq!(urls(Some("https://c"), &[BASE]), both("https://c"));
        assert_eq!(urls(None, &[BASE]), both("http://c:1/base"));
    }

    #[test]
    fn traces_endpoint_is_used_verbatim_and_enables_only_traces() {
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/here");
        assert_eq!(urls(None, &[traces]), [Some("http://t/here".to_owned()), None]);
        let metrics = Some("http://c:1/base/v1/metrics".to_owned());
        assert_eq!(urls(None, &[traces, BASE]), [Some("http://t/here".to_owned()), metrics]);
    }

    #[test]
    fn exporter_variable_enables_or_disables_a_signal() {
        let here = Some("http://localhost:4318/v1/metrics".to_owned());
        assert_eq!(urls(None, &[("OTEL_METRICS_EXPORTER", "otlp")]), [None, here]);
        let metrics = Some("http://c/v1/metrics".to_owned());
        assert_eq!(
            urls(Some("http://c"), &[("OTEL_TRACES_EXPORTER", "none")]),
            [None, metrics.clone()]
        );
        assert_eq!(urls(Some("http://c"), &[("OTEL_TRACES_EXPORTER", "zipkin")]), [None, metrics]);
    }

    #[test]
    fn unsupported_protocol_or_endpoint_is_an_error() {
        let error_of = |variables: &[(&str, &str)]| {
            config(None, variables).expect_err("a problem").to_string()
        };
        let grpc = error_of(&[BASE, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(grpc.contains("OTEL_EXPORTER_OTLP_PROTOCOL asks for grpc"), "{grpc}");
        let bad = error_of(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")]);
        assert!(bad.contains("OTEL_EXPORTER_OTLP_ENDPOINT is not the address"), "{bad}");
        for bad in ["", "localhost", "ftp://c", "http://", "http:// c", "/v1"] {
            assert!(url(bad).is_err(), "{bad:?} was taken");
        }
        assert_eq!(url("http://c:4318"), Ok("http://c:4318".to_owned()));
    }

    #[test]
    fn debug_output_hides_secrets_of_the_address() {
        let config =
            config(Some("https://me:secret@c:1/x?key=hidden"), &[]).expect("it can be done");
        let shown = format!("{config:?}");
        assert!(!shown.contains("secret") && !shown.contains("hidden"), "{shown}");
        assert!(shown.contains("https://c:1/x"), "{shown}");
    }
}
