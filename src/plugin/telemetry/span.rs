//! A span of a run as OpenTelemetry wants it, built up field by field.
//!
//! The names of the attributes are those of the semantic conventions for generative AI; other attributes begin
//! with `raymond.`.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Event, Link, SpanContext, SpanId, SpanKind, Status};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanLinks};

use super::turn::error_type;
use crate::domain::money::Usd;
use crate::domain::refusal::ToolRefusals;
use crate::domain::time::Timestamp;
use crate::domain::turn::FailureCause;
use crate::domain::usage::{ModelUse, UsageByModel};

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const WORKFLOW: &str = "gen_ai.workflow.name";
pub(super) const AGENT_ID: &str = "gen_ai.agent.id";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const MODEL: &str = "gen_ai.response.model";
pub(super) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(super) const ERROR: &str = "error.type";
pub(super) const RUN: &str = "raymond.run.id";
pub(super) const STATE: &str = "raymond.state";
pub(super) const STEP: &str = "raymond.step";
pub(super) const TURN: &str = "raymond.turn";
pub(super) const TRANSITION: &str = "raymond.transition";
pub(super) const TARGET: &str = "raymond.transition.target";
pub(super) const EVALUATOR: &str = "raymond.evaluator";
pub(super) const OVERRULED: &str = "raymond.overruled_by";
pub(super) const TOOL: &str = "gen_ai.tool.name";
pub(super) const TIMES: &str = "raymond.tool.refused_times";
pub(super) const REFUSED: &str = "raymond.tools.refused";
pub(super) const COST: &str = "raymond.cost_usd";

/// Returns the scope of the spans and the metrics: this program.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(env!("CARGO_PKG_NAME"))
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}

/// Returns all input tokens of a model, from a cache or not, as the conventions count them.
pub(super) fn input_tokens(used: &ModelUse) -> u64 {
    used.input_tokens.saturating_add(used.cache_read_tokens).saturating_add(used.cache_write_tokens)
}

/// Returns a number as an attribute can hold it.
pub(super) fn number(value: u64) -> Value {
    Value::I64(i64::try_from(value).unwrap_or(i64::MAX))
}

/// A span that is being put together.
pub(super) struct SpanDraft(SpanData);

impl SpanDraft {
    /// Returns a span with this duration.
    pub(super) fn new(name: String, id: SpanContext, from: Timestamp, to: Timestamp) -> Self {
        Self(SpanData {
            span_context: id,
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time: moment(from.min(to)),
            end_time: moment(to),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: opentelemetry_sdk::trace::SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: scope(),
        })
    }

    /// Marks it as a request to a service outside.
    pub(super) fn asked(mut self) -> Self {
        self.0.span_kind = SpanKind::Client;
        self
    }

    /// Sets its parent.
    pub(super) fn within(mut self, parent: &SpanContext) -> Self {
        self.0.parent_span_id = parent.span_id();
        self
    }

    /// Links it to its cause, which is not its parent.
    pub(super) fn caused_by(mut self, other: Option<SpanContext>) -> Self {
        self.0.links.links.extend(other.map(Link::with_context));
        self
    }

    /// Adds an attribute.
    pub(super) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.0.attributes.push(KeyValue::new(key, value));
        self
    }

    /// Adds an attribute, if there is a value.
    pub(super) fn with_some(self, key: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Marks it as failed. The message is left out: it may hold text of prompts or replies.
    pub(super) fn failed(mut self, cause: Option<FailureCause>) -> Self {
        let Some(cause) = cause else { return self };
        self.0.status = Status::error(cause.to_string());
        self.with(ERROR, error_type(cause))
    }

    /// Adds usage and cost.
    pub(super) fn took(self, usage: &UsageByModel, cost: Usd) -> Self {
        let draft = self.with(COST, cost.dollars());
        if usage.is_empty() {
            return draft;
        }
        let total = usage.total();
        draft
            .with("gen_ai.usage.input_tokens", number(input_tokens(&total)))
            .with("gen_ai.usage.output_tokens", number(total.output_tokens))
            .with("gen_ai.usage.cache_read.input_tokens", number(total.cache_read_tokens))
            .with("gen_ai.usage.cache_creation.input_tokens", number(total.cache_write_tokens))
    }

    /// Adds the refused tools. Their inputs are left out, as all text of a model is.
    pub(super) fn refused(mut self, refused_tools: &ToolRefusals, at: Timestamp) -> Self {
        if refused_tools.is_empty() {
            return self;
        }
        for call in &refused_tools.calls {
            let known = vec![
                KeyValue::new(TOOL, call.tool.clone()),
                KeyValue::new(TIMES, i64::from(call.times)),
            ];
            self.0.events.events.push(Event::new("raymond.tool_refused", moment(at), known, 0));
        }
        self.with(REFUSED, i64::from(refused_tools.count()))
    }

    /// Returns the span.
    pub(super) fn done(self) -> SpanData {
        self.0
    }
}

fn moment(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH
        .checked_add(Duration::from_millis(at.0))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}
