//! The objects that a worker serves to the Restate server: decisions without a server, and a thin shell around them.
//!
//! All of a run is in one object, so that each call of its supervisor is fenced by the run's own lease, and of a
//! withdrawal and a begin at the same moment one is first. A run calls its hosts and the index, and none of them calls
//! a run, so that no two wait for each other.

mod answered_list;
pub(super) mod endpoint;
mod host;
mod host_queue;
mod run;
pub(super) mod run_calls;
mod run_log;
mod run_mail;
pub(super) mod state;
#[cfg(test)]
mod tests;
