//! The engine Restate: virtual objects that a worker serves to the server, and the client that calls them.
//!
//! - [`objects`]: what is kept, and each decision about it.
//! - [`settings`], [`calls`], [`run_batches`], [`failure`]: addresses, calls through the server's ingress, alone or together, and what
//!   their errors mean.
//! - [`deployment`], [`serving`], [`clock`]: who serves the objects, and how another worker takes that over.
//! - [`log`], [`mailbox`], [`hosts`], [`questions`], [`space`], [`facts`], [`waiting`]: the traits of engines;
//!   [`mail_looks`], [`seen_news`], [`open_waits`]: what this process knows of its mail.

mod engine;
mod facts;
mod hosts;
mod log;
mod mailbox;
mod objects;
mod run_batches;
pub(super) mod serving;

pub(super) use engine::RestateEngine;
