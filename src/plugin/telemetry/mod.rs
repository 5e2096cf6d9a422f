//! Telemetry: a run as an OpenTelemetry trace and metrics, sent over OTLP/HTTP if it is asked for.
//!
//! ```text
//! record ─ [trace] ─ spans ────┐
//!     │  (pure, remembers who  ├─ [export] ─ queue, batches ─ HTTP ─ collector
//!     │   is at what)          │
//!     └─ [turn] ── [meters] ───┘
//! ```
//!
//! Spans follow the semantic conventions for generative AI: `invoke_workflow` for the run, `invoke_agent` for each
//! agent, `chat` for each turn. Between an agent and its turns stands a span for each step, which the conventions
//! do not know. Spans and their ids are made from records alone, so a run that is killed and resumed continues the
//! same trace. A span is sent when its subject has ended: a paused run has sent its finished steps and turns, and
//! sends the spans above them when it ends. Spans in the queue of a killed process are lost: at most those of the
//! seconds that `OTEL_BSP_SCHEDULE_DELAY` names, five by default.
//!
//! The record of a failed turn has no duration. Its span begins at the earliest possible time, and it counts in
//! `raymond.failures` but not in the histogram of durations. The requested model is not in the journal either;
//! `gen_ai.response.model` is the model that took the largest part of a turn.
//!
//! No prompt, reply, value, message or path is exported: names, numbers and kinds of failure only.

pub mod actor;
pub mod export;
mod meters;
mod span;
pub mod trace;
mod turn;

#[cfg(test)]
mod tests;
