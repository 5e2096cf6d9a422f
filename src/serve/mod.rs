//! The page in a browser: a server for this machine that reads runs, and acts only as the commands do.
//!
//! The shell takes connections and follows runs; the decisions (who may ask, what an address means, what has changed)
//! are pure. It knows no command: [`backend`] is the seam through which the command line answers and acts.

pub mod access;
pub mod agent_feed;
pub mod backend;
pub mod conversation;
pub mod cost_times;
pub mod feed;
pub mod feed_hub;
pub mod handler;
pub mod log_page;
pub mod reply;
pub mod routes;
pub mod run_feed;
pub mod runs_feed;
pub mod server;
pub mod timeline;
