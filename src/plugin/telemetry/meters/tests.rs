//! Records go in, numbers come out, by way of a reader that sends them nowhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Temporality};

use super::*;
use crate::domain::event::StepFinished;
use crate::domain::refusal::{ToolRefusal, ToolRefusals};
use crate::domain::tests::scene::{Scene, first, goto};
use crate::domain::time::Timestamp;
use crate::domain::turn::TurnCost;
use crate::plugin::telemetry::tests::used;

/// Keeps each number as a line: its name, its attributes, its value; of a histogram the sum.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<String>>>);

impl Kept {
    fn lines(&self) -> Vec<String> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lines.sort();
        lines
    }
}

impl PushMetricExporter for Kept {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let metrics = metrics.scope_metrics().flat_map(ScopeMetrics::metrics);
        let lines = metrics.flat_map(|metric| match metric.data() {
            AggregatedMetrics::F64(data) => lines(metric.name(), data),
            AggregatedMetrics::U64(data) => lines(metric.name(), data),
            AggregatedMetrics::I64(data) => lines(metric.name(), data),
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lines.collect();
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

fn lines<T: Copy + std::fmt::Display>(name: &str, data: &MetricData<T>) -> Vec<String> {
    match data {
        MetricData::Gauge(gauge) => {
            let points = gauge.data_points();
            points.map(|point| line(name, point.attributes(), point.value())).collect()
        }
        MetricData::Sum(sum) => {
            let points = sum.data_points();
            points.map(|point| line(name, point.attributes(), point.value())).collect()
        }
        MetricData::Histogram(histogram) => {
            let points = histogram.data_points();
            points.map(|point| line(name, point.attributes(), point.sum())).collect()
        }
        MetricData::ExponentialHistogram(_) => vec![format!("{name} is of no use")],
    }
}

fn line<'own>(
    name: &str,
    known: impl Iterator<Item = &'own KeyValue>,
    value: impl std::fmt::Display,
) -> String {
    let mut known: Vec<String> =
        known.map(|pair| format!("{}={}", pair.key, pair.value.as_str())).collect();
    known.sort();
    format!("{name} {} {value}", known.join(" "))
}

#[test]
fn turn_metrics_are_counted_by_model_and_include_unattributed_cost() {
    let kept = Kept::default();
    let reader = PeriodicReader::builder(kept.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let meters = MetricInstruments::new(&provider.meter("test"));
    let (mut trace, scene) = (RunTrace::default(), Scene::begin());
    trace.replay(&first());
    let refused = ToolRefusal { tool: "Bash".to_owned(), times: 2, ..ToolRefusal::default() };
    let step = StepFinished {
        cost: TurnCost {
            amount: Usd::from_dollars(0.04),
            estimated: false,
            usage: used(),
            refused_tools: ToolRefusals { calls: vec![refused], more: 0 },
            duration_ms: Some(1500),
        },
        ..scene.step("main", goto("B.md"))
    };
    let record = Record {
        kept_session: None,
        seq: 2,
        at: Timestamp(2000),
        folder: None,
        snapshot: None,
        placed: Vec::new(),
        event: Event::StepFinished(step),
    };
    trace.replay(&record);
    meters.count(&record, &trace);
    let failed = Record { event: Event::TurnFailed(scene.failure("main")), ..record };
    meters.count(&failed, &trace);
    provider.force_flush().expect("it is collected");
    let asked = "gen_ai.operation.name=chat gen_ai.provider.name=anthropic";
    let tokens = |model: &str, kind: &str, number: u64| {
        format!(
            "gen_ai.client.token.usage {asked} gen_ai.response.model={model} gen_ai.token.type={kind} {number}"
        )
    };
    assert_eq!(
        kept.lines(),
        [
            format!("gen_ai.client.operation.duration {asked} gen_ai.response.model=big 1.5"),
            tokens("big", "input", 123),
            tokens("big", "output", 7),
            tokens("small", "input", 0),
            tokens("small", "output", 900),
            "raymond.agents.live  1".to_owned(),
            "raymond.cost gen_ai.response.model=big raymond.state=A.md 0.01".to_owned(),
            "raymond.cost raymond.state=A.md 0.04".to_owned(),
            "raymond.failures error.type=crash raymond.state=A.md 1".to_owned(),
            "raymond.steps raymond.state=A.md raymond.transition=goto 1".to_owned(),
            "raymond.tools.refused gen_ai.tool.name=Bash raymond.state=A.md 2".to_owned(),
        ]
    );
}
