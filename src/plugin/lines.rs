//! Each record as a line of JSON with the same values as in the journal.

use std::io::{ErrorKind, Write};

use actix::{Actor, Context, Handler};

use crate::actor::message::{FinishPublishing, Published};
use crate::domain::printable::printable_json;

/// Writes lines to a stream until its reader is gone.
pub struct JsonLinesPlugin {
    stream: Option<Box<dyn Write + Send>>,
}

impl JsonLinesPlugin {
    /// Returns a plug-in that writes to this stream.
    #[must_use]
    pub fn new(stream: impl Write + Send + 'static) -> Self {
        Self { stream: Some(Box::new(stream)) }
    }
}

impl Actor for JsonLinesPlugin {
    type Context = Context<Self>;
}

impl Handler<Published> for JsonLinesPlugin {
    type Result = ();

    fn handle(&mut self, published: Published, _: &mut Self::Context) {
        let Some(stream) = &mut self.stream else { return };
        let line = printable_json(&published.line);
        if let Err(error) = writeln!(stream, "{line}").and_then(|()| stream.flush()) {
            self.stream = None;
            if error.kind() != ErrorKind::BrokenPipe {
                tracing::warn!("no further record is printed: {error}; the journal has them all");
            }
        }
    }
}

impl Handler<FinishPublishing> for JsonLinesPlugin {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {}
}
