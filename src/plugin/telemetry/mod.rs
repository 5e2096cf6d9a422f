//! Telemetry: a run as an OpenTelemetry trace and metrics, sent over OTLP/HTTP to who asked for it.
//!
//! ```text
//! record ─ [trace] ─ spans ────┐
//!     │  (pure, remembers who  ├─ [export] ─ queue, batches ─ [http] ─ collector
//!     │   is at what)          │
//!     └─ [turn] ── [meters] ───┘
//! ```
//!
//! Spans follow the semantic conventions for generative AI: `invoke_workflow` for the run,
//! `invoke_agent` for each agent, `chat` for each turn; between an agent and its turns stands a span
//! for each step, which the conventions do not know. They are made from records alone, and so are
//! their ids: a run that is killed and goes on, goes on with the same trace. A span is sent when what
//! it tells has ended, so a run that is paused has sent its finished steps and turns, and sends the
//! spans above them when it ends. What was still in the queue of a process that was killed is lost:
//! at most what ended in the seconds that `OTEL_BSP_SCHEDULE_DELAY` names, five by default.
//!
//! A turn that failed does not say how long it took. Its span begins when it could have begun, and it
//! counts in `raymond.failures` but not in the histogram of durations. What model was asked for is not
//! in the journal either; `gen_ai.response.model` is the one that took the largest part of a turn.
//!
//! Nothing a model was told or said is exported, nor any value, message or path: names, numbers and
//! kinds of failure only.

pub mod actor;
pub mod config;
mod export;
mod http;
mod ids;
mod life;
mod meters;
mod span;
pub mod trace;
mod turn;

#[cfg(test)]
mod tests;
