//! Prepares telemetry if it is wanted. An error in it never stops a run.

use uuid::Uuid;

use crate::plugin::telemetry::actor::TelemetryPlugin;
use crate::plugin::telemetry::config::TelemetryConfig;
use crate::plugin::telemetry::trace::RunTrace;
use crate::runtime::PreparedRun;
use crate::store::journal::JournalReader;
use crate::store::run_store::LockedRun;
use crate::store::{self, record};

/// Returns the plug-in that exports a run's telemetry, if `--otlp` or the environment asks for it.
pub(super) fn exporter(option: Option<&str>, prepared: &PreparedRun) -> Option<TelemetryPlugin> {
    let config = match TelemetryConfig::of(option, |name| std::env::var(name).ok()) {
        Ok(Some(config)) => config,
        Ok(None) => {
            if option.is_some() {
                tracing::warn!(
                    "telemetry is not exported: OTEL_SDK_DISABLED or OTEL_…_EXPORTER overrides --otlp"
                );
            }
            return None;
        }
        Err(problem) => return refused(&problem),
    };
    let trace = match recalled(&prepared.store) {
        Ok(trace) => trace,
        Err(error) => return refused(&error),
    };
    let instance = Uuid::new_v4().to_string();
    TelemetryPlugin::start(&config, prepared.id(), trace, instance)
        .map_or_else(|problem| refused(&problem), Some)
}

/// Reads the trace of the run so far from the journal.
fn recalled(store: &LockedRun) -> Result<RunTrace, store::Error> {
    let mut trace = RunTrace::default();
    JournalReader::open(&store.dir().journal())?.read_all(|_, line| {
        trace.replay(&record::decode(line)?);
        Ok(())
    })?;
    Ok(trace)
}

fn refused(why: &dyn std::fmt::Display) -> Option<TelemetryPlugin> {
    tracing::warn!("telemetry is not exported: {why}");
    None
}
