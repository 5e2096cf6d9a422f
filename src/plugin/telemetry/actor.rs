//! The actor that observes a run and exports its telemetry.

use actix::{Actor, Context, Handler, ResponseFuture};

use super::export::{TelemetryConfig, TelemetryConfigError, TelemetryExporter};
use super::trace::RunTrace;
use crate::actor::observer::{FinishPublishing, Published};
use crate::domain::id::RunId;

/// Exports a run's trace and metrics.
#[derive(Debug)]
pub struct TelemetryPlugin {
    trace: RunTrace,
    export: Option<TelemetryExporter>,
}

impl TelemetryPlugin {
    /// Starts the export of a run whose records so far are in `trace`. `instance` tells this process from every
    /// other.
    ///
    /// # Errors
    /// [`TelemetryConfigError`] if the requested export is not possible.
    pub fn start(
        config: &TelemetryConfig,
        run: &RunId,
        trace: RunTrace,
        instance: String,
    ) -> Result<Self, TelemetryConfigError> {
        let export = TelemetryExporter::start(config, run, instance)?;
        if let Some(meters) = &export.meters {
            meters.show(&trace);
        }
        Ok(Self { trace, export: Some(export) })
    }
}

impl Actor for TelemetryPlugin {
    type Context = Context<Self>;
}

impl Handler<Published> for TelemetryPlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        let spans = self.trace.see(&published.record);
        let Some(export) = &mut self.export else { return };
        for span in spans {
            export.send(span);
        }
        if let Some(meters) = &export.meters {
            meters.count(&published.record, &self.trace);
        }
    }
}

impl Handler<FinishPublishing> for TelemetryPlugin {
    type Result = ResponseFuture<()>;

    /// Sends the rest on another thread, so that no other observer waits for the collector.
    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) -> Self::Result {
        let spans = self.trace.finish();
        let export = self.export.take();
        Box::pin(async move {
            let Some(mut export) = export else { return };
            for span in spans {
                export.send(span);
            }
            let _ = tokio::task::spawn_blocking(move || export.finish()).await;
        })
    }
}
