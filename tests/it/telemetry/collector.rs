//! A collector on 127.0.0.1 that keeps what it receives.
//!
//! The server has a thread and a runtime of its own; both end when the `Collector` is dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span as SentSpan;
use prost::Message;
use tokio::sync::oneshot;

type ReceivedAttributes = BTreeMap<String, String>;

/// A span that was received.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReceivedSpan {
    pub(super) name: String,
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) links: Vec<String>,
    pub(super) attributes: ReceivedAttributes,
    pub(super) resource: ReceivedAttributes,
    pub(super) failed: bool,
}

/// A number that was received; of a histogram, its sum.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReceivedPoint {
    pub(super) name: String,
    pub(super) value: f64,
    pub(super) attributes: ReceivedAttributes,
}

#[derive(Debug, Default)]
pub(super) struct CollectorData {
    pub(super) spans: Vec<ReceivedSpan>,
    /// The points of the newest request with metrics.
    pub(super) points: Vec<ReceivedPoint>,
    pub(super) headers: Vec<HeaderMap>,
}

/// The answers of the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CollectorReply {
    Well,
    /// With an error of its own.
    Badly,
    Never,
}

/// A running collector.
pub(super) struct Collector {
    pub(super) url: String,
    received: Arc<Mutex<CollectorData>>,
    stop: Option<oneshot::Sender<()>>,
    server: Option<JoinHandle<()>>,
}

#[derive(Clone)]
struct CollectorState {
    answers: CollectorReply,
    received: Arc<Mutex<CollectorData>>,
}

impl Collector {
    pub(super) fn start(answers: CollectorReply) -> Self {
        let listener =
            std::net::TcpListener::bind("127.0.0.1:0").expect("the loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        listener.set_nonblocking(true).expect("a socket can be made non-blocking");
        let received = Arc::default();
        let shared = CollectorState { answers, received: Arc::clone(&received) };
        let (stop, stopped) = oneshot::channel();
        let server = thread::spawn(move || serve(listener, shared, stopped));
        let url = format!("http://{address}");
        Self { url, received, stop: Some(stop), server: Some(server) }
    }

    pub(super) fn received(&self) -> MutexGuard<'_, CollectorData> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn spans(&self) -> Vec<ReceivedSpan> {
        self.received().spans.clone()
    }

    /// Returns the only span that has this name and this attribute.
    #[track_caller]
    pub(super) fn span(&self, name: &str, key: &str, value: &str) -> ReceivedSpan {
        let spans = self.spans();
        let fits = |span: &&ReceivedSpan| span.name == name && span.get(key) == value;
        let found: Vec<&ReceivedSpan> = spans.iter().filter(fits).collect();
        let [one] = found.as_slice() else { panic!("{name} {key}={value}: {spans:#?}") };
        ReceivedSpan::clone(one)
    }

    /// Returns the sum of all points of this name that have this attribute, if there are any.
    pub(super) fn sum(&self, name: &str, key: &str, value: &str) -> Option<f64> {
        let received = self.received();
        let fits = |point: &&ReceivedPoint| {
            point.name == name
                && (key.is_empty() || point.attributes.get(key).is_some_and(|own| own == value))
        };
        let found: Vec<f64> =
            received.points.iter().filter(fits).map(|point| point.value).collect();
        (!found.is_empty()).then(|| found.iter().sum())
    }
}

impl ReceivedSpan {
    pub(super) fn get(&self, key: &str) -> &str {
        self.attributes.get(key).map_or("", String::as_str)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(server) = self.server.take() {
            let ended = server.join();
            assert!(ended.is_ok() || thread::panicking(), "the collector panicked");
        }
    }
}

fn serve(listener: std::net::TcpListener, shared: CollectorState, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let routes = Router::new()
        .route("/v1/traces", post(traces))
        .route("/v1/metrics", post(metrics))
        .with_state(shared);
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("the socket is usable");
        tokio::select! {
            served = axum::serve(listener, routes) => served.expect("the collector serves"),
            _ = stopped => {}
        }
    });
}

impl CollectorState {
    async fn answer(
        &self,
        headers: HeaderMap,
        keep: impl FnOnce(&mut CollectorData),
    ) -> StatusCode {
        {
            let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
            received.headers.push(headers);
            if self.answers == CollectorReply::Well {
                keep(&mut received);
            }
        }
        match self.answers {
            CollectorReply::Well => StatusCode::OK,
            CollectorReply::Badly => StatusCode::INTERNAL_SERVER_ERROR,
            CollectorReply::Never => std::future::pending().await,
        }
    }
}

async fn traces(
    State(shared): State<CollectorState>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let request = ExportTraceServiceRequest::decode(body).expect("it is the protocol's");
    shared
        .answer(headers, |received| {
            for resource in request.resource_spans {
                let known = of_resource(resource.resource);
                let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                received.spans.extend(spans.map(|sent| span(sent, &known)));
            }
        })
        .await
}

async fn metrics(
    State(shared): State<CollectorState>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let request = ExportMetricsServiceRequest::decode(body).expect("it is the protocol's");
    let scopes = request.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    let all = scopes.flat_map(|scope| scope.metrics);
    let points = all.flat_map(|metric| points(&metric.name, metric.data)).collect();
    shared.answer(headers, |received| received.points = points).await
}

fn span(sent: SentSpan, resource: &ReceivedAttributes) -> ReceivedSpan {
    ReceivedSpan {
        failed: sent.status.as_ref().is_some_and(|status| status.code == 2),
        name: sent.name,
        trace: hex(&sent.trace_id),
        id: hex(&sent.span_id),
        parent: hex(&sent.parent_span_id),
        links: sent.links.iter().map(|link| hex(&link.span_id)).collect(),
        attributes: attributes(sent.attributes),
        resource: resource.clone(),
    }
}

fn points(name: &str, data: Option<metric::Data>) -> Vec<ReceivedPoint> {
    let point = |value, known| ReceivedPoint {
        name: name.to_owned(),
        value,
        attributes: attributes(known),
    };
    let number = |value: Option<number_data_point::Value>| match value {
        Some(number_data_point::Value::AsDouble(value)) => value,
        Some(number_data_point::Value::AsInt(value)) => {
            f64::from(i32::try_from(value).expect("a small number"))
        }
        None => panic!("{name} has no value"),
    };
    let plain = |points: Vec<opentelemetry_proto::tonic::metrics::v1::NumberDataPoint>| {
        points.into_iter().map(|one| point(number(one.value), one.attributes)).collect()
    };
    match data.expect("a metric has data") {
        metric::Data::Sum(sum) => plain(sum.data_points),
        metric::Data::Gauge(gauge) => plain(gauge.data_points),
        metric::Data::Histogram(histogram) => {
            let points = histogram.data_points.into_iter();
            points.map(|one| point(one.sum.unwrap_or_default(), one.attributes)).collect()
        }
        other => panic!("{name}: {other:?}"),
    }
}

fn of_resource(resource: Option<Resource>) -> ReceivedAttributes {
    attributes(resource.map(|resource| resource.attributes).unwrap_or_default())
}

fn attributes(pairs: Vec<KeyValue>) -> ReceivedAttributes {
    let text = |value| match value {
        any_value::Value::StringValue(text) => text,
        any_value::Value::IntValue(number) => number.to_string(),
        any_value::Value::DoubleValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let value = |pair: KeyValue| Some((pair.key, text(pair.value?.value?)));
    pairs.into_iter().filter_map(value).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
