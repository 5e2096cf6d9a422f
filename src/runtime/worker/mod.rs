//! A worker: it performs what supervisors ask its host for.

mod hosted_run;
mod policy;
mod request_threads;
mod serve;
mod work;

pub use policy::HostPolicy;
pub use serve::{WorkerOptions, serve};
