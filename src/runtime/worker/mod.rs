//! A worker: it performs what supervisors ask its host for.

mod hosted_run;
mod hosted_runner;
mod mail_batches;
mod policy;
mod registration;
mod request_threads;
mod serve;
mod session_keeper;

pub use policy::HostPolicy;
pub use registration::WorkerOptions;
pub use registration::{SupervisorLauncher, Takeover};
pub use serve::serve;
