//! Each record as a line of JSON with the same values as in the journal.

use std::io::{ErrorKind, Write};

use actix::{Actor, Context, Handler};

use crate::actor::message::{Finish, Published};
use crate::domain::printable::printable_json;

/// Writes lines to a stream until its reader is gone.
pub struct Lines {
    stream: Option<Box<dyn Write + Send>>,
}

impl Lines {
    /// Lines to this stream.
    #[must_use]
    pub fn new(stream: impl Write + Send + 'static) -> Self {
        Self { stream: Some(Box::new(stream)) }
    }
}

impl Actor for Lines {
    type Context = Context<Self>;
}

impl Handler<Published> for Lines {
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

impl Handler<Finish> for Lines {
    type Result = ();

    fn handle(&mut self, _: Finish, _: &mut Self::Context) {}
}
