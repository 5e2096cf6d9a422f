//! The metrics of a run: two of the semantic conventions, and raymond's own.
//!
//! They count the events in this process; a run that is resumed in another starts from zero there.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

use super::span::{
    ERROR, MODEL, OPERATION, PROVIDER, STATE, TOKEN_TYPE, TOOL, TRANSITION, input_tokens,
};
use super::trace::RunTrace;
use super::turn::{TurnSpanInput, ended_turn, error_type};
use crate::domain::event::{Event, Record};
use crate::domain::money::Usd;

/// The bucket boundaries of tokens, by the conventions.
const TOKEN_BOUNDARIES: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The bucket boundaries of seconds: those of the conventions, extended to an hour and a half, because a turn is many
/// requests.
const SECOND_BOUNDARIES: [f64; 20] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84,
    327.68, 655.36, 1310.72, 2621.44, 5242.88,
];

/// The instruments.
#[derive(Debug)]
pub(super) struct MetricInstruments {
    tokens: Histogram<u64>,
    seconds: Histogram<f64>,
    cost: Counter<f64>,
    steps: Counter<u64>,
    failures: Counter<u64>,
    refused: Counter<u64>,
    live: Gauge<u64>,
}

impl MetricInstruments {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("Tokens that turns took, by model and kind.")
                .with_boundaries(TOKEN_BOUNDARIES.to_vec())
                .build(),
            seconds: meter
                .f64_histogram("gen_ai.client.operation.duration")
                .with_unit("s")
                .with_description("How long the turns took that were answered.")
                .with_boundaries(SECOND_BOUNDARIES.to_vec())
                .build(),
            cost: meter
                .f64_counter("raymond.cost")
                .with_unit("{USD}")
                .with_description("What turns cost in US dollars, by state and model.")
                .build(),
            steps: meter
                .u64_counter("raymond.steps")
                .with_unit("{step}")
                .with_description("Steps that agents took, by state and transition.")
                .build(),
            failures: meter
                .u64_counter("raymond.failures")
                .with_unit("{turn}")
                .with_description("Turns that came to nothing, by state and kind of failure.")
                .build(),
            refused: meter
                .u64_counter("raymond.tools.refused")
                .with_unit("{call}")
                .with_description("Calls of tools that were refused, by state and tool.")
                .build(),
            live: meter
                .u64_gauge("raymond.agents.live")
                .with_unit("{agent}")
                .with_description("Agents that have not ended.")
                .build(),
        }
    }

    /// Counts a record.
    pub(super) fn count(&self, record: &Record, trace: &RunTrace) {
        let state = record.event.turn_state().map(|state| KeyValue::new(STATE, state.to_string()));
        let state = state.as_slice();
        if let Some(turn) = ended_turn(&record.event) {
            self.count_turn(turn, state, trace.provider());
        }
        if let Event::StepFinished(step) = &record.event {
            let tag = step.transition.tag().to_string();
            self.steps.add(1, &[state, &[KeyValue::new(TRANSITION, tag)]].concat());
        }
        self.show(trace);
    }

    /// Shows the number of live agents.
    pub(super) fn show(&self, trace: &RunTrace) {
        self.live.record(trace.living() as u64, &[]);
    }

    fn count_turn(&self, turn: TurnSpanInput<'_>, state: &[KeyValue], provider: &'static str) {
        let asked = [KeyValue::new(OPERATION, "chat"), KeyValue::new(PROVIDER, provider)];
        let error = turn.failed.map(|cause| KeyValue::new(ERROR, error_type(cause)));
        let of = |model: &str| KeyValue::new(MODEL, model.to_owned());
        for (model, used) in turn.cost.usage.iter() {
            for (kind, tokens) in [("input", input_tokens(used)), ("output", used.output_tokens)] {
                let kind = KeyValue::new(TOKEN_TYPE, kind);
                self.tokens.record(tokens, &[&asked[..], &[of(model), kind]].concat());
            }
            self.spend(used.cost_usd, &[state, &[of(model)]].concat());
        }
        self.spend(turn.cost.amount.saturating_sub(turn.cost.usage.total().cost_usd), state);
        if let Some(took) = turn.cost.duration_ms {
            let model = turn.model().map(of);
            let known: Vec<KeyValue> =
                asked.into_iter().chain(model).chain(error.clone()).collect();
            self.seconds.record(std::time::Duration::from_millis(took).as_secs_f64(), &known);
        }
        for call in &turn.cost.refused_tools.calls {
            let tool = KeyValue::new(TOOL, call.tool.clone());
            self.refused.add(call.times.into(), &[state, &[tool]].concat());
        }
        if turn.cost.refused_tools.more > 0 {
            self.refused.add(turn.cost.refused_tools.more.into(), state);
        }
        if let Some(error) = error {
            self.failures.add(1, &[state, &[error]].concat());
        }
    }

    fn spend(&self, cost: Usd, known: &[KeyValue]) {
        if cost > Usd::ZERO {
            self.cost.add(cost.dollars(), known);
        }
    }
}

#[cfg(test)]
mod tests;
