//! The exchange of work between hosts: branches of a run are fetched from a git repository, and pushed there.
//!
//! At a host, git reaches the exchange with a directory that only raymond writes: agents can write the configuration of
//! their own repository, which can name programs.

mod begin;
mod clone;
mod fetch;
mod push;

pub use self::begin::BegunExchange;
