//! The exporter: spans and metrics wait in bounded queues until threads of their own send them.
//!
//! A slow or missing collector costs the run nothing: data that finds the queue full is dropped. Lost data is
//! counted and reported once, at the end, which waits for a few seconds only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry_otlp::{Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor,
};

use super::config::{CollectorEndpoint, TelemetryConfig, TelemetryConfigError};
use super::http::CollectorClient;
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
