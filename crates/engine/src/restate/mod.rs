//! The engine Restate: virtual objects that a worker serves to the server, and the client that calls them.
//!
//! - `objects`: what is kept, and each decision about it.
//! - `serving`: who serves the objects, and how another worker takes that over; the settings of a connection, calls
//!   through the server's ingress, and what their errors mean.
//! - `run_batches`: calls of the object of a run that go together.
//! - `log`, `mailbox`, `hosts`, `facts`: the traits of engines.
//! - `engine`: the space of runs, and what this process knows of its mail.

mod engine;
mod facts;
mod hosts;
mod log;
mod mailbox;
mod objects;
mod run_batches;
pub(super) mod serving;

pub(super) use engine::RestateEngine;
