//! Each record as a line of JSON, just as the journal has it.

use std::io::Write;

use actix::{Actor, Context, Handler};

use crate::actor::message::{Finish, Published};

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
        if let Some(stream) = &mut self.stream
            && writeln!(stream, "{}", published.line).and_then(|()| stream.flush()).is_err()
        {
            self.stream = None;
        }
    }
}

impl Handler<Finish> for Lines {
    type Result = ();

    fn handle(&mut self, _: Finish, _: &mut Self::Context) {}
}
