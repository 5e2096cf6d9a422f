//! Each record as a line of JSON, under the names that plug-ins see.

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
        let written = serde_json::to_string(&*published.record)
            .map_err(std::io::Error::from)
            .and_then(|line| writeln!(stream, "{}", printable_json(&line)))
            .and_then(|()| stream.flush());
        if let Err(error) = written {
            self.stream = None;
            if error.kind() != ErrorKind::BrokenPipe {
                tracing::warn!(
                    "no further records are printed: {error}; the journal has all of them"
                );
            }
        }
    }
}

impl Handler<FinishPublishing> for JsonLinesPlugin {
    type Result = ();

    fn handle(&mut self, _: FinishPublishing, _: &mut Self::Context) {}
}
