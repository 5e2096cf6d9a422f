//! The engine Restate: virtual objects that a worker serves to the server, and the client that calls them.
//!
//! - [`objects`]: what is kept, and each decision about it.
//! - [`settings`], [`calls`], [`failure`]: addresses, calls through the server's ingress, and what their errors mean.
//! - [`deployment`], [`serving`], [`clock`]: who serves the objects, and how another worker takes that over.
//! - [`log`], [`mailbox`], [`hosts`], [`questions`], [`space`], [`facts`], [`waiting`]: the traits of engines.

mod calls;
mod client;
mod clock;
mod deployment;
mod engine;
mod facts;
mod failure;
mod hosts;
mod log;
mod mailbox;
mod objects;
mod questions;
mod seen_news;
pub(super) mod serving;
mod settings;
mod space;
mod waiting;

pub(super) use engine::RestateEngine;
